"""What a split consists of: a seed per simulation, and the mean tardiness of the reference rule on them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Self

import numpy as np
from arrivals import COUNTED, MACHINES, SCENARIOS, batches
from rules import follow, reference
from scoring import by_scenario
from shop import Shop

FILE = "simulations.json"
SEEDS = 10
"""Simulations of each scenario."""
_SEED = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """The simulations of a split, scenario after scenario."""

    seeds: tuple[int, ...]
    """Of 128 bits, one per simulation."""
    reference: tuple[float, ...]
    """Mean tardiness of the reference rule in each scenario, positive."""

    @classmethod
    def drawn(cls, seed: int) -> Self:
        """Seeds that follow from one; the reference rule is simulated on them."""
        words = np.random.SeedSequence(seed).generate_state(2 * SEEDS * len(SCENARIOS), np.uint64).tolist()
        seeds = tuple(high << 64 | low for high, low in zip(words[::2], words[1::2], strict=True))
        shop = _shop(seeds)
        follow(shop, reference)
        return cls(seeds=seeds, reference=tuple(by_scenario(shop.tardiness)))

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """What `to_json` wrote.

        Raises:
            ValueError: It is something else.
        """
        match json.loads(content):
            case {"seeds": [*seeds], "reference": [*means], **rest} if (
                not rest
                and len(set(seeds)) == SEEDS * len(SCENARIOS)
                and all(isinstance(seed, str) and _SEED.fullmatch(seed) for seed in seeds)
                and len(means) == len(SCENARIOS)
                and all(isinstance(mean, float) and math.isfinite(mean) and mean > 0 for mean in means)
            ):
                return cls(seeds=tuple(int(seed, 16) for seed in seeds), reference=tuple(means))
        msg = f"{FILE} does not hold {SEEDS} different seeds and a positive mean tardiness for each of {SCENARIOS}"
        raise ValueError(msg)

    def to_json(self) -> bytes:
        """The file of the split."""
        return json.dumps({"seeds": [f"{seed:032x}" for seed in self.seeds], "reference": self.reference}).encode()

    def shop(self) -> Shop:
        """All simulations, at their first decision."""
        return _shop(self.seeds)


def _shop(seeds: tuple[int, ...]) -> Shop:
    scenarios = [scenario for scenario in SCENARIOS for _ in range(SEEDS)]
    jobs = [batches(seed, *scenario) for seed, scenario in zip(seeds, scenarios, strict=True)]
    return Shop(jobs, COUNTED, MACHINES)
