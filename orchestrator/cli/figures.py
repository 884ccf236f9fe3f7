"""Figures of runs, drawn without a display."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import NDArray

from orchestrator.cli.files import write_content
from orchestrator.cli.report_page.scales import LOGARITHMIC, needs_logarithm
from orchestrator.cli.terminal import one_line
from orchestrator.search.archive import Grid

_DRAWN_CHARACTERS = 40
_GRID_COLUMNS = 4
_WITHOUT_DATE = {"Date": None}  # the same run gives the same bytes


def best_so_far(curves: Mapping[str, Sequence[tuple[int, float]]], quality: str, unit: str = "") -> Figure:
    """Best quality so far against paid evaluations.

    Args:
        curves: By run, (evaluations, quality) pairs in ascending order of evaluations; a curve may be empty.
        quality: Name of the metric, for the axis.
        unit: Of the metric; empty: it has none.
    """
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, curve in curves.items():
        if curve:
            evaluations, values = zip(*curve, strict=True)
            axes.step(evaluations, values, where="post", label=literal(name), marker=".", markersize=4)
    axes.set_xlabel("evaluations")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    label_quality(axes, [value for curve in curves.values() for _, value in curve], quality, unit)
    axes.grid(visible=True, alpha=0.3)
    if any(curves.values()):
        axes.legend(fontsize="small")
    return figure


def label_quality(axes: Axes, values: Sequence[float], quality: str, unit: str) -> None:
    """Name the vertical axis of the best so far, and make it logarithmic where it would hide most of what it shows.

    Args:
        axes: With everything drawn.
        values: All that was drawn.
        quality: Name of the metric.
        unit: Of it; empty: it has none.
    """
    is_logarithmic = needs_logarithm(values)
    if is_logarithmic:
        axes.set_yscale("log")
    scale = f", {LOGARITHMIC}" if is_logarithmic else ""
    axes.set_ylabel(f"best {literal(quality)} so far" + (f" ({literal(unit)})" if unit else "") + scale)


def grids(archives: Mapping[str, Grid[Any]], features: Sequence[str]) -> Figure:
    """The MAP-Elites grids of the islands, side by side, over their first two features.

    A single feature gives one row of cells.

    Args:
        archives: By island.
        features: Names of the features, each over [0, 1].
    """
    pictures = {name: _picture(grid) for name, grid in archives.items()}
    finite = np.concatenate([np.empty(0), *(values[np.isfinite(values)] for values in pictures.values())])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    columns = min(len(pictures), _GRID_COLUMNS)
    lines = -(-len(pictures) // columns)
    figure = Figure(figsize=(3.0 * columns + 1.0, 2.9 * lines + 0.4), layout="constrained")
    image = None
    for place, (name, values) in enumerate(pictures.items()):
        axes = figure.add_subplot(lines, columns, place + 1)
        image = axes.imshow(
            values.T,
            origin="lower",
            aspect="auto",
            extent=(0, 1, 0, 1),
            vmin=low,
            vmax=high if high > low else low + 1e-9,
        )
        axes.set_title(literal(name), fontsize="medium")
        axes.set_xlabel(literal(features[0]))
        if len(features) > 1:
            axes.set_ylabel(literal(features[1]))
        else:
            axes.set_yticks([])
    if image is not None:
        numbers = ScalarFormatter(useOffset=False)
        figure.colorbar(image, ax=figure.axes, label="fitness", format=numbers)
    return figure


def _picture(grid: Grid[Any]) -> NDArray[np.float64]:
    """(bins of the first feature, bins of the second) best fitness over all further features; NaN: empty."""
    shape = (grid.bins[0], grid.bins[1] if len(grid.bins) > 1 else 1)
    values = np.full(shape, np.nan)
    for cell, elite in grid.cells.items():
        place = (cell[0], cell[1] if len(cell) > 1 else 0)
        values[place] = np.fmax(values[place], elite.fitness)
    return values


def write(figure: Figure, stem: Path, *, force: bool) -> list[Path]:
    """Write `<stem>.png` and `<stem>.svg`; returns both.

    Raises:
        InputError: As `files.write_content`.
    """
    png, svg = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "evolvarium"}):  # ids that do not change from one drawing to the next
        figure.savefig(png, format="png", dpi=120)
        figure.savefig(svg, format="svg", metadata=_WITHOUT_DATE)
    return [
        write_content(stem.with_suffix(suffix), data.getvalue(), force=force)
        for suffix, data in ((".png", png), (".svg", svg))
    ]


def literal(text: str) -> str:
    """Untrusted text as matplotlib draws it: one line, and no mathematics."""
    return one_line(text, _DRAWN_CHARACTERS).replace("$", r"\$")
