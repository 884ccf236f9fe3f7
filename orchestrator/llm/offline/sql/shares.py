"""Shares: `what percentage of X are Y`, a division of two numbers of rows."""

from __future__ import annotations

from orchestrator.llm.offline.sql.draft import Draft
from orchestrator.llm.offline.sql.logic import Condition, Item

_PERCENT = frozenset({"percentage", "percent", "percentages"})
_RATIO = frozenset({"proportion", "share", "fraction", "ratio"})


def share(draft: Draft) -> Item | None:
    """The share that the question asks for, of the rows that meet its last condition; None: it asks for none.

    The condition is taken out of the draft: it counts rows and excludes none.
    """
    lows = draft.reading.lows
    asked = next((place for place, low in enumerate(lows) if low in _PERCENT | _RATIO), None)
    simple = [
        f for f in draft.filters if f.condition.query is None and not f.condition.alternatives and f.column is not None
    ]
    if asked is None or not simple or any(m.first <= asked < m.last for m in draft.reading.mentions):
        return None
    taken = draft.choose.pick([(found, 0.5 * rank) for rank, found in enumerate(simple)])
    draft.filters.remove(taken)
    factor = " * 100" if not _PERCENT.isdisjoint(lows) else ""
    parts = taken.condition.item.parts or (taken.condition.item.column or "*",)
    test = _literals(taken.condition)
    return Item(parts=("CAST(SUM(CASE WHEN ", *parts, f" {test} THEN 1 ELSE 0 END) AS REAL){factor} / COUNT(*)"))


def _literals(condition: Condition) -> str:
    joint = " AND " if "BETWEEN" in condition.op else " "
    return f"{condition.op} {joint.join(condition.literals)}"
