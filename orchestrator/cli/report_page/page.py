"""The whole page: its head with the content security policy, its runs, and their data."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from orchestrator.bootstrap.report_records import Answers, Notice, ReportRecords
from orchestrator.cli.documents import RunDocument
from orchestrator.cli.history import RunView
from orchestrator.cli.report_page import lineage, spend, summary
from orchestrator.cli.report_page.curves import Curve, curves_picture, left_out, legend
from orchestrator.cli.report_page.diffs import best_diffs
from orchestrator.cli.report_page.heat_maps import heat_maps
from orchestrator.cli.report_page.markup import Markup, counted, element, inert_json, joined, own_code
from orchestrator.cli.report_page.rows import run_data
from orchestrator.cli.report_page.tables import table
from orchestrator.cli.report_page.texts import TextPool
from orchestrator.cli.terminal import Rows
from orchestrator.methods.agentic_evolve.statistics import best_so_far

MAX_PAGE_BYTES = 32 << 20
"""No page is larger: what there is no room for is left out, and the page says how much."""
_TEXT_BYTES = 12 << 20
_ROW_BYTES = 14 << 20
_SCRIPTS = ("texts", "elements", "diff", "lists", "candidates", "pictures", "records", "main")
_SECTIONS = {
    "summary": "Summary", "progress": "Progress", "grids": "Grids", "candidates": "Candidates", "lineage": "Lineage",
    "analyses": "Experiments", "spend": "Spend", "endings": "Endings", "disclosure": "Disclosure",
}  # fmt: skip
_NEEDS_SCRIPT = "This list needs JavaScript; the page makes no connections."


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """One run on the page."""

    view: RunView
    document: RunDocument
    records: ReportRecords


def report_page(runs: Sequence[PageRun], comparison: Sequence[Rows]) -> str:
    """The page, in ASCII but for its visible text.

    Args:
        runs: At least one, all of one task.
        comparison: Tables that put them side by side; shown where there are several.
    """
    pool = TextPool(max_bytes=_TEXT_BYTES)
    data = [run_data(run.view, run.records, pool, max_bytes=_ROW_BYTES // len(runs)) for run in runs]
    script = _script()
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    notices = {notice.value: notice.json() for notice in Notice}
    document = {"runs": data, "texts": pool.document(), "notices": notices}
    title = str(runs[0].view.history.header["task"].get("title") or runs[0].document.task)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script, style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}: evolvarium report"),
        own_code("style", style),
    )
    body = element(
        "body",
        element("a", "Skip to the report", href="#main", class_="skip"),
        _header(runs, title),
        element("main", _compared(runs, comparison), _tabs(runs), *_sections(runs), id="main", tabindex="-1"),
        _footer(pool),
        own_code("script", inert_json(document), type="application/json", id="data"),
        own_code("script", script),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _script() -> str:
    parts = [files(__package__).joinpath(f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return "(() => {\n'use strict';\n" + "\n".join(parts) + "})();\n"


def _policy(script: str, style: str) -> str:
    """Nothing from outside, no script and no style but these two, and no way from text to script."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(code: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")


def _header(runs: Sequence[PageRun], title: str) -> Markup:
    label = runs[0].view.quality
    better = "lower is better" if label.lower_is_better else "higher is better"
    unit = f" in {label.unit}" if label.unit else ""
    return element(
        "header",
        element("p", element("b", "evolvarium"), " report", class_="brand"),
        element("h1", title),
        element("p", f"Measured: {label.label}{unit}; {better}.", class_="lede"),
        class_="top",
    )


def _compared(runs: Sequence[PageRun], comparison: Sequence[Rows]) -> Markup:
    if len(runs) == 1:
        return Markup("")
    tables = [table(rows.title, rows.columns, [rows.cells(row) for row in rows.rows]) for rows in comparison]
    names = [f"{run.view.run_id} {run.document.method}" for run in runs]
    return element(
        "section",
        element("h2", "Side by side"),
        legend(names),
        element("div", *_charts(runs, with_dots=False), class_="charts"),
        *tables,
        class_="panel compared",
    )


def _tabs(runs: Sequence[PageRun]) -> Markup:
    if len(runs) == 1:
        return Markup("")
    tabs = [
        element(
            "button", run.view.run_id, " ", element("span", run.document.method), type="button", role="tab",
            id=f"tab{place}", aria_controls=f"run{place}", aria_selected="true" if place == 0 else "false",
        )
        for place, run in enumerate(runs)
    ]  # fmt: skip
    return element("div", *tabs, role="tablist", aria_label="Runs", class_="tabs runs", hidden=True)


def _sections(runs: Sequence[PageRun]) -> list[Markup]:
    several = len(runs) > 1
    return [
        element(
            "article",
            element("h2", f"Run {run.view.run_id}") if several else None,
            summary.run_facts(run.view, run.document),
            _navigation(place),
            *_of_run(run, place),
            id=f"run{place}",
            class_="run",
            data_run=place,
        )
        for place, run in enumerate(runs)
    ]


def _navigation(place: int) -> Markup:
    items = [element("li", element("a", name, href=f"#run{place}-{part}")) for part, name in _SECTIONS.items()]
    return element("nav", element("ul", *items), aria_label="Parts of the report")


