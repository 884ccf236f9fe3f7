"""The figure of a sweep, like the paper's Figure 4: bubbles of variants, and the Pareto front through them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orchestrator.cli.figures import literal
from orchestrator.cli.sql_sweep_documents import SqlSweepDocument, SqlSweepPanel, SqlSweepPoint
from orchestrator.cli.terminal import one_line

_ROWS = ("strict", "relaxed")
_COLUMNS = ("greedy", "pass_at_k")
_SMALLEST, _LARGEST = 40.0, 700.0
"""Areas of bubbles, in square points."""
_TITLES = {"greedy": "greedy: the answer is right", "pass_at_k": "Pass@{k}: any of the {k} best candidates is right"}
_HIGHEST_PERCENT = 104.0
"""Where an axis ends that would go on above 100 % for nothing but its margin."""
_LABEL_CHARACTERS = 28
_FRONT, _OTHER, _ALPHA = "tab:red", "tab:blue", 0.45


def pareto_figure(document: SqlSweepDocument) -> Figure:
    """Four panels: strict above relaxed, greedy accuracy beside Pass@K; a bubble's area says how many share it.

    Args:
        document: With its panels.
    """
    figure = Figure(figsize=(11.0, 9.6), layout="constrained")
    figure.suptitle(_heading(document), fontsize="medium")
    drawing = _Drawing(document)
    for panel in document.panels:
        place = 2 * _ROWS.index(panel.metric) + _COLUMNS.index(panel.measure) + 1
        drawing.draw(figure.add_subplot(2, 2, place), panel)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, fontsize="small")
    return figure


class _Drawing:
    """Panels of one sweep."""

    def __init__(self, document: SqlSweepDocument) -> None:
        self._most = max((len(point.variants) for panel in document.panels for point in panel.points), default=1)
        self._datasets = {one.name for one in document.datasets}
        self._labels = {one.id: one.label for one in document.variants}
        found = {one.settings["candidates"] for one in document.variants}
        self._k = found.pop() if len(found) == 1 else "K"

    def draw(self, axes: Axes, panel: SqlSweepPanel) -> None:
        """Bubbles, the front through them, and what both mean."""
        x_is_share = panel.x in self._datasets

        def place(point: SqlSweepPoint) -> tuple[float, float]:
            return (100 * point.x if x_is_share else point.x, 100 * point.y)

        ordered = sorted(panel.points, key=lambda point: -len(point.variants))  # small ones are drawn on top
        axes.scatter(
            *_columns(list(map(place, ordered))),
            s=[self._area(len(point.variants)) for point in ordered],
            c=[_FRONT if point.on_front else _OTHER for point in ordered],
            alpha=_ALPHA,
            linewidths=0,
        )
        front = [point for point in panel.points if point.on_front]
        axes.plot(*_columns(list(map(place, front))), color=_FRONT, linewidth=1, marker=".")
        axes.margins(0.18)
        for point in front:
            self._annotate(axes, point, place(point))
        axes.set_title(f"{panel.metric}, {_TITLES[panel.measure].format(k=self._k)}", fontsize="medium")
        axes.set_xlabel(_accuracy(panel, panel.x) if x_is_share else f"{literal(panel.x)} (fewer are better)")
        axes.set_ylabel(_accuracy(panel, panel.y))
        _end_at_100(axes.yaxis)
        if x_is_share:
            _end_at_100(axes.xaxis)
        axes.grid(visible=True, alpha=0.3)

    def _annotate(self, axes: Axes, point: SqlSweepPoint, place: tuple[float, float]) -> None:
        """A variant by id and label, to the side where there is more room."""
        first, others = point.variants[0], len(point.variants) - 1
        label = literal(one_line(self._labels[first], _LABEL_CHARACTERS))
        more = f" and {others} more" if others else ""
        low, high = axes.get_xlim()
        is_right = place[0] > (low + high) / 2
        axes.annotate(
            f"{first} ({label}){more}",
            place,
            xytext=(-6 if is_right else 6, 6),
            textcoords="offset points",
            ha="right" if is_right else "left",
            fontsize="x-small",
        )

    def _area(self, count: int) -> float:
        return _SMALLEST + (_LARGEST - _SMALLEST) * (count - 1) / max(1, self._most - 1)


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=_FRONT, linewidth=1, marker=".", label="Pareto front"),
        _bubble(_FRONT, "on the front"),
        _bubble(_OTHER, "not on it (area: how many variants share the point)"),
    ]


def _bubble(color: str, label: str) -> Line2D:
    return Line2D(
        [], [], color=color, alpha=_ALPHA, linestyle="", marker="o", markersize=9, markeredgewidth=0, label=label
    )


def _end_at_100(axis: Axis) -> None:
    """No axis of a percentage goes on above 100 for nothing but its margin."""
    low, high = axis.get_view_interval()
    if high > _HIGHEST_PERCENT:
        axis.set_view_interval(low, _HIGHEST_PERCENT, ignore=True)
    axis.set_ticks([tick for tick in axis.get_ticklocs() if low <= tick <= 100])


def _heading(document: SqlSweepDocument) -> str:
    asked = " and ".join(f"{one.evaluable} questions of {literal(one.name)}" for one in document.datasets)
    models = ", ".join(map(literal, dict.fromkeys(document.models.values())))
    return f"EvoSQL, {len(document.variants)} variants on {asked}; {models}; run {document.run}"


def _accuracy(panel: SqlSweepPanel, dataset: str) -> str:
    return f"{panel.metric} accuracy on {literal(dataset)}, %"


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
