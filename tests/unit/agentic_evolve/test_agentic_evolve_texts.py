"""What agents are told, and that --no-analysis takes away exactly what concerns analyses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.candidates import FileTree
from orchestrator.methods.agentic_evolve import Settings, texts
from orchestrator.methods.agentic_evolve.workspace import Workspace

WITH, WITHOUT = Settings(), Settings(analysis=False)


def test_the_prompt_without_analyses_lacks_the_lines_on_analyses_and_nothing_else(kit: Any) -> None:
    task = replace(kit.Lab().task, has_public_data=True)
    full, bare = (texts.system_prompt(settings, task).splitlines() for settings in (WITH, WITHOUT))
    removed = list(full)
    for line in bare:
        removed.remove(line)
    assert [line for line in full if line in bare] == bare
    assert len(removed) == 4
    assert all("analysis.py" in line or "run_analysis" in line for line in removed)
    assert "analys" not in "\n".join(bare)


def test_the_tools_without_analyses_lack_the_one_tool_and_the_one_file_and_nothing_else(kit: Any) -> None:
    task = kit.Lab().task
    full = {spec.name: spec for spec in texts.tool_specs(WITH, task)}
    bare = {spec.name: spec for spec in texts.tool_specs(WITHOUT, task)}
    assert list(full) == ["read", "write", "edit", "run_analysis", "commit", "read_commit"]
    assert list(bare) == ["read", "write", "edit", "commit", "read_commit"]
    for name, spec in bare.items():
        parameters = json.loads(json.dumps(full[name].parameters))
        if "file" in parameters["properties"]:
            assert parameters["properties"]["file"]["enum"] == ["program.py", "analysis.py"]
            parameters["properties"]["file"]["enum"] = ["program.py"]
        assert spec == replace(full[name], parameters=parameters)


def test_without_analyses_the_script_is_no_file_and_no_budget_is_told(kit: Any) -> None:
    calls = [kit.call("read", file="analysis.py"), kit.call("run_analysis"), kit.call("commit", description="same")]
    lab = kit.Lab(kit.scripted(kit.say("", *calls)), islands=1, analysis=False)
    result = lab.run()
    assert result.method == "agentic-evolve-no-analysis"
    read, run, commit = lab.answers()
    assert read == "error: there is no file 'analysis.py'; the files are program.py"
    assert run == "error: there is no tool 'run_analysis'; the tools are read, write, edit, commit, read_commit"
    assert set(json.loads(commit)["budget"]) == {"commits_left", "requests_left"}
    assert "analys" not in repr(lab.conversation(0).messages[0])


def test_public_data_are_named_only_where_there_are_any(kit: Any) -> None:
    task = kit.Lab().task
    assert "data/" not in texts.system_prompt(WITH, task)
    assert "data/" in texts.system_prompt(WITH, replace(task, has_public_data=True))


def test_the_prompt_says_what_an_agent_must_know(kit: Any) -> None:
    task = replace(
        kit.Lab().task,
        initial=FileTree({"rule.py": b"", "lib/tables.py": b""}),
        entry="rule.py",
        description="  Pack ${bins} bins.\n@analysis of {braces}\n",
    )
    prompt = texts.system_prompt(Settings(islands=4, bins=7, analyses_per_commit=6), task)
    for part in (
        "Pack ${bins} bins.\n@analysis of {braces}",
        'the fitness, "fitness"; higher is better',
        'MAP-Elites grid over the features "size", "shape" (7 bins per feature',
        "one of 4 islands",
        "migration candidates",
        "- lib/tables.py, rule.py: the candidate",
        "import rule",
        "at most 6 times before the next commit",
        "A failed evaluation is recorded and uses up budget",
        "exception type and the line",
        "The evaluator calls rule.py, which may import the others",
        "write each of its files to continue from it",
        "1. Form a hypothesis",
        "When a message tells you to end your turn, do so at once.",
    ):
        assert part in prompt


def test_a_handoff_is_asked_for_in_four_parts() -> None:
    request = texts.fixed_text("handoff")
    assert [line[:2] for line in request.splitlines() if line[:1].isdigit()] == ["1.", "2.", "3.", "4."]
    assert "call no tool" in request
    assert texts.fixed_text("continue") == "Continue."


def test_a_fence_is_longer_than_any_in_the_file() -> None:
    tree = FileTree({"program.py": b'"""\n````\n"""\n'})
    message = texts.first_message(tree, {"initial": {}})
    assert message.count("`````") == 2
    assert "\n`````\n" in message


def test_a_successor_sees_both_files(kit: Any) -> None:
    files = Workspace(kit.Lab().task.initial, has_analysis=True)
    assert "analysis.py does not exist yet." in texts.successor_message("h", files, {})
    files.write("analysis.py", "print(1)")
    message = texts.successor_message("the handoff $x ${facts}", files, {"budget": {"commits_left": 3}})
    for part in ("the handoff $x ${facts}", "program.py:\n```python\nx = 10", "analysis.py:\n```python\nprint(1)\n```"):
        assert part in message
    assert message.endswith('{"budget": {"commits_left": 3}}')


@pytest.mark.parametrize(
    ("text", "line"), [("a\n b\tc", "a b c"), ("x" * 301, "x" * 297 + "..."), ("x" * 300, "x" * 300)]
)
def test_a_description_takes_one_bounded_line_in_summaries(text: str, line: str) -> None:
    assert texts.one_line(text) == line


def test_several_files_are_told_apart() -> None:
    tree = FileTree({"b.py": b"2\n", "a.json": b"{}"})
    assert texts.tree_text(tree) == "a.json:\n```json\n{}\n```\n\nb.py:\n```python\n2\n```"
    assert texts.tree_text(FileTree({"b.py": b"2"})) == "2"
