"""Calls that fail while the run is patient: it goes on by itself, and pays for what it may have cost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from orchestrator.domain.model_access import Patience, Provider
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.stage import Fault, in_turn
from tests.contract.models_end_to_end.world import check_account, check_end
from tests.model_servers.anthropic_errors import error_event
from tests.model_servers.base import Answer, Trouble, Turn

SHORT = 1.0
"""Seconds; enough for any whole reply of these servers."""


def never_answered(turn: Turn) -> Answer:
    return Trouble(silent_seconds=600, turn=turn)


def too_late(turn: Turn) -> Answer:
    return Trouble(silent_seconds=SHORT + 0.5, turn=turn)


def cut_off(turn: Turn) -> Answer:
    return Trouble(drop_after=3, turn=turn)


def cut_off_at_once(turn: Turn) -> Answer:
    return Trouble(drop_after=0, turn=turn)


def stalled(turn: Turn) -> Answer:
    return Trouble(stall_after=2, stall_seconds=600, turn=turn)


def no_reply_at_all(_: Turn) -> Answer:
    return Trouble(raw=b"<html><title>Welcome to the hotel</title></html>")


@pytest.mark.parametrize(
    "faults", [(cut_off, cut_off), (cut_off_at_once, no_reply_at_all)], ids=["cut off", "no reply"]
)
def test_a_reply_that_breaks_off_is_paid_for_in_full_and_asked_for_again(
    faults: tuple[Fault, Fault], provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=in_turn(*faults), times=2)
    went = world.go()
    assert went.error is None
    assert went.candidates == undisturbed
    assert went.spending.lost == 2
    assert went.spending.lost_usage.usd
    check_account(went, world.stage)
    check_end(world, went)


@pytest.mark.parametrize("fault", [never_answered, stalled])
def test_a_reply_that_does_not_come_is_waited_for_no_longer_than_a_chunk_may_take(
    fault: Fault, provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=fault)
    went = world.go(patience=Patience(chunk_seconds=SHORT, request_seconds=40, outage_seconds=40))
    assert went.error is None
    assert went.candidates == undisturbed
    assert went.spending.lost == 1
    check_account(went, world.stage)
    check_end(world, went)


def test_an_answer_after_the_deadline_disturbs_nobody(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=too_late)
    went = world.go(patience=Patience(chunk_seconds=40, request_seconds=SHORT, outage_seconds=40))
    assert went.error is None
    assert went.candidates == undisturbed
    assert went.spending.lost == 1
    check_account(went, world.stage)
    check_end(world, went)


def test_an_error_in_a_stream_counts_as_lost(make_world: WorldMaker, undisturbed: Mapping[str, str]) -> None:
    world = make_world(Provider.ANTHROPIC, fault=lambda _: Trouble(raw=error_event(529)))
    went = world.go()
    assert went.candidates == undisturbed
    assert went.spending.lost == 1
    check_account(went, world.stage)
    check_end(world, went)


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(status=429, headers={"Retry-After-Ms": "40"}),
        Trouble(status=500),
        Trouble(status=503, body="<html><title>Bad gateway</title></html>", headers={"Retry-After-Ms": "10"}),
    ],
    ids=["429", "500", "503"],
)
def test_a_storm_of_errors_costs_nothing_but_time(
    trouble: Trouble, provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=lambda _: trouble, times=7)
    went = world.go()
    assert went.error is None
    assert went.candidates == undisturbed
    assert world.stage.count("refused") == 7
    assert went.spending.lost == 0
    check_account(went, world.stage)
    check_end(world, went)
