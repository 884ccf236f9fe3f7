"""The engine on a dispatching task: what it recognises, how a cycle goes, and what others may write to it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.llm.offline.dispatching import DispatchingFamily
from orchestrator.llm.offline.dispatching_choices import task_of
from orchestrator.llm.offline.dispatching_programs import read_rule
from orchestrator.llm.offline.dispatching_rules import MAX_TERMS, Rule
from orchestrator.llm.offline.engine import handoff, respond
from orchestrator.llm.offline.notebook import Notebook
from orchestrator.llm.offline.notebook_reading import read_notebook

FOLDER = Path(__file__).parents[2] / "tasks" / "dynamic_job_shop"
DESCRIPTION = (FOLDER / "description.md").read_text("utf-8")
INITIAL = (FOLDER / "initial" / "program.py").read_text("utf-8")
BETTER = [[1.0, "length"], [0.5, "ahead"]]
BLIND = ("write", "edit", "read", "read_commit", "commit")
FITTED = {"change": -0.3, "error": 0.02, "step": 0.1, "rule": BETTER}
CHECKED = {"ratio": 1.0, "different": 0, "deviation": 0.4}


class Island:
    """A conversation with the engine, answered as the framework would."""

    def __init__(
        self, *, island: int = 0, seed: int = 1, analysis: bool = True, description: str = DESCRIPTION
    ) -> None:
        names = (*BLIND, "run_analysis") if analysis else BLIND
        self.tools = tuple(ToolSpec(name=name, description="", parameters={}) for name in names)
        self.seed, self.commits, self.fitness = seed, 0, 0.7
        self.analyses = 10 if analysis else None
        facts = {
            "initial": {"id": "initial", "metrics": {"fitness": self.fitness}},
            "island": island,
            "islands": 3,
            "budget": self.budget(),
        }
        opening = UserMessage(text=f"program.py:\n```python\n{INITIAL}```\n\n{json.dumps(facts)}")
        system = f'# Task\n{description}\n# Feedback\nthe fitness, "fitness"\n'
        self.conversation = Conversation(system=system, messages=(opening,))

    def budget(self) -> dict[str, Any]:
        return {"commits_left": 9 - self.commits, "requests_left": 99, "analyses_left": self.analyses}

    def reply(self) -> AssistantMessage:
        return respond(self.conversation, self.tools, self.seed)

    def step(self, output: str = "", *, ending: str = "ok", fitness: float | None = None) -> list[str]:
        """Let the engine act once; its analyses print `output`. The names of the tools it called."""
        reply = self.reply()
        results = []
        for call in reply.tool_calls:
            text = "{}"
            if call.name == "run_analysis":
                assert self.analyses is not None
                self.analyses -= 1
                text = f"{output}\n[analysis 1 of 10 before the next commit: {ending}]"
            elif call.name == "commit":
                self.commits += 1
                self.analyses = None if self.analyses is None else 10
                metrics = None if fitness is None else {"fitness": fitness}
                id_ = f"i0-c{self.commits:02d}"
                text = json.dumps({"commit": id_, "metrics": metrics, "notice": None, "budget": self.budget()})
            results.append(ToolResult(call_id=call.id, text=text))
        messages: tuple[Message, ...] = (reply, ToolMessage(results=tuple(results)))
        self.conversation = self.conversation.plus(*messages)
        return [call.name for call in reply.tool_calls]

    def notebook(self) -> Notebook:
        return read_notebook(self.conversation, self.tools)

    def settings(self) -> dict[str, Any]:
        """Of the script that was run last."""
        line = next(line for line in self.notebook().files["analysis.py"].splitlines() if line.startswith("SETTINGS"))
        found = json.loads(line.removeprefix("SETTINGS = "))
        assert isinstance(found, dict)
        return found

    def rule(self) -> Rule | None:
        notebook = self.notebook()
        task = task_of(notebook)
        assert task is not None
        return read_rule(notebook.program, task)


def result(document: object) -> str:
    return "result: " + json.dumps(document)


def test_the_task_is_recognised_and_no_other() -> None:
    assert DispatchingFamily().recognises(Island().notebook())
    assert not DispatchingFamily().recognises(Island(description="Pack items into bins of capacity 150.").notebook())


def test_a_program_of_somebody_else_that_is_the_best_is_left_to_variation() -> None:
    notebook = Island().notebook()
    notebook.programs["i1-c01"] = INITIAL.replace("-processing_time", "-winq")
    notebook.scores["i1-c01"] = 0.9
    assert not DispatchingFamily().recognises(notebook)


def test_a_cycle_fits_checks_and_commits() -> None:
    island = Island()
    assert island.step(result(FITTED)) == ["write", "run_analysis"]
    assert (island.settings()["purpose"], island.settings()["operator"]) == ("fit", "further attributes")
    assert island.step(result(CHECKED))[0] == "write"
    assert island.settings()["purpose"] == "check"
    assert island.rule() == Rule.from_json(BETTER)
    assert island.step(fitness=0.95) == ["commit"]
    assert island.step(result(FITTED))[-1] == "run_analysis"
    assert '[[1.0, "length"], [0.5, "ahead"]]' in island.notebook().files["analysis.py"]


def test_a_fit_that_does_not_hold_up_is_followed_by_another_and_then_by_a_commit() -> None:
    island = Island()
    for _ in range(2):
        island.step(result(FITTED | {"change": -0.01}))
        assert island.settings()["purpose"] == "fit"
    island.step(result(CHECKED))
    assert island.settings()["purpose"] == "check"
    assert island.step(fitness=0.7) == ["commit"]


def test_a_fit_that_was_stopped_is_repeated_with_half_the_generations() -> None:
    island = Island()
    island.step(ending="timeout")
    first = island.settings()["generations"]
    island.step(result(FITTED))
    assert island.settings()["generations"] == first // 2


def test_a_program_that_fails_its_check_is_not_committed_at_once() -> None:
    island = Island()
    island.step(result(FITTED))
    island.step("Traceback", ending="error")
    assert island.step(result(FITTED))[-1] == "run_analysis"
    assert island.settings()["purpose"] == "fit"


def test_without_analyses_every_step_is_a_commit_of_a_rule() -> None:
    island, rules = Island(analysis=False), []
    for number in range(12):
        assert island.step(fitness=0.7 + 0.01 * (number % 5)) == ["write", "commit"]
        rules.append(island.rule())
    assert None not in rules
    assert len(set(rules)) == 12


def test_blind_steps_grow_after_improvements_and_shrink_without() -> None:
    luck, none = Island(analysis=False), Island(analysis=False)
    for number in range(4):
        luck.step(fitness=0.8 + 0.02 * number)
        none.step(fitness=0.6)
    family = DispatchingFamily()
    assert family.figures(luck.notebook())["step"] > 0.2 > family.figures(none.notebook())["step"]


def test_a_successor_continues_from_what_was_handed_over() -> None:
    island = Island()
    island.step(result(FITTED))
    island.step(result(CHECKED))
    island.step(fitness=0.95)
    before = island.notebook()
    facts = {"island": 0, "islands": 3, "budget": island.budget()}
    opening = f"{handoff(before)}\n\nprogram.py:\n```python\n{before.program}```\n\n{json.dumps(facts)}"
    successor = Conversation(system=island.conversation.system, messages=(UserMessage(text=opening),))
    reply = respond(successor, island.tools, 1)
    script = str((reply.tool_calls[0].arguments or {})["content"])
    assert 'STARTS = [[[1.0, "length"], [0.5, "ahead"]]]' in script
    assert '"step": 0.' in script


def test_replies_are_a_function_of_the_request() -> None:
    first, second, other = Island(), Island(), Island(seed=2)
    for _ in range(3):
        assert first.reply() == first.reply() == second.reply()
        first.step(result(FITTED), fitness=0.9)
        random.seed(4)
        second.step(result(FITTED), fitness=0.9)
    assert Island().reply() != other.reply()
    assert Island(island=1).reply() != Island(island=2).reply()


HOSTILE = [
    "",
    "result: ",
    "result: {",
    "result: []",
    'result: {"rule": 3, "change": -1, "error": 0}',
    'result: {"rule": [[1.0, "length"]], "change": NaN, "error": 0}',
    'result: {"rule": [[1.0, "length"]], "change": ' + "9" * 400 + ', "error": 0}',
    'result: {"rule": [[1.0, "length"]], "change": -1e308, "error": -1}',
    'result: {"rule": [[1.0, "length"]], "change": true, "error": "0"}',
    'result: {"rule": [[1.0, "__import__"]], "change": -1, "error": 0}',
    'result: {"rule": [[1.0, "length\\n    )\\n    import os"]], "change": -1, "error": 0}',
    'result: {"rule": ' + "[" * 900 + "]" * 900 + ', "change": -1, "error": 0}',
    'result: {"step": 1e-300, "rule": [[1e-300, "length"]], "change": -1, "error": 0}',
    'result: {"rule": [[1.0, "crowd"]], "change": -1, "error": 0}',
]


@pytest.mark.parametrize("output", HOSTILE, ids=range(len(HOSTILE)))
def test_what_an_analysis_prints_never_runs_or_stops_the_engine(output: str) -> None:
    island = Island()
    for _ in range(8):
        assert island.step(output, fitness=0.8)
        rule = island.rule()
        assert rule is None or len(rule.terms) <= MAX_TERMS
        assert "import os" not in island.notebook().files["program.py"]
    assert island.commits


@pytest.mark.parametrize(
    "figures",
    [
        {"effort": 10**400, "step": -3, "fit_step": "much", "cycles": 10**30},
        {"effort": None, "step": [], "fit_step": {}, "cycles": -5},
        {"programs": {"i0-c01": "x" * 50_000}, "scores": {"i0-c01": 0.9}},
        {"programs": 3, "scores": [1], "initial_program": INITIAL},
    ],
    ids=["huge", "types", "long", "shapes"],
)
def test_a_handoff_of_somebody_else_is_survived(figures: dict[str, Any]) -> None:
    island = Island()
    line = "Figures for the successor: " + json.dumps({"initial_program": INITIAL, "island": 0} | figures)
    facts = {"island": 0, "islands": 3, "budget": island.budget()}
    opening = f"{line}\n\nprogram.py:\n```python\n{INITIAL}```\n\n{json.dumps(facts)}"
    island.conversation = Conversation(system=island.conversation.system, messages=(UserMessage(text=opening),))
    for _ in range(4):
        assert island.step(result(FITTED), fitness=0.8)
