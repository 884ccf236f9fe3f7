"""How the conditions of a question belong together: all of them, one of them, or each for some row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.llm.offline.sql.draft import Draft, Filter
from orchestrator.llm.offline.sql.logic import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Conditions joined with AND, and at most one pair that two queries share out between them."""

    conditions: tuple[Condition, ...]
    split: tuple[Condition, Condition] | None = None


def combine(draft: Draft, *, is_aggregate: bool) -> Combined:
    """The conditions that are not denied."""
    positive = _unique([found for found in draft.filters if not found.negated])
    by_column: dict[object, list[Filter]] = {}
    for found in positive:
        by_column.setdefault(found.column, []).append(found)
    conditions: list[Condition] = []
    split: tuple[Condition, Condition] | None = None
    for group in by_column.values():
        if len(group) == 1 or any(found.condition.query is not None for found in group):
            conditions.extend(found.condition for found in group)
            continue
        relation = _relation(draft, group, is_aggregate=is_aggregate)
        if relation == "or":
            first, *others = (found.condition for found in group)
            conditions.append(replace(first, alternatives=tuple(others)))
        elif relation == "each" and split is None:
            split = (group[0].condition, group[1].condition)
        else:
            conditions.extend(found.condition for found in group)
    return Combined(conditions=tuple(conditions), split=split)


def _unique(found: list[Filter]) -> list[Filter]:
    return list({item.condition: item for item in sorted(found, key=lambda item: item.place)}.values())


def _relation(draft: Draft, group: list[Filter], *, is_aggregate: bool) -> str:
    """`and`, `or`, or `each` (one row for this, another for that)."""
    lows = draft.reading.lows
    between = set(lows[group[0].place : group[-1].place + 1])
    both = "both" in lows[: group[-1].place + 1]
    fits = _can_hold_together(group)
    options = [
        ("or", (3.0 if "or" in between else -1.0 if both else 0.8) - (2.0 if fits else 0.0)),
        (
            "each",
            (3.0 if both else 1.6 if "and" in between else -1.0)
            - (2.5 if is_aggregate else 0.0)
            - (2.0 if fits else 0.0),
        ),
        ("and", 2.0 if fits else -2.0),
    ]
    return draft.choose.pick(options)


def _can_hold_together(group: list[Filter]) -> bool:
    """Whether one value can meet all of the comparisons."""
    ops = [found.condition.op for found in group]
    if any(op in {"=", "LIKE"} for op in ops):
        return all(op == "LIKE" for op in ops)
    low = [_number(f) for f in group if f.condition.op in {">", ">="}]
    high = [_number(f) for f in group if f.condition.op in {"<", "<="}]
    return not low or not high or max(low) < min(high)


def _number(found: Filter) -> float:
    try:
        return float(found.condition.literals[0].strip("'"))
    except (ValueError, IndexError):
        return 0.0
