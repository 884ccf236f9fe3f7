"""The twelve problems: their laws, and the data that follow from them (LSR-Synth, regenerated).

5000 points without noise, stored as float32. Where the law is a differential equation, its solution is computed by
RK45 at SciPy's default tolerances, and the targets are the exact right-hand sides at the solved states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

POINTS, OUT_OF_DOMAIN, IN_DOMAIN = 5000, 500, 500
"""The last points in order are out of the domain; of the others, as many are in-domain tests, drawn at random."""
_PERMUTATION_SEED = 20_260_101
"""Published: everybody's data are the same, and what is hidden of them is only the choice of the test points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One law."""

    inputs: tuple[str, ...]
    """Names of the columns, in the order of the function's arguments."""
    target: str
    law: Callable[..., Column]
    """The target from the inputs."""
    interval: tuple[float, float]
    """Of the first input."""
    start: tuple[float, ...] = ()
    """Of the states, which are the other inputs; none: they follow from the first input."""

    def points(self) -> NDArray[np.float32]:
        """(5000, inputs + 1) in the order of the first input; the target comes last."""
        grid = np.linspace(*self.interval, POINTS)
        inputs = self._solved(grid) if self.start else (grid, 273 + 500 * grid)
        return np.stack([*inputs, self.law(*inputs)], axis=1).astype(np.float32)

    def _solved(self, grid: Column) -> tuple[Column, ...]:
        from scipy.integrate import solve_ivp  # noqa: PLC0415 - evaluations do without it, and sooner

        def change(time: float, state: Column) -> list[float]:
            return [*map(float, state[1:]), float(self.law(time, *state))]

        solution = solve_ivp(change, self.interval, self.start, t_eval=grid)
        if not solution.success:
            msg = f"the equation could not be solved: {solution.message}"
            raise ArithmeticError(msg)
        return (grid, *solution.y)


def splits(problem: Problem) -> dict[str, NDArray[np.float32]]:
    """The rows of `train` (4000), `in_domain` (500) and `out_of_domain` (500)."""
    points = problem.points()
    domain, beyond = points[:-OUT_OF_DOMAIN], points[-OUT_OF_DOMAIN:]
    shuffled = domain[np.random.default_rng(_PERMUTATION_SEED).permutation(len(domain))]
    return {"train": shuffled[IN_DOMAIN:], "in_domain": shuffled[:IN_DOMAIN], "out_of_domain": beyond}


def _reaction(law: Callable[..., Column]) -> Problem:
    return Problem(inputs=("t", "A"), target="dA_dt", law=law, interval=(0.0, 60.0), start=(1.0,))


def _growth(law: Callable[..., Column]) -> Problem:
    return Problem(inputs=("t", "P"), target="dP_dt", law=law, interval=(1.0, 60.0), start=(1.0,))


def _oscillator(law: Callable[..., Column]) -> Problem:
    return Problem(inputs=("t", "x", "v"), target="dv_dt", law=law, interval=(0.0, 40.0), start=(1.0, 0.0))


def _material(law: Callable[[Column], Column]) -> Problem:
    return Problem(inputs=("epsilon", "T"), target="sigma", law=lambda e, _: law(e), interval=(0.0, 0.6))


PROBLEMS: Mapping[str, Problem] = {
    "CRK21": _reaction(lambda t, a: a * (0.08820 * np.log(t + 2.283) - 0.07279 - 0.9112 * np.exp(-0.08901 * t))),
    "CRK35": _reaction(lambda t, a: a * (0.06226 * np.log(t + 1.061) - 0.1400)),
    "BPG18": _growth(lambda t, p: p * (-0.008724 * p + 0.4771 * np.sin(0.7761 * t) + 0.8909)),
    "PO0": _oscillator(
        lambda t, x, v: -1.027 * x**3 - 1.027 * x * np.exp(-np.abs(x)) + 0.9480 * np.sin(t) - 0.7123 * np.sin(v)
    ),
    "PO1": _oscillator(lambda t, x, _: -1.154 * x * (1 + np.exp(-np.abs(x))) + 0.4226 * np.sin(t)),
    "PO7": _oscillator(lambda _, x, v: -0.04589 * v**3 - 1.283 * x**3 - 0.7296 * np.abs(v) ** (1 / 3)),
    "PO10": _oscillator(lambda t, x, _: x * (-0.04946 * t - 1.992 * x**2 - 3.983) + 0.7998 * np.sin(t)),
    "PO16": _oscillator(
        lambda t, x, v: -0.1302 * v * np.sin(x) - 3.106 * x**3 + 0.8891 * np.sin(t) - 0.1302 * np.sin(v)
    ),
    "PO26": _oscillator(
        lambda t, x, v: -0.8261 * v - 2.452 * x**3 - 0.4130 * np.log(np.abs(v) + 1) + 0.3403 * np.sin(t)
    ),
    "MatSci9": _material(lambda e: 4319 * e**4 - 305.5 * e**3 - 195.1 * e + 14.00),
    "MatSci6": _material(lambda e: 1.4125e6 * e**3 - 3.9367e5 * e**2 + 2.7456e4 * e),
    "MatSci11": _material(lambda e: 60.06 * e**0.4776 + 2.464 * e**1.451 - 538.5 * e**2.987 + 3812 * e**4.001),
}
"""By the member's name."""
