"""Replies that are whole and paid for, and odd: the run goes on, and comes to the same programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from orchestrator.domain.conversation import Reply, StopReason
from orchestrator.domain.model_access import Provider
from orchestrator.domain.records import from_record
from orchestrator.storage.journal import SqliteJournal
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.stage import Fault, in_turn, nothing_but
from tests.contract.models_end_to_end.world import World, check_account, check_end
from tests.model_servers.base import Answer, Call, Turn

_CUT_OFF = '{"file": "program.py", "content": "def prio'


def _broken_arguments(turn: Turn) -> Answer:
    return nothing_but(turn, calls=(Call(name="write", arguments='{"file": "program.py", "content": }'),))


def _no_object(turn: Turn) -> Answer:
    return nothing_but(turn, calls=(Call(name="commit", arguments='["what I did"]'),))


def _unknown_tool(turn: Turn) -> Answer:
    return nothing_but(turn, calls=(Call(name="fly to/the moon", arguments="{}"),))


def _one_call_more(turn: Turn) -> Answer:
    return replace(turn, calls=(Call(name="read", arguments='{"file": "program.py"}', id="first"), *turn.calls))


def _same_ids(turn: Turn) -> Answer:
    calls = (Call(name="read", arguments='{"file": "program.py"}'), *turn.calls)
    return replace(turn, calls=tuple(replace(call, id="the-same") for call in calls))


def _one_good_call_of_two(turn: Turn) -> Answer:
    return replace(turn, calls=(Call(name="read", arguments="{", id="first"), *turn.calls))


def _empty(turn: Turn) -> Answer:
    return nothing_but(turn)


def _blank(turn: Turn) -> Answer:
    return nothing_but(turn, text=" \n\n ")


def _only_thoughts(turn: Turn) -> Answer:
    return nothing_but(turn, reasoning="I think that I should write it.")


def _refusal(turn: Turn) -> Answer:
    return nothing_but(turn, text="I cannot help with packing.", stop="refusal")


def _filtered(turn: Turn) -> Answer:
    return nothing_but(turn, text="I wi", stop="content_filter")


def _many_bytes(turn: Turn) -> Answer:
    return replace(turn, text="A long story. " * 75_000, output_tokens=262_500, piece=50_000)


def _order(*parts: str) -> Fault:
    return lambda turn: replace(turn, order=parts, reasoning="First I think.")


def _without_usage(turn: Turn) -> Answer:
    return replace(turn, without_usage=True)


def _served_by_another(turn: Turn) -> Answer:
    return replace(turn, served_by="another-model-20270101")


def check(world: World, undisturbed: Mapping[str, str], *, estimated: bool = False) -> None:
    """The run ends in one go, with the programs of the run that nothing happens to."""
    went = world.go()
    assert went.error is None
    assert went.candidates == undisturbed
    check_account(went, world.stage, estimated=estimated)
    check_end(world, went)


def odd_reply(world: World) -> Reply:
    """The reply that the fault happened to."""
    reported = world.stage.taken[world.stage.first - 1].usage
    with SqliteJournal(world.path, read_only=True) as journal:
        replies = [from_record(Reply, record["reply"]) for _, record in journal.records() if "reply" in record]
    return next(reply for reply in replies if replace(reply.usage, usd=reported.usd) == reported)


@pytest.mark.parametrize(
    "fault",
    [
        _broken_arguments,
        _unknown_tool,
        _one_call_more,
        _empty,
        _many_bytes,
        _order("calls", "text", "reasoning"),
    ],
    ids=["broken arguments", "an unknown tool", "two calls at once", "empty", "1 MB", "another order"],
)
def test_a_run_goes_on_after_an_odd_reply(
    fault: Fault, provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    check(make_world(provider, fault=fault), undisturbed)


def test_a_run_goes_on_after_many_odd_replies(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    faults = [_no_object, _blank, _same_ids, _broken_arguments, _one_good_call_of_two, _order("text", "reasoning")]
    check(make_world(provider, fault=in_turn(*faults), times=len(faults)), undisturbed)


@pytest.mark.parametrize("order", [("redacted", "text", "mystery", "calls"), ("calls", "redacted", "text")])
def test_a_run_goes_on_after_blocks_that_nobody_can_read(
    order: tuple[str, ...], make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    check(make_world(Provider.ANTHROPIC, fault=_order(*order)), undisturbed)


@pytest.mark.parametrize(
    ("fault", "provider", "stop"),
    [
        (_only_thoughts, Provider.ANTHROPIC, StopReason.THOUGHT),
        (_only_thoughts, Provider.OPENAI, StopReason.THOUGHT),
        (_refusal, Provider.ANTHROPIC, StopReason.REFUSAL),
        (_refusal, Provider.OPENAI, StopReason.REFUSAL),
        (_filtered, Provider.OPENAI, StopReason.REFUSAL),
    ],
)
def test_a_reply_without_an_answer_is_a_turn_with_its_reason(
    fault: Fault, provider: Provider, stop: StopReason, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=fault)
    check(world, undisturbed)
    assert odd_reply(world).stop is stop


@pytest.mark.parametrize(("provider", "word"), [(Provider.ANTHROPIC, "max_tokens"), (Provider.OPENAI, "length")])
def test_a_reply_cut_off_in_a_tool_call_carries_nothing_out(
    provider: Provider, word: str, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    def cut_off(turn: Turn) -> Answer:
        return nothing_but(turn, calls=(Call(name="write", arguments=_CUT_OFF),), stop=word)

    world = make_world(provider, fault=cut_off)
    check(world, undisturbed)
    reply = odd_reply(world)
    assert reply.stop is StopReason.LENGTH
    assert [call.arguments for call in reply.message.tool_calls] == [None]


def test_a_usage_that_is_not_reported_is_estimated_and_marked(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=_without_usage)
    check(world, undisturbed, estimated=True)
    with SqliteJournal(world.path, read_only=True) as journal:
        marks = [bool(record["reply"].get("is_estimate")) for _, record in journal.records() if "reply" in record]
    assert marks.count(True) == 1


def test_a_model_that_answers_under_another_name_is_noted_and_recorded(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=_served_by_another)
    went = world.go()
    assert went.candidates == undisturbed
    assert len([note for note in went.notes if "another-model-20270101" in note]) == 1
    assert odd_reply(world).served_by == "another-model-20270101"
    check_account(went, world.stage)
    check_end(world, went)


def test_a_run_whose_every_reply_thinks_first_ends_like_one_that_does_not(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    check(make_world(provider, fault=_order("reasoning", "text", "calls"), first=1, times=None), undisturbed)
