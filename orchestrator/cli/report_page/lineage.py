"""What the candidates of a run were made from: a lane for each island, and the ancestors of the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.cli.history import RunView
from orchestrator.cli.report_page.markup import Markup, counted, element, joined, number
from orchestrator.cli.report_page.rows import ancestry
from orchestrator.cli.report_page.scales import Scale
from orchestrator.cli.report_page.tables import reference, table
from orchestrator.methods.agentic_evolve.entries import Entry

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 1100, 84, 20, 10, 40
_MOST_DOTS = 1200
_MOST_EDGES = 1500
_MOST_ROWS = 60
_MOST_LANES_APART = 8


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Which candidates are drawn, and where."""

    view: RunView
    every: Mapping[str, Entry]
    best: Mapping[str, Entry]
    """The best, and then its ancestors."""
    drawn: Mapping[str, Entry]
    lane: float
    """Height of a lane."""
    across: Scale
    heights: Scale
    """From fitness to height in a lane, from its top."""

    def place(self, entry: Entry) -> tuple[float, float]:
        """Of a candidate's dot; the initial program stands before all lanes, in the middle."""
        if entry.island is None:
            return self.across.place(0), round(_TOP + self.lane * self.islands / 2, 1)
        fitness = max((entry.verdict.metrics or {}).get(self.view.history.fitness, self.heights.low), self.heights.low)
        return self.across.place(entry.number), round(_TOP + self.lane * entry.island + self.heights.place(fitness), 1)

    @property
    def islands(self) -> int:
        """Of the run."""
        return int(self.view.history.header["settings"]["islands"])


def lineage(view: RunView) -> Markup:
    """Picture and table; a script can show the ancestors of any candidate in the picture."""
    plan = _planned(view)
    if len(plan.every) < 2:
        return element("p", "No program has been committed yet.")
    missing = len(plan.every) - len(plan.drawn)
    note = f" Not drawn: {counted(missing, 'candidate')} between them." if missing else ""
    note += _below(plan)
    return joined(
        element("div", _picture(plan), class_="wide"),
        element(
            "p",
            "Every dot is a commit, the higher in its lane the fitter; hollow ones have no score. Lines lead from what "
            f"an agent had read, on its own island or shown by a migration, to what it made of it.{note}",
            class_="quiet",
        ),
        _ancestors(plan),
    )


