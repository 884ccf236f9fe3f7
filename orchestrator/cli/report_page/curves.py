"""Best quality so far, against evaluations and against cost, as inline pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.cli.report_page.markup import Markup, element, joined, number
from orchestrator.cli.report_page.scales import Scale, label, scale

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
    """A picture of step lines; what lies far off the lines is not drawn.

    Args:
        curves: At least one with a point.
        x_name: Under the picture.
        y_name: Of the quality, with its unit.
        title: For people who do not see it.
        whole_x: Whether x counts something.
    """
    ends = [point for curve in curves for point in curve.points]
    across = scale([0.0, *(x for x, _ in ends)], _LEFT, WIDTH - _RIGHT, margin=0.0)
    heights = [y for _, y in ends]
    up = scale(heights, HEIGHT - _BOTTOM, _TOP, margin=0.12)
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
    step = -(-len(curve.dots) // _MOST_DOTS) or 1
    circles = [
        element(
            "circle", element("title", f"{name}: {number(y)}"), cx=across.place(x), cy=up.place(y), r=2.4, data_id=name
        )
        for x, y, name in curve.dots[::step]
        if up.low <= y <= up.high
    ]
    return element("g", *circles, class_=f"dots line{place % COLOURS}") if circles else joined()


def _changes(points: Sequence[Point]) -> list[Point]:
    """Where the height changes, and the end."""
    kept = [point for place, point in enumerate(points) if place == 0 or point[1] != points[place - 1][1]]
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]


def _thinned(points: list[Point]) -> list[Point]:
    step = -(-len(points) // _MOST_STEPS) or 1
    return points if step == 1 else [*points[::step], points[-1]]
