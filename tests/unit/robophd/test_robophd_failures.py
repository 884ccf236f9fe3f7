"""How an evolution may fail, and that the contest is held nevertheless."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.conversation import ToolCall
from orchestrator.methods.robophd import texts
from orchestrator.methods.robophd.results import Ending
from tests.evolution_lab import EvolutionLab, replace_evolver, small, without_focus
from tests.evolution_world import World
from tests.scripted_evolver import Turn, call, calls, finish, instructions, made, naive_text, write

REASONING = write("reasoning.md", "I copy the naive tool.")
TOOL = write("tools/analyze.py", naive_text("tools/analyze.py"))
INSTRUCTIONS = write("eval_instructions.md", instructions("a"))
MANIFEST = write("agent.json", naive_text("agent.json"))


def two(world: World, *turns: Turn, **evolver: Any) -> EvolutionLab:
    """A run of two iterations without Deep Focus, whose evolver takes these turns."""
    return EvolutionLab(world, {2: turns}, without_focus(small(iterations=2), **evolver))


def failed(lab: EvolutionLab, told: str) -> None:
    """The evolution of iteration 2 failed, and its contest was held nevertheless."""
    result = lab.run()
    assert result.ending is Ending.ITERATIONS
    assert told in result.failures[2]
    assert lab.record("it/02/evolve/end")["package"] is None
    assert lab.record("it/02/evolve/end")["failure"] == result.failures[2]
    assert "p02" not in {member.id for member in result.members}
    assert list(result.contests[1].right) == ["naive"]


def test_turns_without_a_tool_call_are_answered_and_end_it_at_last(world: World) -> None:
    lab = two(world, "Hm.", "", "So what?", idle_turns=3)
    failed(lab, "it stopped: 3 turns in a row without a tool call")
    said = [message.text for message in lab.conversation(2).messages[1:]]  # type: ignore[union-attr]
    assert said[0] == "Hm."
    assert said[1].startswith("# Continue\n")
    assert "2 more turns" in said[1]
    assert said[2] == "(The reply is empty.)"  # providers refuse an empty message
    assert "1 more turns" in said[3]


def test_a_tool_call_in_between_starts_the_count_of_idle_turns_anew(world: World) -> None:
    lab = two(world, "Hm.", calls(REASONING), "Hm.", made("a"), idle_turns=2)
    assert lab.run().failures == {}


def test_requests_that_are_spent_end_it(world: World) -> None:
    lab = two(world, *[calls(call("read", file="x"))] * 9, requests=5)
    failed(lab, "its 5 requests are spent")
    assert len(lab.evolver.conversations) == 5
    assert lab.record("it/02/evolve/end")["requests"] == 5


def test_calls_that_are_all_malformed_end_it(world: World) -> None:
    bad = calls(ToolCall(id="c", name="write", arguments=None, raw_arguments="{"), call("write", file="x"))
    failed(two(world, *[bad] * 9, requests=4), "its 4 requests are spent")


def test_a_context_that_is_full_ends_it(world: World) -> None:
    lab = two(world, calls(REASONING, write("tools/analyze.py", "#" * 50_000)), made("a"))
    lab.evolver.context_tokens = 10_000
    failed(lab, "its conversation has filled the model's context (10000 tokens)")


def test_a_reply_is_never_longer_than_the_context_has_room_for(world: World) -> None:
    lab = two(world, made("a"))
    lab.evolver.context_tokens = 6_000
    lab.run()
    size = lab.evolver.count_tokens(lab.conversation(2), texts.tool_specs())
    assert [one.max_output_tokens for one in lab.evolver.samplings] == [6_000 - size]


def test_a_package_that_is_there_already_is_no_newcomer(world: World) -> None:
    copy = calls(
        REASONING,
        TOOL,
        write("eval_instructions.md", naive_text("eval_instructions.md")),
        MANIFEST,
        finish("quite new"),
    )
    failed(two(world, copy), "it is the same as naive, which there is already")


def test_after_a_failed_evolution_the_next_one_makes_a_package(world: World) -> None:
    lab = EvolutionLab(world, {3: [made("a")]}, replace_evolver(small(iterations=3), deep_focus=0))
    result = lab.run()
    assert list(result.failures) == [2]
    assert [member.id for member in result.members] == ["naive", "p03"]
    assert set(result.contests[2].right) == {"naive", "p03"}
    told = [event for event in lab.events if event.event.value == "package"]
    assert [(event.subject, event.note) for event in told] == [("", result.failures[2]), ("p03", "has a")]