def _planned(view: RunView) -> _Plan:
    history = view.history
    entries = [*([] if history.initial is None else [history.initial]), *history.commits]
    every = {entry.id: entry for entry in entries}
    winner = view.best
    best = {} if winner is None else {entry.id: entry for entry in ancestry(winner, every)}
    elites = {entry.id: entry for grid in history.grids().values() for entry in grid.elites}
    first = dict(list((best | elites).items())[: _MOST_DOTS // 2])
    step = -(-len(entries) // (_MOST_DOTS // 2)) or 1
    drawn = {entry.id: entry for entry in entries[::step]} | first
    islands = int(history.header["settings"]["islands"])
    lane = 64.0 if islands <= _MOST_LANES_APART else 30.0
    scores = [entry.verdict.metrics[history.fitness] for entry in entries if entry.verdict.metrics is not None]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    low = sorted(scores)[len(scores) // 20] if len(scores) > 40 else low  # a few very bad ones would flatten the rest
    last = max(entry.number for entry in entries) if entries else 1
    return _Plan(
        view=view,
        every=every,
        best=best,
        drawn=drawn,
        lane=lane,
        across=Scale(low=0, high=max(1, last), start=_LEFT + 26, end=_WIDTH - _RIGHT),
        heights=Scale(low=low, high=high if high > low else low + 1.0, start=lane - 10, end=10),
    )


def _below(plan: _Plan) -> str:
    """How many drawn dots would lie below their lane, and where they lie instead."""
    fitness, low = plan.view.history.fitness, plan.heights.low
    below = sum((entry.verdict.metrics or {}).get(fitness, low) < low for entry in plan.drawn.values())
    if not below:
        return ""
    return f" At the bottom of its lane: {counted(below, 'dot')} of a lower fitness than {number(low)}."


def _picture(plan: _Plan) -> Markup:
    height = _TOP + plan.lane * plan.islands + _BOTTOM
    faint, strong = _edges(plan)
    return element(
        "svg",
        element("title", "What the candidates were made from"),
        *_lanes(plan),
        element("path", d=faint, class_="edge"),
        element("path", d=strong, class_="edge chosen"),
        *[_dot(plan, entry) for entry in plan.drawn.values()],
        viewBox=f"0 0 {_WIDTH} {height:g}",
        role="group",
        class_="picture lineage",
    )


def _lanes(plan: _Plan) -> list[Markup]:
    parts: list[Markup] = []
    for island in range(plan.islands):
        top = _TOP + plan.lane * island
        shade = "lane odd" if island % 2 else "lane"
        parts.append(element("rect", x=_LEFT, y=top, width=_WIDTH - _LEFT, height=plan.lane, class_=shade))
        parts.append(element("text", f"island {island}", x=4, y=top + plan.lane / 2 + 4, class_="tick"))
    floor = _TOP + plan.lane * plan.islands
    ticks = plan.across.ticks(12, whole=True)
    parts += [element("text", f"{t:g}", x=plan.across.place(t), y=floor + 16, class_="tick middle") for t in ticks]
    middle = (_LEFT + _WIDTH) / 2
    parts.append(element("text", "commit of the island", x=middle, y=floor + 34, class_="name middle"))
    return parts


def _edges(plan: _Plan) -> tuple[str, str]:
    """Paths of reads from other islands, and of everything that led to the best."""
    faint: list[str] = []
    strong: list[str] = []
    for entry in plan.drawn.values():
        for parent in entry.candidate.parents:
            if parent not in plan.drawn:
                continue
            source = plan.drawn[parent]
            if entry.id in plan.best:
                strong.append(_edge(plan.place(source), plan.place(entry)))
            elif source.island not in {None, entry.island}:
                faint.append(_edge(plan.place(source), plan.place(entry)))
    return "".join(faint[:_MOST_EDGES]), "".join(strong[:_MOST_EDGES])


def _edge(source: tuple[float, float], target: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = source, target
    bend = round((x + to_x) / 2, 1)
    return f"M{x} {y}C{bend} {y} {bend} {to_y} {to_x} {to_y}"


def _dot(plan: _Plan, entry: Entry) -> Markup:
    x, y = plan.place(entry)
    kinds = ["dot"]
    kinds += [] if entry.verdict.is_scored else ["failed"]
    kinds += ["chosen"] if entry.id in plan.best else []
    kinds += ["best"] if entry.id == next(iter(plan.best), None) else []
    said = f"{entry.id}: {number((entry.verdict.metrics or {}).get(plan.view.quality.metric))}"
    radius = 5.5 if "best" in kinds else 3.6 if len(plan.drawn) < 300 else 2.2
    return element("circle", element("title", said), cx=x, cy=y, r=radius, class_=" ".join(kinds), data_id=entry.id)


def _ancestors(plan: _Plan) -> Markup:
    chain = sorted(plan.best.values(), key=lambda entry: entry.age)
    if not chain:
        return Markup("")
    shown = chain if len(chain) <= _MOST_ROWS else [*chain[:5], *chain[5 - _MOST_ROWS :]]
    metric = plan.view.quality.metric
    rows = [
        [
            reference(entry.id),
            (entry.verdict.metrics or {}).get(metric),
            ", ".join(_source(plan, entry, parent) for parent in entry.candidate.parents[:8]) or None,
            entry.candidate.description[:300],
        ]
        for entry in shown
    ]
    left_out = len(chain) - len(shown)
    caption = f"What led to the best: {counted(len(chain), 'candidate')}" + (
        f", of which {left_out:,} in the middle not shown here" if left_out else ""
    )
    return table(caption, ["candidate", f"{metric}", "made from", "its author's words"], rows)


def _source(plan: _Plan, entry: Entry, parent: str) -> str:
    source = plan.every.get(parent)
    if source is None or source.island in {None, entry.island}:
        return parent
    return f"{parent} (shown by migration {_migration(plan, entry, parent)})"


def _migration(plan: _Plan, entry: Entry, parent: str) -> str:
    found: Sequence[int] = [
        shown.migration
        for shown in plan.view.history.migrations
        if shown.island == entry.island and parent in shown.ids
    ]
    return str(found[0]) if found else "?"
