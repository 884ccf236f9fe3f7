"""What an evolver's tools do, and that whatever it does wrong with them is told and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.agent_packages import MAX_TEXT_BYTES, MAX_TOOL_FILES
from orchestrator.domain.conversation import Conversation, ToolCall
from tests.evolution_lab import EvolutionLab, replace_evolver, small, without_focus
from tests.evolution_world import World
from tests.scripted_evolver import (
    Turn,
    call,
    calls,
    finish,
    instructions,
    made,
    naive_text,
    results_of,
    skilled_package,
    write,
)

REASONING = write("reasoning.md", "I copy the naive tool.")
TOOL = write("tools/analyze.py", naive_text("tools/analyze.py"))
INSTRUCTIONS = write("eval_instructions.md", instructions("a"))
MANIFEST = write("agent.json", naive_text("agent.json"))


def two(world: World, *turns: Turn, **evolver: Any) -> EvolutionLab:
    """A run of two iterations without Deep Focus, whose evolver takes these turns."""
    return EvolutionLab(world, {2: turns}, without_focus(small(iterations=2), **evolver))


def answers(world: World, *turns: Turn, **evolver: Any) -> list[tuple[str, str, bool]]:
    """What the tools said; after the package is handed in, there is one more request that shows it."""
    lab = EvolutionLab(world, {2: turns}, replace_evolver(small(iterations=2), deep_focus=1, **evolver))
    lab.run()
    return results_of(lab.conversation(2))


def test_a_package_is_written_read_edited_and_handed_in(world: World) -> None:
    found = answers(
        world,
        calls(REASONING, write("tools/analyze.py", "print(1)\n"), TOOL, INSTRUCTIONS, MANIFEST),
        calls(call("read", file="reasoning.md"), call("edit", file="reasoning.md", old="copy", new="keep")),
        calls(call("read", file="reasoning.md"), finish()),
    )
    assert [is_error for _, _, is_error in found] == [False] * 9
    assert json.loads(found[0][1]) == {"file": "reasoning.md", "bytes": 22}
    assert [found[5][1], found[7][1]] == ["I copy the naive tool.", "I keep the naive tool."]
    assert json.loads(found[6][1]) == {"file": "reasoning.md", "bytes": 22}
    assert json.loads(found[8][1]) == {"accepted": True}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (TOOL, "write reasoning.md first"),
        (INSTRUCTIONS, "write reasoning.md first"),
        (call("read", file="reasoning.md"), "there is no file 'reasoning.md' in the draft; it has no file yet"),
        (call("edit", file="agent.json", old="a", new="b"), "there is no file 'agent.json'"),
        (write("reasoning.md", "\ud800"), "the arguments of write are no JSON object"),
        (write("reasoning.md", "x" * (MAX_TEXT_BYTES + 1)), "at most 262144 are allowed"),
        (finish(), "the package has no 'agent.json'"),
        (call("try_tool", database="demo/d2"), "the package has no 'agent.json'"),
        (call("try_tool", database="demo/s0"), "the tool cannot be tried on 'demo/s0'; it can on demo/d2, "),
        (call("read_package", id="p99", file="agent.json"), "there is no package 'p99' in the pool; there are naive"),
        (call("read_package", id="naive", file="x"), "package naive has no file 'x'; it has agent.json, "),
        (call("read_errors", id="p99", database="demo/d2"), "there is no package 'p99' in the pool"),
        (call("read_errors", id="naive", database="demo/s0"), "naive was asked nothing about 'demo/s0'; it was asked"),
        (call("delete", file="x"), "there is no tool 'delete'"),
        (call("finish"), "the arguments of finish lack 'description'"),
        (call("read", file="a", line="1"), "have the unknown 'line'"),
        (call("read", file=7), "'file' of read must be a string, not int"),
        (ToolCall(id="c", name="read", arguments=None, raw_arguments="{"), "are no JSON object"),
    ],
)
def test_what_it_does_wrong_is_told_and_changes_nothing(world: World, wanted: ToolCall, told: str) -> None:
    lab = two(world, calls(wanted), made("a"))
    assert lab.run().champion == "p02"
    name, text, is_error = results_of(lab.conversation(2))[0]
    assert (name, is_error) == (wanted.name, True)
    assert text.startswith("error: ")
    assert told in text


@pytest.mark.parametrize(
    "file",
    ["tools/sub/x.py", "tools/my-tool.py", "tools/9.py", "tools/x.txt", "notes.md", "../x.py", "tools/../agent.json"],
)
def test_no_file_can_be_written_that_would_keep_the_package_from_being_handed_in(world: World, file: str) -> None:
    found = answers(world, calls(REASONING, write(file, "x")), made("a"))
    assert found[1][2]
    assert "does not belong to a package" in found[1][1]
    assert found[-1] == ("finish", '{"accepted": true}', False)


def test_one_tool_file_too_many_is_refused_and_those_that_are_there_can_be_written_again(world: World) -> None:
    many = [write(f"tools/part{n}.py", "x = 1\n") for n in range(MAX_TOOL_FILES + 1)]
    found = answers(world, calls(REASONING, *many, many[0]), "Hm.")
    assert [is_error for _, _, is_error in found] == [False] * (MAX_TOOL_FILES + 1) + [True, False]
    assert "16 tool files already" in found[-2][1]


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (write("agent.json", "{}"), "agent.json: command: Field required"),
        (write("agent.json", '{"version": 1, "command": ["tools/other.py"], "output": "stdout"}'), "tools/other.py"),
        (write("eval_instructions.md", "\0"), "'eval_instructions.md' holds a NUL character"),
    ],
)
def test_a_package_that_is_none_is_not_taken(world: World, broken: ToolCall, told: str) -> None:
    found = answers(world, calls(REASONING, TOOL, INSTRUCTIONS, MANIFEST, broken, finish()), made("a"))
    assert told in found[5][1]
    assert found[5][2]
    assert found[-1] == ("finish", '{"accepted": true}', False)


def test_after_it_is_handed_in_nothing_of_the_same_message_counts(world: World) -> None:
    whole = calls(*made("a").tool_calls, write("agent.json", "broken"), finish("again"))
    lab = EvolutionLab(world, {2: [whole, calls(finish("kept"))]}, small(iterations=2))
    result = lab.run()
    found = results_of(lab.conversation(2))
    assert [is_error for _, _, is_error in found[5:7]] == [True, True]
    assert "handed in, so this was not done" in found[5][1]
    assert result.members[1].package.tree["agent.json"] == naive_text("agent.json").encode()
    assert result.failures == {}


def test_errors_hold_question_query_result_and_shape_of_the_difference(world: World) -> None:
    found = answers(world, calls(call("read_errors", id="naive", database="demo/d2")))
    document = json.loads(found[0][1])
    assert (document["agent"], document["database"], document["omitted"]) == ("naive", "demo/d2", 0)
    assert [error["question"].rpartition("Skill: ")[2] for error in document["errors"]] == ["a.", "b.", "c."]
    first = document["errors"][0]
    assert list(first) == ["question", "evidence", "sql", "result", "difference"]
    assert (first["sql"], first["result"]["rows"]) == ("SELECT 1 AS one, 2 AS two", [[1, 2]])
    assert first["difference"][0] == "1 column too many"


def test_only_so_many_errors_are_shown_and_the_others_counted(world: World) -> None:
    found = answers(world, calls(call("read_errors", id="naive", database="demo/d2")), errors_shown=2)
    document = json.loads(found[0][1])
    assert (len(document["errors"]), document["omitted"]) == (2, 1)


def test_errors_of_a_package_are_there_for_every_database_it_was_ever_asked_about(world: World) -> None:
    seen: dict[str, tuple[str, bool]] = {}

    def read_all(_: Conversation) -> Any:
        return calls(*(call("read_errors", id="naive", database=f"demo/d{n}") for n in range(5)))

    lab = EvolutionLab(world, {2: [made("a")], 3: [read_all, made("b")]}, without_focus(small(iterations=3)))
    result = lab.run()
    for (_, text, is_error), n in zip(results_of(lab.conversation(3)), range(5), strict=False):
        seen[f"demo/d{n}"] = (text, is_error)
    asked = {name for contest in result.contests[:2] for name in contest.questions}
    assert asked - set(result.contests[1].questions), "the seed should give an older database"
    assert {name for name, (_, is_error) in seen.items() if not is_error} == asked


def test_a_package_that_never_competed_has_no_errors(world: World) -> None:
    initial = {f"i{n}": skilled_package("a", note=str(n)) for n in range(4)}
    turns = {2: [calls(call("read_errors", id="i3", database="demo/d2")), made("b")]}
    lab = EvolutionLab(world, turns, without_focus(small(iterations=2)), initial=initial)
    lab.run()
    assert results_of(lab.conversation(2))[0][1:] == (
        "error: package i3 was in no contest yet, so there are no errors of it",
        True,
    )


def test_a_tool_is_tried_for_real_and_told_how_it_failed(world: World) -> None:
    database = "demo/d2"
    broken = write("tools/analyze.py", "raise ValueError('cannot')\n")
    chance = write("tools/analyze.py", "import os\nopen('tool_output/schema.txt', 'w').write(os.urandom(9).hex())\n")
    silent = write("tools/analyze.py", "pass\n")
    long = write("tools/analyze.py", "open('tool_output/schema.txt', 'w').write('word ' * 10_000)\n")
    attempt = call("try_tool", database=database)
    found = answers(
        world,
        calls(REASONING, INSTRUCTIONS, MANIFEST, TOOL, attempt, broken, attempt, chance, attempt, silent, attempt),
        calls(long, attempt),
    )
    tried = [json.loads(text) for name, text, _ in found if name == "try_tool"]
    assert tried[0]["ok"] is True
    assert tried[0]["text"].startswith("CREATE TABLE item2")
    assert (tried[0]["omitted_characters"], tried[0]["tries_left"]) == (0, 11)
    assert tried[0]["tokens"] > 10
    assert tried[1] == {
        "ok": False,
        "failure": "error",
        "detail": "error: ValueError: cannot",
        "findings": [],
        "tries_left": 10,
    }
    assert [one.get("failure") for one in tried[2:]] == ["not-deterministic", "no-output", None]
    assert (len(tried[4]["text"]), tried[4]["omitted_characters"]) == (12_000, 38_000)


def test_tries_are_counted_and_a_refused_one_costs_none(world: World) -> None:
    attempt = call("try_tool", database="demo/d2")
    found = answers(world, calls(attempt), calls(REASONING, INSTRUCTIONS, MANIFEST, TOOL, attempt, attempt), tries=1)
    assert [is_error for name, _, is_error in found if name == "try_tool"] == [True, False, True]
    assert found[-1][1] == "error: no try is left; finish the package"
