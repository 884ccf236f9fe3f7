"""The grids of a run's islands as heat maps, over their first two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.cli.report_page.markup import Markup, element, joined, number
from orchestrator.cli.report_page.scales import label
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.search.archive import Elite, Grid

LEVELS = 12
"""Cells have the classes `q0`, the lowest fitness, to `q11`."""
_SIDE = 240
_LEFT, _TOP, _BOTTOM, _RIGHT = 40, 8, 40, 8
_MOST_BINS = 40
Found = dict[tuple[int, int], Elite[Entry]]


def heat_maps(grids: Mapping[int, Grid[Entry]], features: Sequence[str], quality: str) -> Markup:
    """A picture for each island, all in the same colours, and a scale of them.

    Args:
        grids: By island.
        features: Their names, at least one.
        quality: The metric that a cell's description gives beside its fitness.
    """
    pictures = {island: _seen(grid) for island, grid in grids.items()}
    values = [elite.fitness for found in pictures.values() for elite in found.values()]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    figures = [
        element(
            "figure",
            element("figcaption", f"Island {island}", element("span", _filled(grids[island]), class_="quiet")),
            _picture(pictures[island], _shape(grids[island]), features, island, (low, high), quality),
        )
        for island in grids
    ]
    return joined(element("div", *figures, class_="maps"), _key(low, high))


def _shape(grid: Grid[Entry]) -> tuple[int, int]:
    """(columns, rows) that are drawn."""
    rows = grid.bins[1] if len(grid.bins) > 1 else 1
    return min(grid.bins[0], _MOST_BINS), min(rows, _MOST_BINS)


def _seen(grid: Grid[Entry]) -> Found:
    """The best elite of every drawn cell, over further features and over bins that are drawn as one."""
    columns, rows = _shape(grid)
    found: Found = {}
    for cell, elite in sorted(grid.cells.items()):
        second = cell[1] * rows // grid.bins[1] if len(cell) > 1 else 0
        place = (cell[0] * columns // grid.bins[0], second)
        if place not in found or elite.fitness > found[place].fitness:
            found[place] = elite
    return found


def _filled(grid: Grid[Entry]) -> str:
    cells = 1
    for bins in grid.bins:
        cells *= bins
    return f" {len(grid)} of {cells:,} cells"


def _picture(
    found: Found,
    shape: tuple[int, int],
    features: Sequence[str],
    island: int,
    span: tuple[float, float],
    quality: str,
) -> Markup:
    columns, rows = shape
    wide, high = _SIDE / columns, _SIDE / max(rows, 1)
    cells = [
        _cell(place, elite, (wide, high), rows, span, (features, quality)) for place, elite in sorted(found.items())
    ]
    return element(
        "svg",
        element("title", f"Grid of island {island}"),
        element("rect", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE, class_="ground"),
        *_lines(shape),
        *cells,
        *_names(features),
        viewBox=f"0 0 {_LEFT + _SIDE + _RIGHT} {_TOP + _SIDE + _BOTTOM}",
        role="group",
        class_="picture map",
        data_island=island,
    )


def _cell(
    place: tuple[int, int],
    elite: Elite[Entry],
    size: tuple[float, float],
    rows: int,
    span: tuple[float, float],
    names: tuple[Sequence[str], str],
) -> Markup:
    entry, (features, quality) = elite.occupant, names
    metrics = entry.verdict.metrics or {}
    at = ", ".join(f"{name} {number(float(metrics[name]))}" for name in features)
    said = f"{entry.id}: {quality} {number(metrics.get(quality))}, fitness {number(elite.fitness)}; {at}"
    width, height = size
    return element(
        "rect",
        element("title", said),
        x=round(_LEFT + place[0] * width + 0.7, 2),
        y=round(_TOP + (rows - 1 - place[1]) * height + 0.7, 2),
        width=round(width - 1.4, 2),
        height=round(height - 1.4, 2),
        rx=2,
        class_=f"cell q{_level(elite.fitness, span)}",
        data_id=entry.id,
        data_column=place[0],
        data_row=place[1],
        aria_label=said,
    )


def _level(fitness: float, span: tuple[float, float]) -> int:
    low, high = span
    share = (fitness - low) / (high - low) if high > low else 1.0
    return min(LEVELS - 1, int(share * LEVELS))


def _lines(shape: tuple[int, int]) -> list[Markup]:
    columns, rows = shape
    across = [_LEFT + _SIDE * place / columns for place in range(1, columns)]
    down = [_TOP + _SIDE * place / rows for place in range(1, rows)]
    path = "".join(f"M{x:.1f} {_TOP}v{_SIDE}" for x in across) + "".join(f"M{_LEFT} {y:.1f}h{_SIDE}" for y in down)
    return [element("path", d=path, class_="mesh")] if path else []


def _names(features: Sequence[str]) -> list[Markup]:
    floor, middle = _TOP + _SIDE, _LEFT + _SIDE / 2
    parts = [
        element("text", "0", x=_LEFT, y=floor + 15, class_="tick middle"),
        element("text", "1", x=_LEFT + _SIDE, y=floor + 15, class_="tick middle"),
        element("text", f"{features[0]} →", x=middle, y=floor + 32, class_="name middle"),
    ]
    if len(features) > 1:
        up = _TOP + _SIDE / 2
        parts += [
            element("text", "0", x=_LEFT - 7, y=floor, class_="tick end"),
            element("text", "1", x=_LEFT - 7, y=_TOP + 10, class_="tick end"),
            element("text", f"{features[1]} →", x=16, y=up, class_="name middle", transform=f"rotate(-90 16 {up})"),
        ]
    return parts


def _key(low: float, high: float) -> Markup:
    steps = [element("rect", x=20 * place, y=0, width=20, height=12, class_=f"q{place}") for place in range(LEVELS)]
    picture = element("svg", *steps, viewBox=f"0 0 {20 * LEVELS} 12", class_="key", aria_hidden="true")
    return element("p", "fitness ", label(low), picture, label(high), class_="scale")
