"""Sizes in bytes as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sizes import size_words


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (65_536, "64 KiB"),
        (1_000_000, "976.6 KiB"),
        ((1 << 20) - 1, "1024 KiB"),
        (4_194_304, "4 MiB"),
        (1_610_612_736, "1.5 GiB"),
        (1 << 30, "1 GiB"),
        (68_719_476_736, "64 GiB"),
    ],
)
def test_a_size_is_given_in_the_largest_unit_that_it_fills(size_bytes: int, words: str) -> None:
    assert size_words(size_bytes) == words


@given(st.integers(0, 1 << 40))
def test_what_is_said_is_the_size_to_four_digits(size_bytes: int) -> None:
    number, unit = size_words(size_bytes).split()
    factor = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}.get(unit, 1)
    assert float(number) * factor == pytest.approx(size_bytes, rel=1e-3)
