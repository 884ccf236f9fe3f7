"""From a notebook to the engine's next message."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Sequence
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, ToolCall, ToolSpec, UserMessage
from orchestrator.llm.offline.dispatching import DispatchingFamily
from orchestrator.llm.offline.equations import EquationFamily
from orchestrator.llm.offline.families import Family, Step
from orchestrator.llm.offline.notebook import HANDOFF_MARK, Notebook
from orchestrator.llm.offline.notebook_reading import read_notebook
from orchestrator.llm.offline.placement import PlacementFamily
from orchestrator.llm.offline.variation import VariationFamily

FAMILIES: tuple[Family, ...] = (PlacementFamily(), EquationFamily(), DispatchingFamily(), VariationFamily())
"""In the order of preference; the last one takes everything."""
_READS_PER_MIGRATION = 2
_MAX_ERRORS = 3
_CARRIED_PROGRAMS = 3


def respond(
    conversation: Conversation, tools: Sequence[ToolSpec], seed: int, *, effort: float = 1.0
) -> AssistantMessage:
    """The engine's next message; a pure function of its arguments."""
    notebook = read_notebook(conversation, tools, effort=effort)
    last = conversation.messages[-1] if conversation.messages else UserMessage(text="")
    position = len(conversation.messages)
    if position > 1 and isinstance(last, UserMessage) and "handoff" in last.text:
        return AssistantMessage(text=handoff(notebook))
    if notebook.must_stop:
        return AssistantMessage(text="I end my turn. " + _hypothesis(notebook))
    if notebook.errors >= _MAX_ERRORS:
        return AssistantMessage(text=f"{notebook.errors} messages in a row met errors; I end my turn.")
    chance = random.Random(hashlib.sha256(f"{seed}/{notebook.island}/{position}".encode()).digest())  # noqa: S311 - search, not secrecy
    step = _migrants_to_read(notebook) or _family(notebook).next_step(notebook, chance)
    calls = tuple(
        ToolCall(id=f"call-{position}-{number}", name=name, arguments=arguments, raw_arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(step.calls)
    )
    return AssistantMessage(text=step.text, tool_calls=calls)


def handoff(notebook: Notebook) -> str:
    """What a successor needs: four parts in words, and the figures in one line of JSON."""
    best = notebook.best
    measured = [
        analysis for analysis in [*notebook.earlier_analyses, *notebook.analyses] if analysis.result() is not None
    ]
    failed = sum(made.fitness is None for made in notebook.commits)
    carried = _carried(notebook)
    trees = {id_: notebook.trees[id_] for id_ in carried if len(notebook.trees[id_]) > 1}
    figures: dict[str, Any] = {
        "island": notebook.island,
        "islands": notebook.islands,
        "initial_fitness": notebook.initial_fitness,
        "initial_program": notebook.initial_program,
        "scores": {id_: notebook.scores[id_] for id_ in carried},
        "programs": {id_: notebook.programs[id_] for id_ in carried if id_ not in trees},
        **({"trees": trees} if trees else {}),
        **_family(notebook).figures(notebook),
    }
    fitness = "none" if best is None else f"{best[1]:.6g}"
    return "\n".join(
        [
            f"1. Of {len(notebook.commits)} commits {failed} got no score; what did not hold up was dropped.",
            f"2. {len(measured)} analyses came to an end; the best fitness known is {fitness}.",
            f"3. {_hypothesis(notebook)}",
            "4. Continue from the best program known: change its structure by one operator and fit its values again.",
            HANDOFF_MARK + json.dumps(figures, ensure_ascii=False),
        ]
    )


def _carried(notebook: Notebook) -> list[str]:
    """Ids of the best programs whose text is known."""
    known = [id_ for id_ in notebook.programs if id_ in notebook.scores]
    return sorted(known, key=lambda id_: -notebook.scores[id_])[:_CARRIED_PROGRAMS]


def _hypothesis(notebook: Notebook) -> str:
    best = notebook.best
    if best is None:
        return "Nothing is scored yet."
    return f"A variation of the best program known (fitness {best[1]:.6g}) can still be better."


def _family(notebook: Notebook) -> Family:
    return next(family for family in FAMILIES if family.recognises(notebook))


def _migrants_to_read(notebook: Notebook) -> Step | None:
    """Read the best of the migration candidates that are new, if they are near this island's best or better."""
    own = max((made.fitness for made in notebook.commits if made.fitness is not None), default=-math.inf)
    new = [id_ for id_ in notebook.offered if id_ not in notebook.programs and id_ in notebook.scores]
    last = sorted(new, key=lambda id_: -notebook.scores[id_])[:_READS_PER_MIGRATION]
    wanted = [id_ for id_ in last if notebook.scores[id_] > own] or last[:1]
    if not wanted or notebook.reads or "read_commit" not in notebook.tools:
        return None
    return Step(
        text="Let me see what the neighbours found: " + ", ".join(wanted) + ".",
        calls=tuple(("read_commit", {"id": id_}) for id_ in wanted),
    )
