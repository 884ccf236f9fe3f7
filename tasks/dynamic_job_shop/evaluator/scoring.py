"""From the tardiness of simulations to the figures of the task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from arrivals import SCENARIOS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AST_NODES_RANGE = (10, 2000)


def by_scenario(tardiness: NDArray[np.float64]) -> list[float]:
    """Mean tardiness of each scenario.

    Args:
        tardiness: (simulations, counted) of ended simulations, scenario after scenario.
    """
    return [float(part.sum() / part.size) for part in tardiness.reshape(len(SCENARIOS), -1)]


def geometric_mean_ratio(ours: Sequence[float], reference: Sequence[float]) -> float:
    """Geometric mean over the scenarios of our mean tardiness over the reference's, both positive.

    In decimal arithmetic, whose roots do not depend on the machine.
    """
    ratios = [Decimal(one) / Decimal(other) for one, other in zip(ours, reference, strict=True)]
    return float(math.prod(ratios, start=Decimal(1)) ** (Decimal(1) / len(ratios)))


def ast_nodes_feature(nodes: int) -> float:
    """Number of AST nodes on a log scale, 0 at 10 and below, 1 at 2000 and above."""
    low, high = map(math.log, AST_NODES_RANGE)
    return min(1.0, max(0.0, (math.log(max(nodes, 1)) - low) / (high - low)))
