"""The summary of a run: what was searched, what was found, and under which conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.cli.documents import RunDocument
from orchestrator.cli.history import RunView
from orchestrator.cli.ledger import all_tokens, dollars
from orchestrator.cli.report_page.markup import Markup, counted, element, joined, number
from orchestrator.cli.report_page.tables import facts, reference, table
from orchestrator.cli.states import state_in_words
from orchestrator.cli.verdicts import secrecy, split_verdict

_SHORT, _LONG = 8, 10
"""Characters up to which a number in a card has the usual size, and a smaller one."""


def summary(view: RunView, document: RunDocument) -> Markup:
    """Figures, measurements on every split, and conditions."""
    return joined(
        _figures(view, document),
        _measurements(view, document),
        element("details", element("summary", "Settings, policy and images"), _conditions(view.history.header)),
    )


def with_unit(value: float | None, unit: str) -> Markup:
    """A quality as people read it; only the unit may wrap."""
    return figure(number(value), "" if value is None else unit)


def figure(written: str, unit: str = "") -> Markup:
    """A number that never wraps, the smaller the longer it is, and its unit in the same size."""
    size = "longest" if len(written) > _LONG else "long" if len(written) > _SHORT else None
    return element("span", element("span", written, class_="figure"), f" {unit}" if unit else None, class_=size)


def _figures(view: RunView, document: RunDocument) -> Markup:
    quality = view.quality
    best = None if document.best is None else document.best.metrics.get(quality.metric)
    initial = (document.initial.metrics or {}).get(quality.metric)
    gain = None if best is None or initial is None else quality.gain(best, initial)
    better = "lower is better" if quality.lower_is_better else "higher is better"
    wrong = sum(count for ending, count in document.endings.items() if ending != "ok")
    usage = document.usage
    cost = "cost unknown" if usage.usd is None else figure(f"${dollars(usage)}")
    cards = [
        _card("Best", with_unit(best, quality.unit), f"{quality.label} ({better})", "lead"),
        _card("Initial program", with_unit(initial, quality.unit), _gained(gain, quality.unit)),
        _card("Evaluations", figure(number(document.evaluations)), f"{wrong:,} without a score"),
        _card("Experiments", figure(number(document.analyses)), counted(document.requests, "request")),
        _card("Spent", joined(cost), counted(all_tokens(usage), "token")),
    ]
    return element("div", *cards, class_="cards")


def _gained(gain: float | None, unit: str) -> str:
    if gain is None:
        return "nothing to compare"
    if gain == 0:
        return "equal at the end"
    points = " points" if unit == "%" else f" {unit}" if unit else ""
    return f"{number(abs(gain))}{points} {'better' if gain >= 0 else 'worse'} at the end"


def _card(name: str, value: Markup, more: str, kind: str = "") -> Markup:
    return element(
        "div",
        element("p", name, class_="what"),
        element("p", value, class_="value"),
        element("p", more, class_="more"),
        class_=f"card {kind}".rstrip(),
    )


def _measurements(view: RunView, document: RunDocument) -> Markup:
    quality = view.quality
    searched = [
        split_verdict(entry.id, entry.verdict)
        for entry in {e.id: e for e in (view.history.initial, view.best) if e is not None}.values()
    ]
    rows = [
        [
            reference(verdict.id),
            verdict.split,
            (verdict.metrics or {}).get(quality.metric),
            None if verdict.failure is None else verdict.failure.ending,
            "guided the search" if verdict in searched else "played no part in the search",
            secrecy(secret=verdict.secret),
        ]
        for verdict in [*searched, *document.final]
    ]
    unit = f" ({quality.unit})" if quality.unit else ""
    columns = ["candidate", "split", quality.metric + unit, "failure", "role", "data"]
    return table(f"Measured: {quality.label}", columns, rows)


def run_facts(view: RunView, document: RunDocument) -> Markup:
    """What a run is, in one line."""
    header = view.history.header
    parts = [
        ("run", document.run),
        ("method", document.method),
        ("model", document.model),
        ("seed", str(document.seed)),
        ("state", state_in_words(document.state, document.pause)),
        ("policy", str((header.get("policy") or {}).get("name", "unknown"))),
    ]
    items = [element("span", element("b", name), " ", value) for name, value in parts]
    return element("p", *items, class_="run-facts")


def _conditions(header: Mapping[str, Any]) -> Markup:
    policy, images = header.get("policy") or {}, header.get("images") or {}
    task, versions = header.get("task") or {}, header.get("versions") or {}
    fixed: list[tuple[str, object]] = [
        ("policy", policy.get("name")),
        ("policy digest", _code(policy.get("digest"))),
        *((f"image {role}", _code(digest)) for role, digest in sorted(images.items())),
        ("evaluator", _code(task.get("evaluator"))),
        ("public data", _code(task.get("public"))),
        ("initial program", _code(task.get("initial"))),
        *((f"version of {name}", str(version)) for name, version in sorted(versions.items())),
    ]
    settings = [(name.replace("_", " "), value) for name, value in (header.get("settings") or {}).items()]
    chosen = [(name.replace("_", " "), _plain(value)) for name, value in (header.get("choices") or {}).items()]
    return element(
        "div",
        facts("Settings of the method", settings),
        facts("What was asked for", chosen),
        facts("Policy, images and versions", fixed),
        class_="columns",
    )


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)[:300]


def _code(digest: object) -> Markup:
    return element("code", number(digest))
