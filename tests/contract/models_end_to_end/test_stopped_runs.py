"""Faults that last longer than a run is patient: it stops and says what to do, and once they are mended it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestrator.cli.sql_endings import kept
from orchestrator.domain.model_access import Patience, Provider
from orchestrator.errors import LostReply, ModelError, ModelUnavailable
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.stage import Fault
from tests.contract.models_end_to_end.world import (
    PATIENCE,
    Went,
    World,
    check_account,
    check_end,
    check_ledger,
    rename,
    server_for,
)
from tests.model_servers.base import KEY, Answer, Trouble, Turn
from tests.model_servers.openai_errors import INSUFFICIENT_QUOTA

BRIEF = Patience(chunk_seconds=0.3, request_seconds=40, outage_seconds=40)
"""For a server that answers nothing any more; one that answers may need longer."""
HASTY = Patience(chunk_seconds=40, request_seconds=0.3, outage_seconds=40)
SHORT_OUTAGE = Patience(chunk_seconds=20, request_seconds=40, outage_seconds=0.4)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault that lasts, and what the run says of it."""

    fault: Fault
    message: str
    """What the error has, among other things."""
    patience: Patience = PATIENCE


def trouble(**fields: Any) -> Fault:
    """The same trouble with every request."""
    return lambda turn: Trouble(turn=turn, **fields)


def check_stopped(world: World, went: Went, undisturbed: Mapping[str, str], message: str) -> None:
    """The run has kept all it was given until then, and tells people how it goes on."""
    assert went.error is not None
    assert message in str(went.error)
    assert "`evolvarium resume run-1`" in str(kept(went.error, "run-1"))
    assert KEY not in str(went.error)
    assert (went.pause is None) == (went.error.exit_code != 7)
    assert went.candidates.items() <= undisturbed.items()
    assert "run/end" not in went.keys
    check_account(went, world.stage)
    check_ledger(went)


def check_resumed(world: World, before: Went, undisturbed: Mapping[str, str], **fields: Any) -> None:
    """The run goes on where it was stopped, asks for nothing it has, and ends as if nothing had happened."""
    asked = len(world.stage.taken)
    had = {taken.body for taken in world.stage.taken if taken.outcome == "whole"}
    went = world.go(**fields)
    assert went.error is None
    assert went.candidates == undisturbed
    assert went.keys > before.keys
    assert had.isdisjoint(taken.body for taken in world.stage.taken[asked:])
    assert went.spending.lost == before.spending.lost
    assert went.spending.lost_usage == before.spending.lost_usage
    check_account(went, world.stage)
    check_ledger(went)
    check_end(world, went)


@pytest.mark.parametrize(
    "case",
    [
        Case(fault=trouble(status=429, headers={"Retry-After": "3600"}), message="asks to wait"),
        Case(fault=trouble(status=500), message="has served nothing", patience=SHORT_OUTAGE),
        Case(fault=trouble(status=401), message="does not serve us"),
        Case(fault=trouble(status=402), message="top up the account"),
    ],
    ids=["429 for an hour", "500 for ten minutes", "401", "402"],
)
def test_a_provider_that_does_not_serve_pauses_the_run_at_no_cost(
    case: Case, provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=case.fault, times=None)
    went = world.go(patience=case.patience)
    assert isinstance(went.error, ModelUnavailable)
    check_stopped(world, went, undisturbed, case.message)
    assert went.spending.lost == 0
    world.stage.happens(None)
    check_resumed(world, went, undisturbed)


def test_a_quota_that_is_spent_is_no_reason_to_wait(make_world: WorldMaker, undisturbed: Mapping[str, str]) -> None:
    world = make_world(Provider.OPENAI, fault=trouble(status=429, body=INSUFFICIENT_QUOTA), times=None)
    went = world.go()
    assert isinstance(went.error, ModelUnavailable)
    check_stopped(world, went, undisturbed, "top up the account")
    world.stage.happens(None)
    check_resumed(world, went, undisturbed)


def test_a_revoked_key_pauses_the_run_until_it_is_set_again(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider)
    at_the_fifth(world, world.server.revoke)
    went = world.go()
    assert isinstance(went.error, ModelUnavailable)
    check_stopped(world, went, undisturbed, "set the environment variable TEST_MODEL_KEY again")
    assert went.spending.lost == 0
    world.server.key = KEY
    check_resumed(world, went, undisturbed)


def test_a_model_that_has_been_renamed_is_found_again_by_a_models_file(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider)
    at_the_fifth(world, lambda: rename(world.server, "the-new-name"))
    went = world.go()
    assert isinstance(went.error, ModelUnavailable)
    check_stopped(world, went, undisturbed, "define the model's new name in a models file")
    check_resumed(world, went, undisturbed, model="the-new-name")


def test_thoughts_of_a_model_keep_no_run_from_going_on_under_its_new_name(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider)

    def fault(turn: Turn) -> Answer:
        if len(world.stage.taken) == 4:
            rename(world.server, "the-new-name")
        return replace(turn, reasoning="First I think.")

    world.stage.fault, world.stage.first, world.stage.times = fault, 1, None
    went = world.go()
    check_stopped(world, went, undisturbed, "define the model's new name in a models file")
    check_resumed(world, went, undisturbed, model="the-new-name")


def test_a_server_that_has_gone_is_replaced_by_another(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=trouble(status=503), times=None)
    went = world.go(patience=SHORT_OUTAGE)
    world.server.__exit__(None, None, None)
    again = world.go(patience=SHORT_OUTAGE)
    assert isinstance(again.error, ModelUnavailable)
    check_stopped(world, again, undisturbed, "cannot be reached")
    assert (again.spending, again.candidates) == (went.spending, went.candidates)
    world.stage.happens(None)
    with server_for(provider, world.stage) as other:
        world.server = other
        check_resumed(world, again, undisturbed)


@pytest.mark.parametrize(
    "case",
    [
        Case(fault=trouble(silent_seconds=600), message="never answered", patience=BRIEF),
        Case(fault=trouble(silent_seconds=0.5), message="no whole reply within", patience=HASTY),
        Case(fault=trouble(drop_after=1), message="the connection broke"),
        Case(fault=trouble(raw=b'event: ping\ndata: {"type": "ping"}\n\n'), message="no whole reply"),
    ],
    ids=["never answers", "answers too late", "drops", "sends nonsense"],
)
def test_replies_that_are_lost_again_and_again_stop_the_run(
    case: Case, provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=trouble(status=401), times=None)
    begun = world.go()
    world.stage.happens(case.fault)
    went = world.go(patience=case.patience)
    assert isinstance(went.error, LostReply)
    assert went.error.exit_code == 5
    check_stopped(world, went, undisturbed, case.message)
    assert went.spending.lost >= 3
    assert went.spending.requests == begun.spending.requests
    world.stage.happens(None)
    check_resumed(world, went, undisturbed)


def test_a_request_that_is_refused_for_good_stops_the_run_at_no_cost(
    provider: Provider, make_world: WorldMaker, undisturbed: Mapping[str, str]
) -> None:
    world = make_world(provider, fault=trouble(status=400), times=None)
    went = world.go()
    assert type(went.error) is ModelError
    check_stopped(world, went, undisturbed, "refuses the request")
    assert went.spending.lost == 0
    world.stage.happens(None)
    check_resumed(world, went, undisturbed)


def at_the_fifth(world: World, happens: Callable[[], object]) -> None:
    """Something happens while the fifth request is answered, which still has its reply."""

    def fault(turn: Turn) -> Answer:
        happens()
        return turn

    world.stage.fault, world.stage.first = fault, 5
