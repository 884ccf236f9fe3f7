"""An estimate as a document and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

from orchestrator.bootstrap.estimates.amounts import Amounts, Line, rounded
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.cli.estimate_documents import (
    AssumptionDocument,
    EstimatedAmounts,
    EstimateDocument,
    EstimateLine,
    EstimateTotal,
)
from orchestrator.cli.ledger import all_tokens, usage_document
from orchestrator.cli.terminal import Rows
from orchestrator.llm.prices import PRICES_VARIABLE, table_date

_ROLES = {"hybrid": "answerer (hybrid)"}
"""What people read of a role, where it is no role of a model by itself."""
_PRICE_OPTION = "--price IN/CACHED/OUT"


def estimate_document(estimate: Estimate) -> EstimateDocument:
    """The whole document."""
    methods = get_args(EstimateDocument.model_fields["method"].annotation)
    return EstimateDocument(
        method=methods[methods.index(estimate.method)],
        subject=estimate.subject,
        like=estimate.like,
        lines=[_line(line, estimate.most_of(line)) for line in estimate.lines],
        total=EstimateTotal(
            expected=_amounts(estimate.expected),
            at_most=_amounts(estimate.at_most),
            at_most_tokens=estimate.most_tokens,
            at_most_usd=estimate.most_usd,
        ),
        budget_usd=estimate.budget_usd,
        budget_tokens=estimate.budget_tokens,
        assumptions=[
            AssumptionDocument(name=name, value=value, meaning=meaning) for name, value, meaning in estimate.assumptions
        ],
        facts=list(estimate.facts),
        notes=list(estimate.notes),
        unpriced=list(estimate.unpriced),
        prices_as_of=table_date().isoformat(),
    )


def estimate_parts(document: EstimateDocument) -> list[Rows | str]:
    """Everything there is to show, the headline last."""
    parts: list[Rows | str] = [amount_rows(document), "", "Counted:", *(f"- {fact}." for fact in document.facts)]
    if document.notes:
        parts += ["", "Mind:", *(f"- {note}." for note in document.notes)]
    if document.assumptions:
        parts += ["", assumption_rows(document)]
    sources = list(_sources(document))
    if sources:
        parts += ["", "Prices:", *sources]
    return [*parts, "", *headline(document)]


def amount_rows(document: EstimateDocument) -> Rows:
    """Requests, tokens and dollars of each role and model, and of all."""
    has_writes = any(_writes(one) for line in document.lines for one in (line.expected, line.at_most))
    written = ["written"] if has_writes else []
    columns = ["role", "model", "", "requests", "input", "cached", *written, "output", "US dollars"]
    rows: list[list[object]] = []
    for line in document.lines:
        rows.append(
            [_ROLES.get(line.role, line.role), line.model, "expected", *_cells(line.expected, has_writes=has_writes)]
        )
        rows.append(["", "", "at most", *_cells(line.at_most, has_writes=has_writes)])
    if len(document.lines) > 1:
        rows.append(["all", "", "expected", *_cells(document.total.expected, has_writes=has_writes)])
        rows.append(["", "", "at most", *_cells(document.total.at_most, has_writes=has_writes)])
    title = f"Estimate of `{document.method}` on {document.subject}"
    if document.like is not None:
        title += f", like run {document.like}"
    return Rows(title=title, columns=columns, rows=rows)


def assumption_rows(document: EstimateDocument) -> Rows:
    """What is assumed, and under which name it is changed."""
    rows = [[one.name, one.value, one.meaning] for one in document.assumptions]
    return Rows(
        title="Assumed (--assume NAME=VALUE changes it, --like RUN measures it)",
        columns=["name", "value", "what"],
        rows=rows,
        cell_characters=120,
    )


def headline(document: EstimateDocument) -> Iterator[str]:
    """The figures that stand for it, and what to do where one is missing."""
    expected, total = document.total.expected, document.total
    yield (
        f"Expected: {_dollars(expected.usage.usd)}, {all_tokens(expected.usage):,} tokens in {expected.requests:,} "
        "requests."
    )
    is_limited = document.budget_usd is not None or document.budget_tokens is not None
    bounds = "settings, context and budget allow" if is_limited else "settings and context allow"
    again = "come out of the budget" if is_limited else "come on top"
    yield (
        f"At most: {_dollars(total.at_most_usd)}, {total.at_most_tokens:,} tokens; that is what {bounds}, each figure "
        f"by itself. Calls that are lost and asked again {again}."
    )
    if _is_over(document):
        yield "The budget is less than what is expected: such a run will probably be ended by it before its time."
    if document.unpriced:
        names = ", ".join(document.unpriced)
        yield (
            f"The price of {names} is unknown: give {_PRICE_OPTION} (US dollars for a million tokens), `price` in a "
            f"--models file, or a file of prices in ${PRICES_VARIABLE}; or limit tokens with --budget-tokens."
        )
    elif not is_limited and total.at_most_usd:
        yield "Nothing limits it yet: --budget-usd and --budget-tokens end a run before it spends more."


def _is_over(document: EstimateDocument) -> bool:
    usage, usd, tokens = document.total.expected.usage, document.budget_usd, document.budget_tokens
    is_too_dear = usd is not None and usage.usd is not None and usage.usd > usd
    return is_too_dear or (tokens is not None and all_tokens(usage) > tokens)


def _sources(document: EstimateDocument) -> Iterator[str]:
    for model, source in dict.fromkeys((line.model, line.price_source) for line in document.lines):
        if source is not None:
            yield f"- {model}: {source}."


def _line(line: Line, most: Amounts) -> EstimateLine:
    return EstimateLine(
        role=line.role,
        model=line.model.name,
        context_tokens=line.model.context_tokens,
        context_source=line.model.context_source.value,
        price_source=line.model.price_source or None,
        expected=_amounts(line.expected),
        at_most=_amounts(most),
    )


def _amounts(amounts: Amounts) -> EstimatedAmounts:
    shown = rounded(amounts)
    return EstimatedAmounts(requests=shown.requests, usage=usage_document(shown.usage))


def _cells(amounts: EstimatedAmounts, *, has_writes: bool) -> list[object]:
    usage = amounts.usage
    written = [usage.cache_write_input_tokens] if has_writes else []
    counts = [amounts.requests, usage.input_tokens, usage.cached_input_tokens, *written, usage.output_tokens]
    return [*(f"{count:,}" for count in counts), "unknown" if usage.usd is None else f"{usage.usd:,.2f}"]


def _writes(amounts: EstimatedAmounts) -> int:
    return amounts.usage.cache_write_input_tokens


def _dollars(usd: object) -> str:
    return "unknown US dollars" if usd is None else f"{cast('float', usd):,.2f} US dollars"
