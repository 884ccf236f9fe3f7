"""Deep Focus: a draft is tested on earlier contests and revised; only what is better there takes its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import UserMessage
from orchestrator.methods.robophd.events import Event
from orchestrator.methods.robophd.naive import naive_package
from tests.evolution_lab import EvolutionLab, replace_evolver, small
from tests.evolution_world import World
from tests.scripted_answerer import read_sections
from tests.scripted_evolver import Turn, call, calls, finish, made, naive_text, revised, skilled_package, write

SAME = calls(finish("the same"))


def focused(world: World, *turns: Turn, k: int = 1, iterations: int = 2, **evolver: Any) -> EvolutionLab:
    """A run whose last iteration takes these turns; the others' evolvers write one package each."""
    others: dict[int, Any] = {n: [made("b", note=str(n)), *[SAME] * k] for n in range(2, iterations)}
    settings = replace_evolver(small(iterations=iterations), deep_focus=k, **evolver)
    return EvolutionLab(world, {**others, iterations: turns}, settings)


def focus_messages(lab: EvolutionLab, iteration: int = 2) -> list[dict[str, Any]]:
    """Section to document of every Deep Focus message."""
    said = [m.text for m in lab.conversation(iteration).messages if isinstance(m, UserMessage)]
    return [
        {name: json.loads(text) for name, text in read_sections(one)[1].items()}
        for one in said
        if one.startswith("# Deep focus\n")
    ]


def instructions_of(lab: EvolutionLab, name: str = "p02") -> str:
    digest = lab.record(f"package/{name}")["files"]["eval_instructions.md"]
    return str(lab.journal.get_blob(digest).decode()).rpartition("Skills:")[2].strip()


def test_without_it_no_draft_is_tested(world: World) -> None:
    lab = focused(world, made("a"), revised("a", "b"), k=0)
    lab.run()
    assert focus_messages(lab) == []
    assert Event.FOCUS not in {event.event for event in lab.events}
    assert instructions_of(lab) == "a"
    assert len(lab.evolver.conversations) == 1


def test_a_better_revision_takes_the_drafts_place(world: World) -> None:
    lab = focused(world, made("a"), revised("a", "b", description="both"))
    result = lab.run()
    assert instructions_of(lab) == "a b"
    assert result.members[1].description == "both"
    assert lab.record("it/02/evolve/end")["drafts"] == 2
    tested = [(event.subject, event.figures[event.subject]) for event in lab.events if event.event is Event.FOCUS]
    assert tested == [("p02.0", 0.5), ("p02.1", 0.75)]


@pytest.mark.parametrize("skills", [(), ("c",)], ids=["worse", "equal"])
def test_a_revision_that_is_no_better_is_rolled_back(world: World, skills: tuple[str, ...]) -> None:
    lab = focused(world, made("a", description="the first"), revised(*skills, description="the second"))
    result = lab.run()
    assert instructions_of(lab) == "a"
    assert result.members[1].description == "the first"
    assert lab.record("it/02/evolve/end")["drafts"] == 2


def test_the_draft_is_the_version_before_again_and_the_agent_is_told(world: World) -> None:
    read = calls(call("read", file="eval_instructions.md"))
    lab = focused(world, made("a"), revised("x"), read, revised("a", "b", "c"), k=2, iterations=3)
    lab.run()
    first, second = focus_messages(lab, 3)
    assert "kept" not in first["Results"]
    assert second["Results"]["kept"].startswith("your revision was not better")
    conversation = lab.conversation(3)
    shown = [r.text for m in conversation.messages if hasattr(m, "results") for r in m.results]
    assert any(text.endswith("Skills: a\n") for text in shown)
    assert instructions_of(lab, "p03") == "a b c"
    tested = [event.subject for event in lab.events if event.event is Event.FOCUS and event.iteration == 3]
    assert tested == ["p03.0", "p03.1", "p03.0", "p03.2"]


def test_each_round_goes_one_contest_further_back(world: World) -> None:
    lab = focused(world, made("a"), SAME, SAME, k=2, iterations=4)
    result = lab.run()
    assert [one["Results"]["iteration"] for one in focus_messages(lab, 4)] == [3, 2]
    for message in focus_messages(lab, 4):
        contest = result.contests[message["Results"]["iteration"] - 1]
        assert set(message["Results"]["accuracy"]) == {*contest.right, "draft"}
        assert message["Results"]["questions"] == contest.total


def test_there_are_no_more_rounds_than_contests_before(world: World) -> None:
    lab = focused(world, made("a"), *[SAME] * 5, k=5)
    lab.run()
    assert [one["Results"]["iteration"] for one in focus_messages(lab)] == [1]


