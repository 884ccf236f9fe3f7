"""From error reports to kinds of errors, and what may help against each: sections of an analysis, rules for answers.

What helps on which data is not known here: the tables below only say what a kind of error can have to do with, and
rules that exclude each other stand side by side in them. Which one stays is found by contests and by Deep Focus.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from orchestrator.llm.offline.evolver.reports import Contested, ErrorReport


class Symptom(StrEnum):
    """A kind of error; the values are how accounts call it."""

    EXTRA_COLUMNS = "columns too many"
    MISSING_COLUMNS = "columns too few"
    COLUMN_ORDER = "columns in another order"
    EXTRA_ROWS = "rows too many"
    MISSING_ROWS = "rows too few"
    ROW_ORDER = "rows in another order"
    DUPLICATES = "other duplicates"
    TYPES = "values of another kind"
    FORM = "values in another form"
    NULLS = "NULL in the wrong place"
    VALUES = "other values"
    EMPTY = "no rows"
    UNKNOWN_NAME = "unknown or ambiguous names"
    FAILED = "queries that failed"
    TOOL = "failed or overlong analyses"


SECTIONS: Mapping[Symptom, tuple[str, ...]] = {
    Symptom.EMPTY: ("enumerations", "formats", "columns_and_samples", "pitfalls"),
    Symptom.UNKNOWN_NAME: ("ddl", "keys_and_cardinalities", "pitfalls", "columns_and_samples"),
    Symptom.FAILED: ("ddl", "keys_and_cardinalities"),
    Symptom.EXTRA_ROWS: ("keys_and_cardinalities", "enumerations", "orphans", "pitfalls"),
    Symptom.MISSING_ROWS: ("keys_and_cardinalities", "enumerations", "orphans", "formats"),
    Symptom.DUPLICATES: ("keys_and_cardinalities",),
    Symptom.TYPES: ("columns_and_samples", "pitfalls", "semantic_hints"),
    Symptom.FORM: ("formats", "pitfalls", "columns_and_samples"),
    Symptom.NULLS: ("pitfalls", "orphans"),
    Symptom.VALUES: ("semantic_hints", "columns_and_samples", "keys_and_cardinalities", "ranges", "row_counts"),
    Symptom.MISSING_COLUMNS: ("semantic_hints", "columns_and_samples"),
    Symptom.TOOL: ("size_adaptation", "row_counts"),
}
"""Those that tell what a query of this kind did not know, the most likely first."""

CONVENTIONS: Mapping[Symptom, tuple[str, ...]] = {
    Symptom.EXTRA_COLUMNS: ("only-asked", "first-names"),
    Symptom.MISSING_COLUMNS: ("with-measure", "full-names"),
    Symptom.COLUMN_ORDER: ("asked-order", "group-first", "group-last"),
    Symptom.EXTRA_ROWS: (
        "superlative-limit", "exact-values", "not-in", "except", "skip-nulls", "group-by-name", "distinct-lists",
    ),
    Symptom.MISSING_ROWS: (
        "superlative-ties", "like-values", "ignore-case", "group-by-key", "not-in", "except", "contain-like",
    ),
    Symptom.DUPLICATES: ("distinct-lists", "keep-duplicates", "group-by-key", "group-by-name"),
    Symptom.TYPES: ("names-not-ids", "ids-not-names", "cast-numbers", "percent-hundred"),
    Symptom.FORM: ("percent-hundred", "percent-fraction", "cast-numbers", "exact-values"),
    Symptom.NULLS: ("skip-nulls",),
    Symptom.VALUES: (
        "count-distinct", "count-rows", "evidence-literally", "percent-hundred", "percent-fraction", "cast-numbers",
        "superlative-limit", "superlative-ties", "fewest-tables", "names-not-ids", "ids-not-names",
    ),
    Symptom.EMPTY: ("retry-empty", "exact-values", "ignore-case", "like-values", "contain-like", "values-as-said",
                    "keep-empty"),
    Symptom.UNKNOWN_NAME: ("fewest-tables", "doubt-query"),
    Symptom.FAILED: ("fewest-tables", "doubt-query", "keep-query"),
}  # fmt: skip
"""Ids of conventions (`offline.sql.conventions`) by what they can change."""

_DIFFERENCES = tuple(
    (re.compile(pattern), symptom)
    for pattern, symptom in (
        (r"columns?\b.{0,20}too many|extra columns?", Symptom.EXTRA_COLUMNS),
        (r"columns?\b.{0,20}too few|missing columns?", Symptom.MISSING_COLUMNS),
        (r"columns? in another order", Symptom.COLUMN_ORDER),
        (r"duplicates? differ", Symptom.DUPLICATES),
        (r"rows?\b.{0,20}too many|should not be there|extra rows?", Symptom.EXTRA_ROWS),
        (r"^\d+ rows?, where there should be none", Symptom.EXTRA_ROWS),
        (r"rows?\b.{0,20}too few|missing rows?", Symptom.MISSING_ROWS),
        (r"rows are right.*another order", Symptom.ROW_ORDER),
        (r"null\b", Symptom.NULLS),
        (r"where (?:numbers|text|blobs)\b.*should be|types? differ", Symptom.TYPES),
        (r"differ only in", Symptom.FORM),
    )
)
_NAMES = re.compile(r"no such (?:column|table)|ambiguous column", re.IGNORECASE)


def symptoms_of(report: ErrorReport) -> frozenset[Symptom]:
    """What is wrong with one answer; never empty."""
    if _NAMES.search(report.message):
        return frozenset({Symptom.UNKNOWN_NAME})
    if report.status not in {"", "ok"} or not report.sql.strip():
        return frozenset({Symptom.FAILED})
    if report.row_count == 0 or any(text.startswith("no rows") for text in report.differences):
        return frozenset({Symptom.EMPTY})
    found = {
        symptom for text in report.differences for pattern, symptom in _DIFFERENCES if pattern.search(text.lower())
    }
    if Symptom.DUPLICATES in found:
        return frozenset({Symptom.DUPLICATES})
    return frozenset(found or {Symptom.VALUES})


def counted(reports: Iterable[ErrorReport]) -> Counter[Symptom]:
    """How often each kind occurs; one answer can count for several."""
    return Counter(symptom for report in reports for symptom in sorted(symptoms_of(report)))


def tool_troubles(contest: Iterable[Contested]) -> int:
    """Databases on which an analysis failed, over all competitors."""
    return sum(entry.tool != "ok" for entry in contest)


def commonest(counts: Counter[Symptom]) -> Symptom | None:
    """The most frequent kind, the first by name of equals; None: there are no errors."""
    return min(counts, key=lambda symptom: (-counts[symptom], symptom.value)) if counts else None


def section_weight(name: str, counts: Mapping[Symptom, int]) -> float:
    """How much of the errors a section of an analysis can have to do with, from 0 to 1."""
    total = sum(counts.values())
    if not total:
        return 0.0
    share = sum(
        count / math.sqrt(1 + SECTIONS[symptom].index(name))
        for symptom, count in counts.items()
        if name in SECTIONS.get(symptom, ())
    )
    return min(1.0, share / total)
