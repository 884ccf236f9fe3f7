"""Random streams keyed by what they are for, so that the order in which work completes cannot change a result.

A key (run seed, purpose, ids) is hashed with SHA-256 into the entropy of NumPy's `SeedSequence`, which spreads it over
the generator's state: streams of different keys are independent for all practical purposes.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

_SEED_BITS = 31  # what every provider's seed field holds, also a signed 32-bit one


def stream(run_seed: int, purpose: str, *ids: int | str) -> np.random.Generator:
    """A generator at the beginning of this key's stream; equal keys give equal draws.

    Args:
        run_seed: Any integer.
        purpose: What the numbers are for, for instance `request`.
        ids: Which of them, for instance island and number; `1` and `"1"` are different keys.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(_entropy(run_seed, purpose, ids))))


def derive_seed(run_seed: int, purpose: str, *ids: int | str) -> int:
    """A plain seed from 0 to 2**31 - 1, for a language model; equal keys give equal seeds.

    Args:
        run_seed: Any integer.
        purpose: What it is for.
        ids: Which of them.
    """
    return _entropy(run_seed, purpose, ids) >> (256 - _SEED_BITS)


def _entropy(run_seed: int, purpose: str, ids: tuple[int | str, ...]) -> int:
    """256 bits of the key; JSON keeps the parts apart, so no two keys are written alike."""
    key = json.dumps([run_seed, purpose, *ids])
    return int.from_bytes(hashlib.sha256(key.encode()).digest(), "big")