def test_it_tells_what_the_draft_alone_did_right_or_wrong_and_what_nobody_did_right(world: World) -> None:
    initial = {"ab": skilled_package("a", "b"), "b": skilled_package("b")}
    lab = EvolutionLab(world, {2: [made("a", "c"), SAME]}, small(iterations=2), initial=initial)
    result = lab.run()
    (message,) = focus_messages(lab)
    assert list(message) == ["Results", "Unique successes", "Unique errors", "Consensus errors", "Tool"]
    assert message["Results"]["accuracy"] == {"ab": 0.75, "b": 0.5, "draft": 0.75}
    databases = list(result.contests[0].questions)

    def skills(section: str) -> list[tuple[str, str]]:
        return [(one["database"], one["question"].rpartition("Skill: ")[2]) for one in message[section]]

    assert skills("Unique successes") == [(name, "c.") for name in databases]
    assert skills("Unique errors") == [(name, "b.") for name in databases]
    assert skills("Consensus errors") == []
    assert list(message["Unique successes"][0]) == ["database", "question", "evidence", "sql"]
    assert list(message["Unique errors"][0]) == ["database", "question", "evidence", "sql", "result", "difference"]


def test_consensus_errors_are_those_that_nobody_has_right(world: World) -> None:
    initial = {"a": skilled_package("a"), "plain": naive_package()}
    lab = EvolutionLab(world, {2: [made("b"), SAME]}, small(iterations=2), initial=initial)
    lab.run()
    (message,) = focus_messages(lab)
    assert {one["question"].rpartition("Skill: ")[2] for one in message["Consensus errors"]} == {"c."}
    assert {one["question"].rpartition("Skill: ")[2] for one in message["Unique successes"]} == {"b."}
    assert message["Unique errors"] == []


def test_of_each_kind_only_so_many_are_shown(world: World) -> None:
    lab = focused(world, made("a"), SAME, errors_shown=2)
    lab.run()
    (message,) = focus_messages(lab)
    assert [len(message[name]) for name in ("Unique successes", "Unique errors", "Consensus errors")] == [2, 0, 2]


def test_a_tool_that_failed_is_told_database_by_database(world: World) -> None:
    broken = calls(
        *[one for one in made("a").tool_calls if "tools/analyze.py" not in one.arguments.values()][:-1],  # type: ignore[union-attr]
        write("tools/analyze.py", "raise KeyError('price')\n"),
        finish(),
    )
    mended = calls(write("tools/analyze.py", naive_text("tools/analyze.py")), finish("mended"))
    lab = focused(world, broken, mended)
    lab.run()
    (message,) = focus_messages(lab)
    assert [one["database"] for one in message["Tool"]] == list(lab.record("it/01/plan")["questions"])
    assert {(one["failure"], one["detail"], one["instead"]) for one in message["Tool"]} == {
        ("error", "error: KeyError: 'price'", "hybrid")
    }
    assert message["Results"]["accuracy"]["draft"] == 0.0
    assert instructions_of(lab) == "a"
    assert lab.record("package/p02")["description"] == "mended"


@pytest.mark.parametrize(
    ("turns", "fields"),
    [
        (["Hm.", "Hm.", "Hm."], {}),
        ([calls(write("agent.json", "{"))] * 3, {"requests": 3}),
        ([calls(write("eval_instructions.md", "Skills: a b c")), "Hm."], {"idle_turns": 1}),
    ],
    ids=["idle", "requests spent", "half revised"],
)
def test_a_revision_that_fails_leaves_the_draft(world: World, turns: list[Turn], fields: dict[str, Any]) -> None:
    lab = focused(world, made("a", description="the draft"), *turns, **fields)
    result = lab.run()
    assert result.failures == {}
    assert instructions_of(lab) == "a"
    assert lab.record("package/p02")["description"] == "the draft"
    assert lab.record("it/02/evolve/end")["drafts"] == 1


def test_a_draft_that_nobody_can_revise_is_not_tested(world: World) -> None:
    lab = focused(world, made("a"), requests=1)
    result = lab.run()
    assert result.failures == {}
    assert Event.FOCUS not in {event.event for event in lab.events}


def test_handing_in_the_same_again_costs_no_second_test(world: World) -> None:
    lab = focused(world, made("a"), calls(write("reasoning.md", "I looked again."), finish("looked at again")))
    lab.run()
    assert [event.subject for event in lab.events if event.event is Event.FOCUS] == ["p02.0"]
    record = lab.record("package/p02")
    assert lab.journal.get_blob(record["files"]["reasoning.md"]) == b"I looked again."
    assert record["description"] == "looked at again"


def test_a_revision_into_a_package_that_is_there_already_is_no_better(world: World) -> None:
    initial = {"abc": skilled_package("a", "b", "c"), "naive": naive_package()}
    copy = calls(
        *(write(path, content.decode()) for path, content in initial["abc"].tree.items()),
        finish("a copy"),
    )
    lab = EvolutionLab(world, {2: [made("a"), copy]}, small(iterations=2), initial=initial)
    result = lab.run()
    assert result.failures == {}
    assert instructions_of(lab) == "a"


def test_a_draft_that_is_there_already_may_become_something_new(world: World) -> None:
    initial = {"old": skilled_package("a")}
    first = calls(
        write("reasoning.md", "A copy, at first."),
        *(write(path, content.decode()) for path, content in initial["old"].tree.items()),
        finish("a copy"),
    )
    lab = EvolutionLab(world, {2: [first, revised("a", "b")]}, small(iterations=2), initial=initial)
    result = lab.run()
    assert result.failures == {}
    assert instructions_of(lab) == "a b"
