"""Best quality so far, against evaluations and against cost, as inline pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.cli.report_page.markup import Markup, counted, element, joined, number
from orchestrator.cli.report_page.scales import LOGARITHMIC, Scale, fitting_scale, label, scale

Point = tuple[float, float]
WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 44
_MOST_STEPS = 2000
_MOST_DOTS = 1500
COLOURS = 8
"""Lines have the classes `line0` to `line7`, and then again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One run's line, and what was measured on the way."""

    name: str
    points: Sequence[Point]
    """Ascending in x; may be empty."""
    dots: Sequence[tuple[float, float, str]] = ()
    """(x, quality, candidate) of single evaluations."""


def curves_picture(curves: Sequence[Curve], *, x_name: str, y_name: str, title: str, whole_x: bool) -> Markup:
    """A picture of step lines; single evaluations far off the lines are not drawn, which `left_out` says.

    Args:
        curves: At least one with a point.
        x_name: Under the picture.
        y_name: Of the quality, with its unit.
        title: For people who do not see it.
        whole_x: Whether x counts something.
    """
    across, up = _across(curves), _up(curves)
    y_name += f", {LOGARITHMIC}" if up.is_logarithmic else ""
    lines = [_line(curve, place, across, up) for place, curve in enumerate(curves)]
    dots = [_dots(curve, place, across, up) for place, curve in enumerate(curves)]
    return element(
        "svg",
        element("title", title),
        *_axes(across, up, x_name, y_name, whole_x=whole_x),
        *dots,
        *lines,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        class_="picture curves",
    )


def left_out(curves: Sequence[Curve]) -> Markup:
    """How many single evaluations are not drawn, and why; nothing where all are.

    Args:
        curves: As for the picture.
    """
    across, up = _across(curves), _up(curves)
    off = sum(not _is_within(x, y, across, up) for curve in curves for x, y, _ in curve.dots)
    every = sum(len(curve.dots) for curve in curves)
    passed = sum(_passed_over(curve, across, up) for curve in curves)
    reasons = [f"{off:,} off the range of the axes, which show the best"] if off else []
    reasons += [f"{passed:,} because the picture would be too full"] if passed else []
    if not reasons:
        return Markup("")
    said = f"Not drawn, of {counted(every, 'evaluation')} with a score: {'; '.join(reasons)}."
    return element("p", said, class_="quiet")


def _across(curves: Sequence[Curve]) -> Scale:
    reached = [x for curve in curves for x, _ in curve.points]
    tried = [x for curve in curves for x, _, _ in curve.dots]
    return scale([0.0, *reached, *tried], _LEFT, WIDTH - _RIGHT, margin=0.0)


def _up(curves: Sequence[Curve]) -> Scale:
    heights = [y for curve in curves for _, y in curve.points]
    return fitting_scale(heights, HEIGHT - _BOTTOM, _TOP, margin=0.12)


def _is_within(x: float, y: float, across: Scale, up: Scale) -> bool:
    return across.low <= x <= across.high and up.low <= y <= up.high


def legend(names: Sequence[str]) -> Markup:
    """Which line is which."""
    items = [
        element("li", element("span", class_=f"swatch line{place % COLOURS}", aria_hidden="true"), name)
        for place, name in enumerate(names)
    ]
    return element("ul", *items, class_="legend")


def _axes(across: Scale, up: Scale, x_name: str, y_name: str, *, whole_x: bool) -> list[Markup]:
    floor = HEIGHT - _BOTTOM
    parts = []
    for value in up.ticks(5):
        y = up.place(value)
        parts.append(element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="rule"))
        parts.append(element("text", label(value), x=_LEFT - 8, y=y + 4, class_="tick end"))
    for value in across.ticks(7, whole=whole_x):
        parts.append(element("text", label(value), x=across.place(value), y=floor + 18, class_="tick middle"))
    parts.append(element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=floor, y2=floor, class_="axis"))
    middle = (_TOP + floor) / 2
    parts.append(element("text", x_name, x=(_LEFT + WIDTH - _RIGHT) / 2, y=HEIGHT - 6, class_="name middle"))
    turned = f"rotate(-90 13 {middle})"
    parts.append(element("text", y_name, x=13, y=middle, class_="name middle", transform=turned))
    return parts


def _line(curve: Curve, place: int, across: Scale, up: Scale) -> Markup:
    """A step line with a mark wherever the best changed, and at its end."""
    points = _thinned(_changes(curve.points))
    if not points:
        return Markup("")
    x, y = points[0]
    path = f"M{across.place(x)} {up.place(y)}"
    path += "".join(f"H{across.place(x)}V{up.place(y)}" for x, y in points[1:])
    marks = [
        element("circle", cx=across.place(x), cy=up.place(y), r=2.6) for x, y in points[-200:] if len(points) <= 400
    ]
    last_x, last_y = points[-1]
    end = element("circle", cx=across.place(last_x), cy=up.place(last_y), r=4.5, class_="last")
    line = element("path", d=path)
    return element("g", line, *marks, end, element("title", curve.name), class_=f"curve line{place % COLOURS}")


def _dots(curve: Curve, place: int, across: Scale, up: Scale) -> Markup:
    within = [dot for dot in curve.dots if _is_within(dot[0], dot[1], across, up)]
    circles = [
        element(
            "circle", element("title", f"{name}: {number(y)}"), cx=across.place(x), cy=up.place(y), r=2.4, data_id=name
        )
        for x, y, name in within[:: _step(len(within))]
    ]
    return element("g", *circles, class_=f"dots line{place % COLOURS}") if circles else joined()


def _passed_over(curve: Curve, across: Scale, up: Scale) -> int:
    """Dots that are within the range and not drawn."""
    within = sum(_is_within(x, y, across, up) for x, y, _ in curve.dots)
    return within - len(range(0, within, _step(within)))


def _step(dots: int) -> int:
    """Every how manieth dot is drawn."""
    return -(-dots // _MOST_DOTS) or 1


def _changes(points: Sequence[Point]) -> list[Point]:
    """Where the height changes, and the end."""
    kept = [point for place, point in enumerate(points) if place == 0 or point[1] != points[place - 1][1]]
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]


def _thinned(points: list[Point]) -> list[Point]:
    step = -(-len(points) // _MOST_STEPS) or 1
    return points if step == 1 else [*points[::step], points[-1]]