def _of_run(run: PageRun, place: int) -> list[Markup]:
    view, history = run.view, run.view.history
    features = history.header["task"]["features"]
    contents = {
        "summary": [summary.summary(view, run.document)],
        "progress": [element("div", *_charts([run], with_dots=True), class_="charts")],
        "grids": [heat_maps(history.grids(), features, view.quality.metric), _hook("cell", "")],
        "candidates": [best_diffs(view), _hook("candidate", ""), _hook("candidates", _NEEDS_SCRIPT)],
        "lineage": [lineage.lineage(view)],
        "analyses": [_analyses(run), _hook("analyses", _NEEDS_SCRIPT if run.records.analyses else "")],
        "spend": [spend.spent(run.document)],
        "endings": [spend.endings(view, run.document)],
        "disclosure": [_disclosed(run.records), _hook("answers", _NEEDS_SCRIPT if run.records.answers else "")],
    }
    return [
        element("section", element("h3", _SECTIONS[name]), *parts, id=f"run{place}-{name}", class_=f"panel {name}")
        for name, parts in contents.items()
    ]


def _hook(name: str, otherwise: str) -> Markup:
    """Where a script puts a list."""
    return element("div", element("noscript", element("p", otherwise)) if otherwise else None, data_hook=name)


def _charts(runs: Sequence[PageRun], *, with_dots: bool) -> list[Markup]:
    quality = runs[0].view.quality
    y_name = f"best {quality.metric} so far" + (f" ({quality.unit})" if quality.unit else "")
    counted = [_by_evaluations(run.view, with_dots=with_dots) for run in runs]
    paid, what = _by_cost(runs)
    charts = [("evaluations", counted, True), (what, paid, False)]
    return [
        element("figure", element("figcaption", f"Best so far against {name}"), _chart(curves, name, y_name, whole))
        for name, curves, whole in charts
    ]


def _chart(curves: Sequence[Curve], name: str, y_name: str, whole: bool) -> Markup:
    if not any(curve.points for curve in curves):
        return element("p", "Nothing has a score yet.")
    if not any(x for curve in curves for x, _ in curve.points):
        return element("p", f"There were no {name} yet.")
    title = f"Best so far against {name}"
    picture = curves_picture(curves, x_name=name, y_name=y_name, title=title, whole_x=whole)
    return joined(picture, left_out(curves))


def _by_evaluations(view: RunView, *, with_dots: bool) -> Curve:
    metric = view.quality.metric
    dots = [
        (float(place), entry.verdict.metrics[metric], entry.id)
        for place, entry in enumerate(view.history.paid, 1)
        if entry.verdict.metrics is not None
    ]
    points = [(float(x), y) for x, y in view.curve()]
    return Curve(name=view.run_id, points=points, dots=dots if with_dots else ())


def _by_cost(runs: Sequence[PageRun]) -> tuple[list[Curve], str]:
    """Curves over US dollars, or over tokens where a price is unknown or nothing was paid."""
    points = [best_so_far(run.view.history) for run in runs]
    ends = [of_run[-1].usage.usd for of_run in points if of_run]
    in_dollars = bool(ends) and None not in ends and any(ends)
    metric = runs[0].view.quality.metric
    curves = [
        Curve(
            name=run.view.run_id,
            points=[
                (float(one.usage.usd or 0) if in_dollars else float(one.usage.tokens), one.best.verdict.metrics[metric])
                for one in of_run
                if one.best is not None and one.best.verdict.metrics is not None
            ],
        )
        for run, of_run in zip(runs, points, strict=True)
    ]
    return curves, "US dollars" if in_dollars else "tokens"


def _analyses(run: PageRun) -> Markup:
    count = len(run.records.analyses)
    if not run.view.history.header["settings"]["analysis"]:
        return element("p", "The agents of this run were not allowed to run experiments.")
    said = f"{counted(count, 'experiment')} of the agents: the script, and what it printed, as its agent was shown it."
    return element("p", said)


def _disclosed(records: ReportRecords) -> Markup:
    if records.answers is None:
        return element("p", f"What the models were answered cannot be rebuilt: {records.problem}", class_="remark")
    return joined(
        element(
            "p",
            "What every agent was answered after each commit, migrations included: nothing else of a verdict leaves.",
        ),
        element("p", _exactness(records.answers), class_="remark"),
    )


def _exactness(answers: Answers) -> str:
    sent = sum(answer.was_sent for answer in answers.log.answers)
    text = (
        f"{len(answers.checked):,} of {sent:,} answers are, byte for byte, part of a conversation whose digest was "
        "recorded before the model was asked."
    )
    if answers.remark:
        text += (
            f" The others are rebuilt from the records by the same code, and not checked: {answers.remark}. Their "
            "notice may have said that the context was nearly full."
        )
    return text


def _footer(pool: TextPool) -> Markup:
    document = pool.document()
    text = (
        "Everything on this page is in one file; it connects to nothing. What models and programs wrote is shown as "
        "text, with control characters as escapes."
    )
    parts = [text]
    if document["cut"] or document["left_out"]:
        parts.append(
            f"{counted(document['cut'], 'long text')} cut and {document['left_out']:,} left out, each with a line that "
            "says how much."
        )
    return element("footer", *[element("p", part) for part in parts])
