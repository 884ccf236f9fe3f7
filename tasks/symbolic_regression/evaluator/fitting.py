"""Fitting the free constants of an equation to data by least squares.

A search from a single start finds no frequency and no phase. So beside the common start, all ones, there are seeded
ones: many draws of the constants are judged quickly, those in which the equation is linear solved for exactly, and the
best of each handful are followed to the end. Everything is repeatable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from evaluator_api import Expression
from numpy.typing import NDArray
from scipy.optimize import least_squares
from trees import Slopes, Values, linear_symbols, values, values_and_slopes

CONVERGED = 1e-13
"""NMSE below which no further start is tried: data stored as float32 have no more to tell."""
_SEED = 618_033
_DRAWS = 24
"""Draws of the constants per restart, of which the best is followed."""
_SKETCH_ROWS = 400
_SKETCH_STEPS, _STEPS = 60, 400
"""Evaluations of one search, on a part of the rows and on all."""
_FINALISTS = 3
_HUGE = 1e100
"""Stands for a residual that is not finite: the search steps back from it, and squares still add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The best constants found."""

    constants: NDArray[np.float64]
    """(m,) one for every constant that the program may use; those it does not use are 1."""
    nmse: float
    """On the data fitted to: mean squared error over the variance of the target; may be infinite."""


class Equation:
    """An equation and the data that its constants are fitted to."""

    def __init__(self, tree: Expression, rows: NDArray[Any], constants: int) -> None:
        """Nothing is fitted yet.

        Args:
            tree: Its symbols are the inputs, then the constants.
            rows: (n, inputs + 1), the target last.
            constants: How many there may be.
        """
        self._tree = tree
        self._inputs = rows.shape[1] - 1
        self._count = constants
        self._columns = [np.ascontiguousarray(column, dtype=np.float64) for column in rows.T]
        self.used = sorted(number for number in tree.symbols if number >= self._inputs)
        """Numbers of the constants that occur."""
        self._linear = linear_symbols(tree, self.used)

    def nmse(self, constants: NDArray[np.float64], rows: NDArray[Any]) -> float:
        """Mean squared error on rows like those fitted to, over the variance of their target; infinite: no number."""
        *inputs, target = np.asarray(rows, dtype=np.float64).T
        with np.errstate(all="ignore"):
            error = float(np.mean((values(self._tree, [*inputs, *constants]) - target) ** 2) / np.var(target))
        return error if np.isfinite(error) else np.inf

    def fit(self, restarts: int) -> Fit:
        """Search from the common start, and from seeded ones until one fits to round-off.

        Args:
            restarts: At most; 0: from the common start alone.
        """
        best = self._result(np.ones(len(self.used)))
        if not self.used or best.nmse <= CONVERGED:
            return best
        best = min(best, self._result(self._search(np.ones(len(self.used)), 1, _STEPS)), key=_nmse)
        if best.nmse <= CONVERGED or not restarts:
            return best
        step = max(1, len(self._columns[0]) // _SKETCH_ROWS)
        found = [self._search(start, step, _SKETCH_STEPS) for start in self._starts(restarts, step)]
        errors = [self._result(point).nmse for point in found]
        for index in np.argsort(errors, kind="stable")[:_FINALISTS]:
            best = min(best, self._result(self._search(found[index], 1, _STEPS)), key=_nmse)
            if best.nmse <= CONVERGED:
                break
        return best

    def _result(self, point: Values) -> Fit:
        constants = self._constants(point)
        return Fit(constants=constants, nmse=self.nmse(constants, np.stack(self._columns, axis=1)))

    def _constants(self, point: Values) -> NDArray[np.float64]:
        constants = np.ones(self._count)
        constants[[number - self._inputs for number in self.used]] = point
        return constants

    def _starts(self, restarts: int, step: int) -> list[Values]:
        """The best of every handful of draws."""
        generator = np.random.default_rng(_SEED)
        starts = []
        for _ in range(restarts):
            shape = (_DRAWS, len(self.used))
            draws = generator.choice([-1.0, 1.0], shape) * 10 ** generator.uniform(-2.5, 1.5, shape)
            solved = [self._with_linear_solved(draw, step) for draw in draws]
            starts.append(min(solved, key=lambda one: one[0])[1])
        return starts

    def _with_linear_solved(self, point: Values, step: int) -> tuple[float, Values]:
        """(sum of squares, the point with the constants that enter linearly at their best)."""
        places = [self.used.index(number) for number in self._linear]
        point = point.copy()
        point[places] = 0.0
        value, slopes = self._evaluated(point, step)
        offset = self._columns[-1][::step] - value
        basis = self._jacobian(slopes, len(offset))[:, places]
        if not (np.isfinite(offset).all() and np.isfinite(basis).all()):
            return np.inf, np.where(point == 0, 1.0, point)
        solution = np.linalg.lstsq(basis, offset, rcond=None)[0]
        point[places] = solution
        with np.errstate(all="ignore"):
            return float(np.sum((offset - basis @ solution) ** 2)), point

    def _search(self, start: Values, step: int, evaluations: int) -> Values:
        """Levenberg and Marquardt's method, from a start, on every `step`-th row."""
        target = self._columns[-1][::step]

        def residuals(point: Values) -> Values:
            with np.errstate(all="ignore"):
                found = self._evaluated(point, step)[0] - target
            return np.clip(np.nan_to_num(found, nan=_HUGE, posinf=_HUGE, neginf=-_HUGE), -_HUGE, _HUGE)

        def jacobian(point: Values) -> Values:
            found = self._jacobian(self._evaluated(point, step)[1], len(target))
            return np.clip(np.nan_to_num(found, nan=0.0, posinf=_HUGE, neginf=-_HUGE), -_HUGE, _HUGE)

        with np.errstate(all="ignore"):
            found = least_squares(
                residuals, start, jacobian, method="lm", x_scale="jac", max_nfev=evaluations,
                ftol=1e-15, xtol=1e-15, gtol=1e-15,
            )  # fmt: skip
        return found.x if np.isfinite(found.x).all() else start

    def _evaluated(self, point: Values, step: int) -> tuple[Values, Slopes]:
        symbols: Sequence[Any] = [*(column[::step] for column in self._columns[:-1]), *self._constants(point)]
        return values_and_slopes(self._tree, symbols, self.used)

    def _jacobian(self, slopes: Slopes, rows: int) -> Values:
        nothing = np.float64(0.0)
        return np.stack([np.broadcast_to(slopes.get(number, nothing), (rows,)) for number in self.used], axis=1)


def _nmse(fit: Fit) -> float:
    return fit.nmse
