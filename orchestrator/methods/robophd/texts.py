"""The texts an evolver is given, filled in from `prompts/`; everything that others wrote stands in fenced blocks.

Their order is the paper's: the ranking over all iterations, the last iteration by database, what is at hand, the pool,
the strategy, and what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

import yaml

from orchestrator.domain.conversation import Conversation, StopReason, ToolSpec, UserMessage
from orchestrator.domain.policies import Limits
from orchestrator.methods.robophd.settings import Settings, Strategy
from orchestrator.methods.robophd.standings import Row
from orchestrator.sql.quoting import data_block, json_line

EVOLVE = "# Evolve a database-analysis tool and instructions"
_MIB = 1 << 20
_DESCRIPTION_CHARACTERS = 300
_NO_CALL = {
    StopReason.LENGTH: "cut_off.txt",
    StopReason.THOUGHT: "only_thought.txt",
    StopReason.REFUSAL: "refused.txt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an evolver is told before it begins."""

    standings: Sequence[Row]
    """Best first."""
    last: Mapping[str, Any]
    """The last iteration: `{"iteration", "kind", "databases": [...]}`."""
    competitors: frozenset[str]
    """Of the last contest."""
    databases: Sequence[str]
    """That the tool can be tried on."""
    strategy: Strategy


def first_message(situation: Situation, settings: Settings, limits: Limits) -> Conversation:
    """How an evolution begins.

    Args:
        situation: Everything that is known.
        settings: Of the run.
        limits: Of one run of a tool.
    """
    sections = [
        ("Ranking", json_lines(_ranked(row) for row in situation.standings), "json"),
        ("Last iteration", json_line(situation.last), "json"),
        ("At hand", _at_hand(situation, settings, limits), "text"),
        ("Pool", json_lines(_pooled(row, situation.competitors) for row in _by_age(situation.standings)), "json"),
        ("Strategy", strategy_text(situation.strategy), "text"),
    ]
    if situation.strategy is Strategy.RESEARCH_DRIVEN:
        sections.append(("Papers", "\n\n".join(settings.papers), "text"))
    sections.append(("Required outputs", _stored("required_outputs.txt"), "text"))
    system = Template(_stored("evolver_system.txt")).substitute(data=_stored("data.txt"))
    text = "\n\n".join([EVOLVE, *(section(*parts) for parts in sections)])
    return Conversation(system=system, messages=(UserMessage(text=text),))


def deep_focus_message(iteration: int, sections: Mapping[str, str]) -> str:
    """The results of a draft's test.

    Args:
        iteration: Whose questions they were.
        sections: Name to JSON.
    """
    head = Template(_stored("deep_focus.txt")).substitute(iteration=iteration)
    return "\n\n".join([head, *(section(name, text, "json") for name, text in sections.items())])


def continue_message(left: int, stop: StopReason = StopReason.END) -> str:
    """After a turn without a tool call.

    Args:
        left: So many more of them end the work.
        stop: Why the turn ended; the message says so where that is why there was no call.
    """
    return Template(_stored("continue.txt")).substitute(left=left, why=_stored(_NO_CALL.get(stop, "no_call.txt")))


def cut_off_notice(stop: StopReason) -> str | None:
    """To the answers to tool calls of a message that was cut off; None: it was not."""
    return _stored("cut_off_call.txt") if stop is StopReason.LENGTH else None


def strategy_text(strategy: Strategy) -> str:
    """The text of a strategy; its first line names it."""
    return _stored(f"strategies/{strategy.value}.txt")


@cache
def tool_specs() -> tuple[ToolSpec, ...]:
    """The evolver's tools, in a fixed order."""
    stored: dict[str, dict[str, Any]] = yaml.safe_load(_stored("tools.yaml"))
    return tuple(
        ToolSpec(name=name, description=tool["description"], parameters=_schema(tool["arguments"]))
        for name, tool in stored.items()
    )


def section(name: str, text: str, info: str) -> str:
    """A heading and a block that nothing inside can end."""
    return f"## {name}\n{data_block(text, info)}"


def json_lines(documents: Iterable[Mapping[str, Any]]) -> str:
    """A list with one document on each line."""
    lines = [json_line(document) for document in documents]
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"


def _ranked(row: Row) -> dict[str, Any]:
    member, accuracy = row.member, row.accuracy
    return {
        "id": member.id,
        "rating": round(row.rating, 1),
        "tests": row.tests,
        "questions": row.questions,
        "accuracy": None if accuracy is None else round(accuracy, 4),
        "iteration": member.iteration,
        "parents": list(member.parents),
    }


def _pooled(row: Row, competitors: frozenset[str]) -> dict[str, Any]:
    member = row.member
    return {
        "id": member.id,
        "description": member.description[:_DESCRIPTION_CHARACTERS],
        "parents": list(member.parents),
        "is_competitor": member.id in competitors,
        "files": [{"file": path, "bytes": len(content)} for path, content in member.package.tree.items()],
    }


def _by_age(standings: Sequence[Row]) -> list[Row]:
    return sorted(standings, key=lambda row: (row.member.iteration, row.member.id))


def _at_hand(situation: Situation, settings: Settings, limits: Limits) -> str:
    return Template(_stored("at_hand.txt")).substitute(
        databases=", ".join(situation.databases),
        tries=settings.evolver.tries,
        requests=settings.evolver.requests,
        cpu_seconds=f"{limits.cpu_seconds:g}",
        memory=f"{limits.memory_bytes // _MIB} MiB",
        token_budget=f"{settings.answers.token_budget:,}",
    )


def _schema(arguments: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }


@cache
def _stored(name: str) -> str:
    return files(__package__).joinpath("prompts", name).read_text(encoding="utf-8").rstrip("\n")
