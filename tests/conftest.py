"""Settings for all tests."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import settings

from tests.live.limits import live_usd

# How long an example takes depends on what else the machine does; pytest's own time limit ends what hangs.
settings.register_profile("evolvarium", deadline=None, print_blob=True)
settings.load_profile("evolvarium")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("live", "tests that spend money")
    group.addoption("--run-live", action="store_true", help="run the tests marked `live`, against real providers")
    group.addoption(
        "--live-usd",
        type=live_usd,
        default=Decimal("0.50"),
        metavar="USD",
        help="what they may spend in all (default 0.50)",
    )
    group.addoption(
        "--live-model",
        action="append",
        default=[],
        metavar="PROVIDER=NAME",
        help="ask another model of a provider in tests/live/providers.py; may be given several times",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-live"):
        return
    skip = pytest.mark.skip(reason="spends money; run it by hand with --run-live (`make test-live`)")
    for item in items:
        if item.get_closest_marker("live") is not None:
            item.add_marker(skip)
