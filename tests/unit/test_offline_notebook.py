"""What the engine reads from a conversation."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.llm.offline.engine import handoff
from orchestrator.llm.offline.notebook import Notebook, json_object
from orchestrator.llm.offline.notebook_reading import read_notebook
from orchestrator.llm.offline.variation import VariationFamily

Chance = random.Random
TOOLS = tuple(ToolSpec(name=name, description="", parameters={}) for name in ("write", "commit", "run_analysis"))
FACTS = {
    "initial": {"id": "initial", "metrics": {"fitness": 0.5}},
    "island": 2,
    "islands": 3,
    "budget": {"commits_left": 4, "requests_left": 9, "analyses_left": 2},
}
FIRST = f"The program.\n\nprogram.py:\n```python\nx = 1\n```\n\nIts evaluation:\n\n{json.dumps(FACTS)}"


def exchange(name: str, answer: str, *, is_error: bool = False, **arguments: str) -> tuple[Message, Message]:
    call = ToolCall(id="c", name=name, arguments=arguments)
    result = ToolResult(call_id="c", text=answer, is_error=is_error)
    return AssistantMessage(text="", tool_calls=(call,)), ToolMessage(results=(result,))


def read(*messages: Message, first: str = FIRST) -> Notebook:
    return read_notebook(Conversation(system="s", messages=(UserMessage(text=first), *messages)), TOOLS)


def answer(**facts: Any) -> str:
    return json.dumps({"commit": "i2-c01", "metrics": {"fitness": 0.6}, "notice": None, "budget": {}} | facts)


def test_the_first_message_holds_program_place_and_budget() -> None:
    notebook = read()
    assert notebook.program == notebook.initial_program == "x = 1\n"
    assert (notebook.island, notebook.islands, notebook.commits_left, notebook.analyses_left) == (2, 3, 4, 2)
    assert notebook.best == ("x = 1\n", 0.5)


def test_a_longer_fence_holds_a_program_with_fences() -> None:
    text = FIRST.replace("```python\nx = 1\n```", "````python\nx = '''\n```\n'''\n````")
    assert read(first=text).program == "x = '''\n```\n'''\n"


def test_files_are_as_writes_and_edits_left_them() -> None:
    notebook = read(
        *exchange("write", "{}", file="program.py", content="y = 2\n"),
        *exchange("edit", "{}", file="program.py", old="2", new="3"),
        *exchange("edit", "error: old occurs more than once", is_error=True, file="program.py", old="y", new="z"),
    )
    assert notebook.program == "y = 3\n"
    assert notebook.errors == 1


def test_a_commit_is_known_with_its_program_and_empties_the_analyses() -> None:
    notebook = read(
        *exchange("write", "{}", file="program.py", content="y = 2\n"),
        *exchange("run_analysis", 'printed\nresult: {"a": 1}\n[analysis 1 of 2 before the next commit: ok]'),
        *exchange("commit", answer(), description="d"),
    )
    assert notebook.best == ("y = 2\n", 0.6)
    assert notebook.analyses == []
    assert notebook.earlier_analyses[0].result() == {"a": 1}
    assert notebook.earlier_analyses[0].ending == "ok"


def test_a_failed_commit_has_no_score() -> None:
    notebook = read(*exchange("commit", answer(metrics=None), description="d"))
    assert notebook.commits[0].fitness is None
    assert notebook.best == ("x = 1\n", 0.5)


def test_the_analyses_left_are_counted_down() -> None:
    notebook = read(*exchange("run_analysis", "[analysis 1 of 2 before the next commit: timeout]"))
    assert notebook.analyses_left == 1
    assert notebook.analyses[0].ending == "timeout"
    assert notebook.analyses[0].result() is None


def test_migration_candidates_are_offered_until_the_next_commit() -> None:
    line = {"id": "i0-c03", "island": 0, "metrics": {"fitness": 0.9}, "description": "d"}
    shown = exchange("commit", answer(migration=[line]), description="d")
    assert read(*shown).offered == ["i0-c03"]
    assert read(*shown, *exchange("commit", answer(), description="d")).offered == []


def test_a_notice_asks_to_stop_until_the_next_message() -> None:
    told = exchange("commit", answer(notice="[context limit] ..."), description="d")
    assert read(*told).must_stop
    assert not read(*told, UserMessage(text="Continue.")).must_stop


def test_a_handoff_carries_what_a_successor_needs() -> None:
    before = read(*exchange("write", "{}", file="program.py", content="y = 2\n"), *exchange("commit", answer()))
    facts = {
        "island": 2,
        "islands": 3,
        "latest_feedback": {"migration": [{"id": "i0-c09", "metrics": {"fitness": 0.7}}]},
    }
    opening = f"{handoff(before)}\n\nprogram.py:\n```python\nz = 3\n```\n\n{json.dumps(facts)}"
    notebook = read(first=opening)
    assert notebook.program == "z = 3\n"
    assert notebook.initial_program == "x = 1\n"
    assert notebook.best == ("y = 2\n", 0.6)
    assert notebook.island == 2
    assert notebook.offered == ["i0-c09"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": ' * 5000,
        '{"a": "' + "x" * (1 << 20) + '"}',
        '{"a": 1} 2',
    ],
    ids=["empty", "array", "open", "nan", "infinity", "deep", "long", "more"],
)
def test_what_is_no_json_object_is_nothing(text: str) -> None:
    assert json_object(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"commit": null, "metrics": 3, "grid": {"a": 1}, "migration": [1], "budget": []}', "\ud800"],
)
def test_malformed_answers_are_survived(text: str) -> None:
    for name in ("commit", "run_analysis", "read", "read_commit", "write", "edit"):
        assert read(*exchange(name, text)).program is not None


TWO = "The evaluator calls rule.py, which may import the others; you may change all of them."
FIRST_OF_TWO = (
    "The program.\n\nparts.py:\n```python\nx = 1\n```\n\nrule.py:\n```python\nimport parts\n```\n\n"
    f"Its evaluation:\n\n{json.dumps(FACTS)}"
)


def read_two(*messages: Message, first: str = FIRST_OF_TWO) -> Notebook:
    return read_notebook(Conversation(system=TWO, messages=(UserMessage(text=first), *messages)), TOOLS)


def test_a_program_of_two_modules_is_known_whole_and_called_by_its_entry() -> None:
    notebook = read_two(
        *exchange("write", "{}", file="parts.py", content="x = 2\n"),
        *exchange("write", "{}", file="analysis.py", content="import rule\n"),
        *exchange("commit", answer(), description="d"),
        *exchange(
            "read_commit", "parts.py:\n```python\nx = 3\n```\n\nrule.py:\n```python\nimport parts\n```", id="i0-c09"
        ),
    )
    assert notebook.entry == "rule.py"
    assert notebook.initial_program == notebook.program == "import parts\n"
    assert notebook.trees == {
        "initial": {"parts.py": "x = 1\n", "rule.py": "import parts\n"},
        "i2-c01": {"parts.py": "x = 2\n", "rule.py": "import parts\n"},
        "i0-c09": {"parts.py": "x = 3\n", "rule.py": "import parts\n"},
    }
    assert notebook.best_id == "i2-c01"


def test_a_handoff_carries_all_modules() -> None:
    before = read_two(
        *exchange("write", "{}", file="parts.py", content="x = 2\n"), *exchange("commit", answer(), description="d")
    )
    program = "parts.py:\n```python\nx = 5\n```\n\nrule.py:\n```python\nimport parts\n```"
    after = read_two(first=f"{handoff(before)}\n\n{program}\n\n{json.dumps({'island': 2, 'islands': 3})}")
    assert after.trees["i2-c01"] == before.trees["i2-c01"]
    assert after.best == before.best
    assert after.tree["parts.py"] == "x = 5\n"


def test_what_shows_no_modules_is_no_program_to_start_from() -> None:
    notebook = read_two(
        *exchange("read_commit", "nothing in fences", id="i0-c09"),
        *exchange("commit", answer(commit="i0-c09", metrics={"fitness": 0.9}), description="d"),
    )
    step = VariationFamily().next_step(notebook, Chance(1))
    assert {arguments["file"] for name, arguments in step.calls if name == "write"} <= {
        "parts.py",
        "rule.py",
        "analysis.py",
    }


def test_a_base_that_is_not_at_hand_is_restored_before_it_is_varied() -> None:
    notebook = read_two(
        *exchange("write", "{}", file="parts.py", content="x = 2.0\n"),
        *exchange("commit", answer(metrics={"fitness": 0.9}), description="d"),
        *exchange("write", "{}", file="parts.py", content="x = 7.0\n"),
    )
    best = notebook.trees[notebook.best_id or ""]
    step = VariationFamily().next_step(notebook, Chance(1))
    written = [arguments for name, arguments in step.calls if name == "write"]
    assert written[0] == {"file": "parts.py", "content": best["parts.py"]}
    assert all(arguments["content"] != best.get(arguments["file"]) for arguments in written[1:])
