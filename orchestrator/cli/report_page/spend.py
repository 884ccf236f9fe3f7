"""What a run spent on its models, and how its evaluations ended."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.documents import LedgerLine, RunDocument
from orchestrator.cli.history import RunView
from orchestrator.cli.ledger import all_tokens, dollars
from orchestrator.cli.report_page.markup import Markup, element, joined, number
from orchestrator.cli.report_page.tables import reference, table
from orchestrator.cli.verdicts import failure_document, failure_text
from orchestrator.methods.agentic_evolve.history import ending_of

_MOST_FAILURES = 200
_BAR = 1000


def spent(document: RunDocument) -> Markup:
    """The ledger by role, model and island; what was lost, and what is in flight, apart from what was answered."""
    lines = document.ledger
    if not lines:
        return element("p", "No model was asked.")
    columns = [
        "role", "model", "island", "requests", "input", "cached", "written to cache", "output", "of it reasoning",
        "US dollars",
    ]  # fmt: skip
    answered = [_answered(line) for line in lines]
    return joined(
        element("div", _share("tokens", lines), class_="bars"),
        table("Answered requests", columns, [*answered, _total(lines)], class_="totalled"),
        _open(lines),
    )


def _answered(line: LedgerLine) -> list[object]:
    usage = line.usage
    return [
        line.role, line.model, line.island, line.requests, usage.input_tokens, usage.cached_input_tokens,
        usage.cache_write_input_tokens, usage.output_tokens, usage.reasoning_tokens, dollars(usage),
    ]  # fmt: skip


def _total(lines: Sequence[LedgerLine]) -> list[object]:
    usages = [line.usage for line in lines]
    usd = [usage.usd for usage in usages if usage.usd is not None]
    return [
        "all", "", "", sum(line.requests for line in lines), sum(usage.input_tokens for usage in usages),
        sum(usage.cached_input_tokens for usage in usages), sum(usage.cache_write_input_tokens for usage in usages),
        sum(usage.output_tokens for usage in usages), sum(usage.reasoning_tokens for usage in usages),
        f"{sum(usd):.4f}" if len(usd) == len(usages) else "unknown",
    ]  # fmt: skip


def _open(lines: Sequence[LedgerLine]) -> Markup:
    rows = [
        [line.role, line.model, line.island, line.lost, all_tokens(line.lost_usage), dollars(line.lost_usage),
         line.in_flight, all_tokens(line.in_flight_usage), dollars(line.in_flight_usage)]
        for line in lines
        if line.lost or line.in_flight
    ]  # fmt: skip
    if not rows:
        return element("p", "No call was lost, and none is in flight.", class_="quiet")
    columns = [
        "role", "model", "island", "lost", "tokens at most", "US dollars at most", "in flight", "tokens at most",
        "US dollars at most",
    ]  # fmt: skip
    return table("Calls whose outcome nobody knows, at the most they can have cost", columns, rows)


def _share(what: str, lines: Sequence[LedgerLine]) -> Markup:
    """Each line's part of the tokens, as a bar."""
    counts = [all_tokens(line.usage) for line in lines]
    names = [
        ", ".join(part for part in (line.role, line.model, _island(line)) if part) + f": {count:,} {what}"
        for line, count in zip(lines, counts, strict=True)
    ]
    return bar(counts, names, [f"line{place % 8}" for place in range(len(lines))], f"Where the {what} went")


def _island(line: LedgerLine) -> str:
    return "" if line.island is None else f"island {line.island}"


def bar(counts: Sequence[int], names: Sequence[str], kinds: Sequence[str], title: str) -> Markup:
    """A bar in parts, with its legend.

    Args:
        counts: The parts, not negative.
        names: Of them.
        kinds: Their classes.
        title: For people who do not see it.
    """
    total = sum(counts)
    if not total:
        return Markup("")
    parts, left = [], 0.0
    for count, name, kind in zip(counts, names, kinds, strict=True):
        width = _BAR * count / total
        shape = element("rect", element("title", name), x=round(left, 1), y=0, width=round(width, 1), height=26)
        parts.append(element("g", shape, class_=kind))
        left += width
    picture = element(
        "svg", element("title", title), *parts, viewBox=f"0 0 {_BAR} 26", preserveAspectRatio="none", role="img",
        class_="bar",
    )  # fmt: skip
    shown = list(zip(names, kinds, strict=True))[:12]
    items = [element("li", element("span", class_=f"swatch {kind}", aria_hidden="true"), name) for name, kind in shown]
    return joined(picture, element("ul", *items, class_="legend"))


def endings(view: RunView, document: RunDocument) -> Markup:
    """Counts of endings, and the failures."""
    if not document.endings:
        return element("p", "Nothing has been evaluated yet.")
    total = sum(document.endings.values())
    ordered = sorted(document.endings.items(), key=lambda item: (item[0] != "ok", -item[1], item[0]))
    kinds = ["good" if ending == "ok" else f"bad{place % 4}" for place, (ending, _) in enumerate(ordered)]
    names = [f"{ending}: {count:,} ({100 * count / total:.1f} %)" for ending, count in ordered]
    stops = [[stop.island, stop.reason] for stop in document.stops]
    return joined(
        element("div", bar([c for _, c in ordered], names, kinds, "How the evaluations ended"), class_="bars"),
        table("How the paid evaluations ended", ["ending", "evaluations"], [[e, c] for e, c in ordered]),
        table("How the islands ended", ["island", "reason"], stops) if stops else None,
        _failures(view),
    )


def _failures(view: RunView) -> Markup:
    failed = [entry for entry in view.history.paid if not entry.verdict.is_scored]
    if not failed:
        return element("p", "Every evaluation gave a score.", class_="quiet")
    rows = [
        [
            reference(entry.id),
            ending_of(entry).value,
            failure_text(failure_document(entry.verdict.failure), entry.verdict.outcome.detail),
            number(round(entry.verdict.outcome.wall_seconds, 2)),
            entry.candidate.description[:300],
        ]
        for entry in failed[:_MOST_FAILURES]
    ]
    left_out = len(failed) - len(rows)
    more = f"; the first {len(rows)}, and {left_out:,} more among the candidates" if left_out else ""
    columns = ["candidate", "ending", "why, for operators", "seconds", "its author's words"]
    return table(f"Evaluations without a score: {len(failed):,}{more}", columns, rows)
