"""Which wrong answers a rule could have changed at all: by the words of the question and by the query that was given.

A rule about percentages helps no question without one, and a rule for ties changes no query that keeps all rows. This
says nothing of whether the rule would be right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from orchestrator.llm.offline.evolver.reports import ErrorReport
from orchestrator.llm.offline.evolver.symptoms import CONVENTIONS, symptoms_of

_MOST = (
    r"\b(?:most|least|highest|lowest|largest|smallest|maximum|minimum|oldest|youngest|best|worst|top|fewest|longest"
    r"|shortest|earliest|latest|newest|biggest|\w+est)\b"
)
_COUNTS = r"\bhow many\b|\bnumber of\b|\bcount\b"
_EACH = r"\beach\b|\bper\b|\bevery\b|\bgroup|\bby\b"
_ABSENT = r"\bnot\b|\bno\b|\bwithout\b|\bnever\b|n't\b|\bexcept\b|\bexclud"
_SHARE = r"percent|ratio|proportion|\brate\b|share"
_WHICH = r"\bwhich\b|\bwho\b|\bwhat\b|\bname|\blist\b|\bid\b|\bids\b"
_NAME = r"\bnames?\b|\bwho\b"
_EQUALS_TEXT = r"=\s*'"

_QUESTION: Mapping[str, str] = {
    "superlative-limit": _MOST,
    "superlative-ties": _MOST,
    "count-distinct": _COUNTS,
    "count-rows": _COUNTS,
    "with-measure": f"{_MOST}|{_EACH}|{_COUNTS}",
    "names-not-ids": _WHICH,
    "ids-not-names": _WHICH,
    "full-names": _NAME,
    "first-names": _NAME,
    "group-first": _EACH,
    "group-last": _EACH,
    "percent-hundred": _SHARE,
    "percent-fraction": _SHARE,
    "contain-like": r"\bcontain|\binclud|\bword\b|\bsubstring|\bstart|\bend(?:s|ing)?\b|\bletter",
    "not-in": _ABSENT,
    "except": _ABSENT,
}
"""Convention to what the question or its evidence must mention; others fit any."""
_SQL: Mapping[str, str] = {
    "superlative-limit": r"\b(?:max|min)\s*\(|\border\s+by\b(?!.*\blimit\b)",
    "superlative-ties": r"\blimit\b",
    "count-distinct": r"\bcount\s*\((?!\s*distinct)",
    "count-rows": r"\bcount\s*\(\s*distinct",
    "distinct-lists": r"\bselect\b(?!\s+distinct\b)",
    "keep-duplicates": r"\bdistinct\b",
    "exact-values": r"\blike\b|\bcollate\b|" + _EQUALS_TEXT,
    "like-values": _EQUALS_TEXT,
    "ignore-case": _EQUALS_TEXT,
    "values-as-said": r"'",
    "not-in": r"\bexcept\b|\bjoin\b|<>|!=",
    "except": r"\bnot\s+in\b|\bnot\s+exists\b|<>|!=",
    "skip-nulls": r"\border\s+by\b|\bmin\s*\(",
    "group-by-key": r"\bgroup\s+by\b",
    "group-by-name": r"\bgroup\s+by\b",
    "group-first": r"\bgroup\s+by\b",
    "group-last": r"\bgroup\s+by\b",
    "cast-numbers": r"\border\s+by\b|[<>]|\b(?:max|min|sum|avg)\s*\(",
    "fewest-tables": r"\bjoin\b",
    "asked-order": r"\bselect\b[^()]*,",
    "only-asked": r",",
}
"""Convention to what the query must hold; others fit any."""
_QUESTION_CUES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _QUESTION.items()}
_SQL_CUES = {name: re.compile(pattern, re.IGNORECASE | re.DOTALL) for name, pattern in _SQL.items()}


def could_change(identifier: str, report: ErrorReport) -> bool:
    """Whether a convention has to do with a question and with the query that was given."""
    if identifier == "evidence-literally" and not report.evidence.strip():
        return False
    asked, given = _QUESTION_CUES.get(identifier), _SQL_CUES.get(identifier)
    text = f"{report.question}\n{report.evidence}"
    return (asked is None or asked.search(text) is not None) and (given is None or given.search(report.sql) is not None)


def evidence(reports: Iterable[ErrorReport]) -> dict[str, float]:
    """Share of the wrong answers that each convention could have changed.

    Where a kind of error has several that fit, the likelier ones count more.

    Returns:
        Convention to a number from 0 to 1; what no report speaks for is left out.
    """
    found: dict[str, float] = {}
    total = 0
    for report in reports:
        total += 1
        weights: dict[str, float] = {}
        for symptom in symptoms_of(report):
            for place, identifier in enumerate(CONVENTIONS.get(symptom, ())):
                if could_change(identifier, report):
                    weights[identifier] = max(weights.get(identifier, 0.0), 1 / math.sqrt(1 + place))
        for identifier, weight in weights.items():
            found[identifier] = found.get(identifier, 0.0) + weight
    return {identifier: found[identifier] / total for identifier in sorted(found)}
