"""Tool calls: what they do, and that a wrong one is told to the agent, changes nothing and costs only its request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.conversation import ToolCall
from orchestrator.errors import TaskError
from orchestrator.methods.agentic_evolve.workspace import Workspace
from orchestrator.search.tool_calls import ToolError


def workspace(text: str = "a = 1\nb = 1\n", *, has_analysis: bool = True) -> Workspace:
    return Workspace(FileTree({"program.py": text.encode()}), has_analysis=has_analysis)


def test_an_edit_replaces_the_only_occurrence() -> None:
    files = workspace()
    assert files.edit("program.py", "a = 1", "a = 22") == 13
    assert files.read("program.py") == "a = 22\nb = 1\n"


@pytest.mark.parametrize(
    ("old", "complaint"),
    [("c = 1", "does not occur"), (" = 1", "more than once"), ("", "is empty")],
)
def test_an_edit_that_does_not_apply_exactly_once_changes_nothing(old: str, complaint: str) -> None:
    files = workspace()
    with pytest.raises(ToolError, match=complaint):
        files.edit("program.py", old, "x")
    assert files.read("program.py") == "a = 1\nb = 1\n"


def test_occurrences_that_overlap_are_more_than_one() -> None:
    files = workspace("aaa")
    with pytest.raises(ToolError, match="more than once"):
        files.edit("program.py", "aa", "b")


@given(before=st.text("ab", max_size=6), old=st.text("ab", min_size=1, max_size=3), after=st.text("ab", max_size=6))
def test_an_edit_applies_if_and_only_if_the_passage_occurs_once(before: str, old: str, after: str) -> None:
    text = before + old + after
    starts = [start for start in range(len(text)) if text.startswith(old, start)]
    files = workspace(text)
    if len(starts) == 1:
        files.edit("program.py", old, "NEW")
        assert files.read("program.py") == text[: starts[0]] + "NEW" + text[starts[0] + len(old) :]
    else:
        with pytest.raises(ToolError):
            files.edit("program.py", old, "NEW")
        assert files.read("program.py") == text


def test_a_text_that_is_too_long_or_not_encodable_changes_nothing() -> None:
    files = workspace()
    for text in ("x" * ((1 << 20) + 1), "\ud800"):
        for name in ("program.py", "analysis.py"):
            with pytest.raises(ToolError):
                files.write(name, text)
    assert files.read("program.py") == "a = 1\nb = 1\n"
    assert files.script is None


def test_candidate_and_script_together_stay_within_the_bounds_of_a_tree() -> None:
    files = Workspace(FileTree({f"m{i}.py": b"" for i in range(64)}), has_analysis=True)
    with pytest.raises(ToolError, match="at most 64 files"):
        files.write("analysis.py", "")
    assert files.write("m1.py", "x") == 1


def test_only_the_files_of_the_candidate_and_the_script_exist() -> None:
    files = Workspace(FileTree({"program.py": b"1", "rules/tables.py": b"2"}), has_analysis=True)
    assert files.names == ("program.py", "rules/tables.py", "analysis.py")
    files.write("rules/tables.py", "3")
    assert files.candidate == FileTree({"program.py": b"1", "rules/tables.py": b"3"})
    for name in ("other.py", "../x", ""):
        with pytest.raises(ToolError, match="there is no file"):
            files.write(name, "")


def test_the_script_does_not_exist_before_it_is_written_and_never_belongs_to_the_candidate() -> None:
    files = workspace()
    for use in (files.for_analysis, lambda: files.read("analysis.py"), lambda: files.edit("analysis.py", "a", "b")):
        with pytest.raises(ToolError, match="does not exist yet"):
            use()
    files.write("analysis.py", "print(1)")
    assert set(files.for_analysis()) == {"program.py", "analysis.py"}
    assert set(files.candidate) == {"program.py"}


@pytest.mark.parametrize("path", ["analysis.py", "data/x.csv"])
def test_an_initial_program_cannot_use_the_paths_of_analyses(path: str) -> None:
    with pytest.raises(TaskError, match="reserved for analyses"):
        Workspace(FileTree({"program.py": b"", path: b""}), has_analysis=True)


def test_the_tools_answer_in_the_documented_form(kit: Any) -> None:
    lab = kit.Lab(
        kit.scripted(
            kit.say(
                "",
                kit.call("read", file="program.py"),
                kit.call("edit", file="program.py", old="x = 10", new="x = 7"),
                kit.call("write", file="analysis.py", content="print('é')"),
                kit.call("run_analysis"),
                kit.call("read", file="program.py"),
            ),
        ),
        islands=1,
    )
    lab.run()
    assert lab.answers() == [
        "x = 10\ny = 10\n",
        '{"file": "program.py", "bytes": 13}',
        '{"file": "analysis.py", "bytes": 11}',
        "printed\n[analysis 1 of 3 before the next commit: ok]",
        "x = 7\ny = 10\n",
    ]
    assert lab.bench.analysed == [FileTree({"program.py": b"x = 7\ny = 10\n", "analysis.py": "print('é')".encode()})]


def test_malformed_calls_are_errors_to_the_agent_and_cost_a_request_and_nothing_else(kit: Any) -> None:
    wrong = [
        ToolCall(id="1", name="commit", arguments=None, raw_arguments='{"description": '),
        kit.call("submit", description="unknown tool"),
        kit.call("commit"),
        kit.call("commit", description=7),
        kit.call("commit", description=None),
        kit.call("commit", description="x", force=True),
        kit.call("run_analysis", seconds=3),
        kit.call("run_analysis"),
        kit.call("write", file="program.py", content=["x"]),
        kit.call("edit", file="program.py", old="absent", new=""),
        kit.call("read", file="/etc/passwd"),
        kit.call("read_commit", id="i0-c01"),
        kit.call("read_commit", id=1),
    ]
    lab = kit.Lab(kit.scripted(kit.say("", *wrong)), islands=1, idle_turns=1)
    result = lab.run()
    messages = lab.conversation(0).messages
    assert all(answer.is_error and answer.text.startswith("error: ") for answer in messages[-1].results)
    assert [answer.call_id for answer in messages[-1].results] == [call.id for call in wrong]
    assert (result.requests, result.evaluations, result.analyses) == (2, 0, 0)
    assert lab.bench.performed == ["initial"]


def test_a_call_with_a_lone_surrogate_is_an_error_and_can_be_recorded(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.say("\udcff", kit.call("commit", description="\ud800"))), islands=1, idle_turns=1)
    lab.run()
    assert "are no JSON object" in lab.answers()[0]
    assert lab.history.commits == ()
