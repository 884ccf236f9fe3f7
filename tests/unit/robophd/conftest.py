"""The world that RoboPhD's runs take place in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.evolution_world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()
