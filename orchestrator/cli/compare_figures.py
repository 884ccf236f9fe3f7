"""The best so far of two groups of runs, drawn without a display."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orchestrator.cli.compare_documents import BandDocument, ComparisonDocument
from orchestrator.cli.compare_reading import SPENT_WORDS
from orchestrator.cli.figures import label_quality

_BANDS = {"min-max": "lowest to highest", "interquartile": "quartiles"}
_COLUMNS = 2


def best_so_far_bands(document: ComparisonDocument) -> Figure:
    """Median and band of each group, a picture for each kind of what was spent."""
    kinds = list(dict.fromkeys(band.spent for band in document.bands))
    lines = max(1, -(-len(kinds) // _COLUMNS))
    figure = Figure(figsize=(6.2 * min(max(len(kinds), 1), _COLUMNS), 3.9 * lines), layout="constrained")
    counts = {"a": len(document.a.runs), "b": len(document.b.runs)}
    for place, kind in enumerate(kinds):
        axes = figure.add_subplot(lines, min(len(kinds), _COLUMNS), place + 1)
        bands = [band for band in document.bands if band.spent == kind]
        _draw(axes, bands, counts)
        axes.set_xlabel(SPENT_WORDS[kind])
        values = [value for band in bands for _, *heights in band.rows for value in heights]
        label_quality(axes, values, document.label, document.unit)
        if kind == "evaluations":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _draw(axes: Axes, bands: Sequence[BandDocument], counts: dict[str, int]) -> None:
    end = max((band.rows[-1][0] for band in bands if band.rows), default=0.0)
    for number, band in enumerate(bands):
        if not band.rows:
            continue
        spent, median, low, high = map(list, zip(*band.rows, strict=True))
        if spent[-1] < end and len(spent) == 1:
            spent, median, low, high = [*spent, end], median * 2, low * 2, high * 2
        color = f"C{number}"
        label = f"{band.group.upper()}: median of {counts[band.group]}, {_BANDS[band.band]}"
        axes.fill_between(spent, low, high, step="post", color=color, alpha=0.2, linewidth=0)
        axes.step(spent, median, where="post", color=color, label=label, marker=".", markersize=3)
    axes.grid(visible=True, alpha=0.3)
    if any(band.rows for band in bands):
        axes.legend(fontsize="small")
