"""OpenAI's other protocol, responses: the faults that come in a form of their own there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from orchestrator.domain.model_access import Provider
from orchestrator.errors import LostReply, ModelUnavailable
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.stage import Fault, in_turn, nothing_but
from tests.contract.models_end_to_end.world import World, check_account, check_end, check_ledger, rename
from tests.model_servers.base import KEY, Answer, Call, Trouble, Turn

_CUT_OFF = '{"file": "program.py", "content": "def prio'


@pytest.fixture
def world(make_world: WorldMaker) -> World:
    return make_world(Provider.OPENAI, api="responses")


def check(world: World, undisturbed: Mapping[str, str], *, lost: int = 0, estimated: bool = False) -> None:
    """The run ends in one go, with the programs of the run that nothing happens to."""
    went = world.go()
    assert went.error is None
    assert went.candidates == undisturbed
    assert went.spending.lost == lost
    check_account(went, world.stage, estimated=estimated)
    check_end(world, went)


def thinking(turn: Turn) -> Turn:
    return replace(turn, reasoning="First I think.")


def test_a_run_goes_on_after_many_odd_replies(world: World, undisturbed: Mapping[str, str]) -> None:
    faults: list[Fault] = [
        thinking,
        lambda turn: nothing_but(turn, calls=(Call(name="write", arguments='{"file": }'),)),
        lambda turn: nothing_but(turn, calls=(Call(name="fly", arguments="{}"),)),
        lambda turn: replace(turn, calls=(Call(name="read", arguments='{"file": "program.py"}'), *turn.calls)),
        nothing_but,
        lambda turn: nothing_but(turn, reasoning="I think that I should write it."),
        lambda turn: nothing_but(turn, text="I cannot help with packing.", stop="refusal"),
        lambda turn: nothing_but(turn, calls=(Call(name="write", arguments=_CUT_OFF),), stop="max_output_tokens"),
        lambda turn: replace(thinking(turn), order=("calls", "text", "reasoning")),
        lambda turn: replace(turn, served_by="another-model"),
    ]
    world.stage.fault, world.stage.first, world.stage.times = in_turn(*faults), 1, len(faults)
    check(world, undisturbed)


def test_a_reply_of_1_mb_whose_usage_is_missing_is_taken(world: World, undisturbed: Mapping[str, str]) -> None:
    world.stage.fault = lambda turn: replace(turn, text="A long story. " * 75_000, piece=50_000, without_usage=True)
    check(world, undisturbed, estimated=True)


@pytest.mark.parametrize(
    "fault",
    [
        lambda turn: Trouble(drop_after=5, turn=turn),
        lambda turn: Trouble(turn=replace(turn, stop="failed")),
        lambda _: Trouble(raw=b"event: response.created\ndata: {}\n\n"),
    ],
    ids=["drops", "fails", "nonsense"],
)
def test_a_reply_that_breaks_off_is_paid_for_and_asked_for_again(
    fault: Fault, world: World, undisturbed: Mapping[str, str]
) -> None:
    world.stage.fault = fault
    check(world, undisturbed, lost=1)


def test_a_stream_that_always_breaks_stops_the_run_until_it_is_mended(
    world: World, undisturbed: Mapping[str, str]
) -> None:
    world.stage.fault, world.stage.times = (lambda turn: Trouble(drop_after=3, turn=turn)), None
    went = world.go()
    assert isinstance(went.error, LostReply)
    check_account(went, world.stage)
    check_ledger(went)
    world.stage.happens(None)
    check(world, undisturbed, lost=went.spending.lost)


@pytest.mark.parametrize("end", ["revoked", "renamed", "quota"])
def test_a_model_that_is_out_of_reach_pauses_the_run_whose_thoughts_do_not_keep_it_from_going_on(
    end: str, world: World, undisturbed: Mapping[str, str]
) -> None:
    def fault(turn: Turn) -> Answer:
        if len(world.stage.taken) == 4 and end == "revoked":
            world.server.revoke()
        elif len(world.stage.taken) == 4 and end == "renamed":
            rename(world.server, "the-new-name")
        elif len(world.stage.taken) >= 4 and end == "quota":
            body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
            return Trouble(status=429, body=body)
        return thinking(turn)

    world.stage.fault, world.stage.first, world.stage.times = fault, 1, None
    went = world.go()
    assert isinstance(went.error, ModelUnavailable)
    assert went.pause is not None
    assert went.spending.lost == 0
    check_account(went, world.stage)
    check_ledger(went)
    world.server.key = KEY
    world.stage.happens(thinking)
    again = world.go(model="the-new-name") if end == "renamed" else world.go()
    assert again.error is None
    assert again.candidates == undisturbed
    assert ("encrypted_content" in json.dumps(world.server.requests[-1].body)) == (end != "renamed")
    check_account(again, world.stage)
    check_end(world, again)
