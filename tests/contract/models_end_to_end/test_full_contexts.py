"""A server whose model takes less than we think: the run compacts its conversation, and goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from orchestrator.domain.model_access import Provider
from orchestrator.storage.journal import SqliteJournal
from tests.contract.models_end_to_end.conftest import WorldMaker
from tests.contract.models_end_to_end.world import SETTINGS, World, check_account, check_end, check_ledger
from tests.model_lab import NAMES
from tests.model_servers.anthropic_rules import tokens_of
from tests.model_servers.base import Answer, Turn

LAST = 4
"""Number of the last request before the server takes none that is longer; one commit is made by then."""


def limit(world: World, tokens: int) -> None:
    """What the server takes from now on, by its own count."""
    if world.provider is Provider.ANTHROPIC:
        world.server.models = {NAMES[world.provider]: (tokens, 64_000)}
    else:
        world.server.strictness = replace(world.server.strictness, context_tokens=tokens)


def size_of_the_last(world: World) -> int:
    """Of the request that is being answered, by the server's count."""
    body = world.server.requests[-1].body
    return tokens_of(body) if world.provider is Provider.ANTHROPIC else len(json.dumps(body["messages"])) // 4


def test_a_conversation_that_is_too_long_for_its_server_is_handed_over_and_the_search_goes_on(
    provider: Provider, make_world: WorldMaker
) -> None:
    world = make_world(provider, world={"settings": SETTINGS.model_copy(update={"islands": 1})})
    happens: list[Callable[[], None]] = [
        lambda: limit(world, size_of_the_last(world)),  # it cannot grow any more, so no handoff of all of it fits
        lambda: limit(world, 1_000_000),  # the handoff was given; its successor has room
    ]

    def fault(turn: Turn) -> Answer:
        happens.pop(0)()
        return turn

    world.stage.fault, world.stage.first, world.stage.times = fault, LAST, len(happens)
    went = world.go()
    assert went.error is None
    assert went.result is not None
    assert went.result.stops == {0: "commits"}
    assert sorted(went.candidates) == ["i0/commit/c01", "i0/commit/c02"]
    with SqliteJournal(world.path, read_only=True) as journal:
        refused = [key for key, record in journal.records() if "context_too_long" in record]
    # The next turn, the handoff of the whole conversation, and that of one exchange less.
    assert refused == ["i0/request/0005", "i0/request/0006", "i0/request/0007"]
    assert len(world.server.refused) == 3
    assert "handoff" in json.dumps(world.server.requests[LAST].body["messages"][-1])
    assert "handoff" in json.dumps(world.server.requests[LAST + 1].body["messages"][:2])
    assert went.spending.lost == 0
    check_account(went, world.stage)
    check_ledger(went)
    check_end(world, went)
