"""Scores programs on online bin packing; runs in the evaluator container, beside the hidden sequences."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from evaluator_api import Program, Ragged
from packing import lower_bounds, pack, parse_or_library

if TYPE_CHECKING:
    from numpy.typing import NDArray

CAPACITY = 150
ITEMS = 120
SMALLEST, LARGEST = 20, 100
SEQUENCES = 100
AST_NODES_RANGE = (10, 2000)


def generate(seed: int, split: str) -> dict[str, bytes]:  # noqa: ARG001 - the seed differs per split already
    """The files of a split: 100 sequences of 120 integers, uniform on [20, 100]."""
    sizes = np.random.default_rng(seed).integers(SMALLEST, LARGEST + 1, size=(SEQUENCES, ITEMS))
    return {"sequences.json": json.dumps(sizes.tolist()).encode()}


def evaluate(program: Program, data: Path, split: str) -> dict[str, float]:
    """Fitness 1 / (1 + e), the excess e over the L2 bound in percent, and the two features."""
    sequences = load(data, split)
    with program.open(len(sequences)) as instances:
        ids = np.arange(len(sequences))

        def choose(
            items: NDArray[np.int64], remaining: NDArray[np.int64], lengths: NDArray[np.int64]
        ) -> NDArray[np.float64]:
            return instances.call("priority", ids, item=items, bins=Ragged(remaining, lengths)).values

        packing = pack(sequences, CAPACITY, choose)
    excess = float(packing.bins.sum() / lower_bounds(sequences, CAPACITY).sum() - 1)
    return {
        "fitness": 1 / (1 + excess),
        "excess_percent": 100 * excess,
        "ast_nodes": ast_nodes_feature(program.nodes),
        "deviation": packing.deviation,
    }


def load(data: Path, split: str) -> NDArray[np.int64]:
    """(n, 120) sizes of a split.

    Raises:
        ValueError: A file is missing a number, has one too many, or is not of this task's kind.
    """
    if split == "or1":
        text = (data / "binpack1.txt").read_text(encoding="ascii")
        return parse_or_library(text, capacity=CAPACITY, items=ITEMS)
    sequences = np.array(json.loads((data / "sequences.json").read_bytes()), dtype=np.int64)
    if sequences.shape != (SEQUENCES, ITEMS) or sequences.min() < SMALLEST or sequences.max() > LARGEST:
        msg = f"sequences.json does not hold {SEQUENCES} sequences of {ITEMS} sizes from {SMALLEST} to {LARGEST}"
        raise ValueError(msg)
    return sequences


def ast_nodes_feature(nodes: int) -> float:
    """Number of AST nodes on a log scale, 0 at 10 and below, 1 at 2000 and above."""
    low, high = map(math.log, AST_NODES_RANGE)
    return min(1.0, max(0.0, (math.log(max(nodes, 1)) - low) / (high - low)))
