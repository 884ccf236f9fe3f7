"""An evolver that is cut off, refuses, only thinks, loses replies or finds its conversation too long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.conversation import AssistantMessage, NativeMessage, StopReason, ToolCall, UserMessage
from orchestrator.errors import ContextTooLong, LostReply, ModelError
from orchestrator.search.replay import Mode
from tests.evolution_lab import EvolutionLab, small, without_focus
from tests.evolution_world import World
from tests.scripted_answerer import ended
from tests.scripted_evolver import Turn, calls, made, results_of, revised, write

TOO_LONG = ContextTooLong("maximum context length is 1000 tokens")
REASONING = write("reasoning.md", "I copy the naive tool.")


def two(world: World, *turns: Turn, **evolver: Any) -> EvolutionLab:
    """A run of two iterations without Deep Focus, whose evolver takes these turns."""
    return EvolutionLab(world, {2: turns}, without_focus(small(iterations=2), **evolver), is_repeatable=False)


def told(lab: EvolutionLab) -> list[str]:
    """After turns without a tool call."""
    return [m.text for m in lab.conversation(2).messages[1:] if isinstance(m, UserMessage)]


def run_again(lab: EvolutionLab) -> None:
    """Resumed and replayed the run and its bill are the same."""
    result, bill = lab.run(), lab.ledger.snapshot()
    for mode in (Mode.PERFORM, Mode.REPLAY):
        lab.mode = mode
        assert lab.run() == result
        assert lab.ledger.snapshot() == bill


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        (StopReason.LENGTH, "Your message reached its maximum length"),
        (StopReason.THOUGHT, "You thought"),
        (StopReason.REFUSAL, "Your message was a refusal"),
        (StopReason.END, "You have not called a tool."),
    ],
)
def test_a_turn_without_a_call_is_answered_with_its_reason_and_idle_turns_still_end_it(
    world: World, stop: StopReason, why: str
) -> None:
    lab = two(world, *[ended(stop, "Hm.")] * 5, idle_turns=3)
    result = lab.run()
    assert result.failures == {2: "it stopped: 3 turns in a row without a tool call"}
    assert [text.split("\n\n")[0] for text in told(lab)] == ["# Continue"] * 2
    assert all(text.split("\n\n")[1].startswith(why) for text in told(lab))
    assert ["2 more turns" in text for text in told(lab)] == [True, False]


def test_an_evolver_cut_off_in_a_tool_call_is_told_so_after_its_results(world: World) -> None:
    broken = ToolCall(id="c", name="write", arguments=None, raw_arguments='{"file": "to')
    lab = two(world, ended(StopReason.LENGTH, "", REASONING, broken), made("a"), idle_turns=1)
    assert lab.run().failures == {}
    (_, first, is_error), (_, second, is_second_error) = results_of(lab.conversation(2))[:2]
    assert (is_error, is_second_error) == (False, True)
    assert "cut off" not in first
    assert second.endswith("Check what was carried out, and do less in one message.")


def test_what_an_evolver_thought_stays_in_its_conversation(world: World) -> None:
    native = NativeMessage(protocol="anthropic", model="fake/evolver", body={"content": [{"type": "thinking"}]})
    first = AssistantMessage(text="Hm.", reasoning="a or b", native=native)
    second = replace(calls(REASONING), reasoning="a", native=native)
    lab = two(world, first, second, made("a"))
    lab.run()
    said = [message for message in lab.conversation(2).messages if isinstance(message, AssistantMessage)]
    assert said[:2] == [first, second]
    run_again(lab)


def test_a_conversation_that_the_provider_finds_too_long_fails_the_evolution_for_its_reason(world: World) -> None:
    lab = two(world, calls(REASONING), TOO_LONG)
    result = lab.run()
    assert result.failures == {
        2: f"its conversation has filled the model's context, as its provider says: {TOO_LONG}",
    }
    assert list(result.contests[1].right) == ["naive"]
    assert lab.record("it/02/evolve/end")["requests"] == 1
    run_again(lab)


def test_a_revision_for_which_there_is_no_room_keeps_the_draft(world: World) -> None:
    lab = EvolutionLab(world, {2: [made("a"), TOO_LONG, revised("b")]}, small(iterations=2), is_repeatable=False)
    result = lab.run()
    assert [member.id for member in result.members] == ["naive", "p02"]
    assert len(lab.evolver.conversations) == 2
    run_again(lab)


@pytest.mark.parametrize("error", [LostReply("broke"), ModelError("no answer")])
def test_lost_replies_and_errors_come_to_the_same_run_and_to_equal_sums(world: World, error: Exception) -> None:
    def lab(*errors: Exception) -> EvolutionLab:
        left = list(errors)

        def first(_: Any) -> AssistantMessage:
            if left:
                raise left.pop(0)
            return made("a")

        return two(world, first)

    plain, found = lab(), lab(error)
    expected = plain.run()
    if not isinstance(error, LostReply):
        with pytest.raises(ModelError, match="no answer"):
            found.run()
    assert found.run() == expected
    bill, spent = plain.ledger.snapshot(), found.ledger.snapshot()
    assert spent.lost_count == isinstance(error, LostReply)
    assert spent.spent.usage == bill.spent.usage + spent.lost.usage
    assert found.state == plain.state
    run_again(found)


def test_records_name_the_role_and_the_model_that_pays(world: World) -> None:
    lab = two(world, made("a"))
    lab.run()
    accounts = {
        (record["account"]["role"], record["account"]["model"])
        for key, record in lab.journal.records()
        if "/request/" in key
    }
    assert accounts == {("evolver", "fake/evolver"), ("answerer", "fake/answerer")}
