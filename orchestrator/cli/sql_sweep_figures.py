"""The figure of a sweep, like the paper's Figure 4: bubbles of variants, and the Pareto front through them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.cli.figures import literal
from orchestrator.cli.sql_sweep_documents import SqlSweepDocument, SqlSweepPanel, SqlSweepPoint

_ROWS = ("strict", "relaxed")
_COLUMNS = ("greedy", "pass_at_k")
_SMALLEST, _LARGEST = 40.0, 700.0
"""Areas of bubbles, in square points."""
_TITLES = {"greedy": "greedy accuracy", "pass_at_k": "Pass@K"}


def pareto_figure(document: SqlSweepDocument) -> Figure:
    """Four panels: strict above relaxed, greedy accuracy beside Pass@K; a bubble's area says how many share it.

    Args:
        document: With its panels.
    """
    figure = Figure(figsize=(9.6, 8.4), layout="constrained")
    most = max((len(point.variants) for panel in document.panels for point in panel.points), default=1)
    datasets = {one.name for one in document.datasets}
    for panel in document.panels:
        place = 2 * _ROWS.index(panel.metric) + _COLUMNS.index(panel.measure) + 1
        _draw(figure.add_subplot(2, 2, place), panel, most, x_is_share=panel.x in datasets)
    return figure


def _draw(axes: Axes, panel: SqlSweepPanel, most: int, *, x_is_share: bool) -> None:
    def place(point: SqlSweepPoint) -> tuple[float, float]:
        return (100 * point.x if x_is_share else point.x, 100 * point.y)

    ordered = sorted(panel.points, key=lambda point: -len(point.variants))  # small ones are drawn on top
    horizontal, vertical = zip(*map(place, ordered), strict=True)
    axes.scatter(
        horizontal,
        vertical,
        s=[_area(len(point.variants), most) for point in ordered],
        c=["tab:red" if point.on_front else "tab:blue" for point in ordered],
        alpha=0.45,
        linewidths=0,
    )
    front = [place(point) for point in panel.points if point.on_front]
    axes.plot(*_columns(front), color="tab:red", linewidth=1, marker=".", label="Pareto front")
    for point in panel.points:
        if point.on_front:
            more = f" +{len(point.variants) - 1}" if len(point.variants) > 1 else ""
            axes.annotate(
                f"{point.variants[0]}{more}",
                place(point),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize="x-small",
            )
    axes.set_title(f"{panel.metric}, {_TITLES[panel.measure]}", fontsize="medium")
    axes.set_xlabel(f"{literal(panel.x)}, %" if x_is_share else literal(panel.x))
    axes.set_ylabel(f"{literal(panel.y)}, %")
    axes.margins(0.18)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small", loc="lower left")


def _area(count: int, most: int) -> float:
    return _SMALLEST + (_LARGEST - _SMALLEST) * (count - 1) / max(1, most - 1)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
