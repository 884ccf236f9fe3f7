"""Equal keys give equal draws, different keys different ones, whatever happened in between."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.search.streams import derive_seed, stream

ids = st.lists(st.integers(-5, 5) | st.text(max_size=4), max_size=3).map(tuple)
keys = st.tuples(st.integers(), st.text(max_size=6), ids)


@given(keys, keys)
def test_streams_are_equal_exactly_when_their_keys_are(
    one: tuple[int, str, tuple[int | str, ...]], other: tuple[int, str, tuple[int | str, ...]]
) -> None:
    first = stream(one[0], one[1], *one[2]).integers(1 << 62, size=4)
    second = stream(other[0], other[1], *other[2]).integers(1 << 62, size=4)
    assert np.array_equal(first, second) == (one == other)
    assert np.array_equal(first, stream(one[0], one[1], *one[2]).integers(1 << 62, size=4))


@given(keys)
def test_a_seed_fits_every_provider(key: tuple[int, str, tuple[int | str, ...]]) -> None:
    seed = derive_seed(key[0], key[1], *key[2])
    assert 0 <= seed < 2**31
    assert seed == derive_seed(key[0], key[1], *key[2])


def test_the_parts_of_a_key_do_not_run_together() -> None:
    seeds = {
        derive_seed(1, "a", "b"),
        derive_seed(1, "ab"),
        derive_seed(1, "a", "b", ""),
        derive_seed(1, 'a", "b'),
        derive_seed(11, "a", "b"),
        derive_seed(1, "a", 1),
        derive_seed(1, "a", "1"),
    }
    assert len(seeds) == 7


def test_seeds_are_the_same_on_every_machine_and_in_every_version() -> None:
    assert derive_seed(0, "request", 1, 42) == 1180996208
    assert stream(0, "request", 1, 42).integers(1000, size=4).tolist() == [716, 210, 867, 900]


def test_global_random_state_is_not_touched() -> None:
    before = np.random.get_state()[1].copy()
    stream(1, "a").random()
    assert np.array_equal(before, np.random.get_state()[1])
