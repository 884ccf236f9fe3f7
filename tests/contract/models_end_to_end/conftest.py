"""Runs that nothing happens to, and what they have measured, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.model_access import Provider
from tests.contract.models_end_to_end.stage import Stage
from tests.contract.models_end_to_end.world import RememberingBench, World, check_account, check_end, server_for

WorldMaker = Callable[..., World]
BOTH = list(Provider)


@pytest.fixture(scope="session")
def bench() -> RememberingBench:
    return RememberingBench()


@pytest.fixture(scope="session")
def undisturbed(bench: RememberingBench, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Candidates of the run that nothing happens to, the same with both protocols."""
    found = []
    for provider in BOTH:
        stage = Stage(provider=provider)
        with server_for(provider, stage) as server:
            folder = tmp_path_factory.mktemp(provider.value)
            world = World(provider=provider, folder=folder, bench=bench, stage=stage, server=server)
            went = world.go()
            check_account(went, stage)
            check_end(world, went)
            assert went.result is not None
            assert went.result.best_metrics is not None
            assert went.result.initial_metrics is not None
            assert went.result.best_metrics["fitness"] > went.result.initial_metrics["fitness"]
            assert len(went.candidates) == 4
            found.append(went.candidates)
    assert found[0] == found[1]
    return found[0]


@pytest.fixture(params=BOTH, ids=lambda provider: provider.value)
def provider(request: pytest.FixtureRequest) -> Provider:
    chosen: Provider = request.param
    return chosen


@pytest.fixture
def make_world(
    bench: RememberingBench,
    undisturbed: Mapping[str, str],
    tmp_path: Path,
) -> Iterator[WorldMaker]:
    """Makes a run that has not begun, at a server of its own."""
    del undisturbed  # it fills the bench
    with ExitStack() as stack:

        def make(provider: Provider, *, world: Mapping[str, Any] | None = None, **fields: Any) -> World:
            stage = Stage(provider=provider, **fields)
            server = stack.enter_context(server_for(provider, stage))
            return World(provider=provider, folder=tmp_path, bench=bench, stage=stage, server=server, **(world or {}))

        yield make
