"""What is said of a predicted query by comparing its recorded result with the gold query's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.sql import comparison
from orchestrator.sql.gate import Statement


class GoldStatus(StrEnum):
    """Whether a question can be judged; one that cannot leaves the denominator and is reported."""

    OK = "ok"
    ERROR = "gold_error"
    TIMEOUT = "gold_timeout"
    REFUSED = "gold_refused"
    """It needs what the policy keeps back."""
    TRUNCATED = "gold_truncated"
    """It has more rows than are kept, so that nothing can be compared with all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One predicted query against one gold query that could be judged."""

    metrics: Mapping[str, bool]
    """One per name in `comparison.METRICS`."""
    predicted_status: QueryStatus
    """Anything but ok: wrong in every metric, and this says why."""
    both_empty: bool = False
    """Neither has rows: right in every metric, and never evidence on its own."""
    lossy_text: bool = False
    """One of the two holds text that is not UTF-8; it was compared byte for byte."""
    nondeterministic: bool = False
    """The gold's rows depend on the order in which the engine happens to read."""
    truncated: bool = False
    """The predicted query gave more than is kept: wrong in every metric, as the gold gave less."""
    undecided: bool = False
    """Whether some order of the columns makes `spider` right would take too long to find out: it counts as wrong."""


def gold_status(gold: QueryResult) -> GoldStatus:
    """Whether predictions can be judged against this result."""
    if gold.is_ok:
        return GoldStatus.TRUNCATED if gold.truncated else GoldStatus.OK
    return {
        QueryStatus.TIMEOUT: GoldStatus.TIMEOUT,
        QueryStatus.REFUSED: GoldStatus.REFUSED,
    }.get(gold.status, GoldStatus.ERROR)


def judge(predicted: QueryResult, gold: QueryResult, *, gold_statement: Statement, nondeterministic: bool) -> Verdict:
    """Compare two recorded results in every metric.

    Args:
        predicted: Any result; one that is not ok, or is truncated, is wrong in every metric.
        gold: One with `gold_status` ok.
        gold_statement: The gold query; whether its top level has ORDER BY decides what `spider` compares.
        nondeterministic: Whether the gold gave other rows when unordered rows came in another order.

    Raises:
        ValueError: The gold's status is not ok, so that there is nothing to compare with.
    """
    if (status := gold_status(gold)) is not GoldStatus.OK:
        msg = f"a question whose gold has the status {status.value!r} cannot be judged; leave it out"
        raise ValueError(msg)
    comparable = predicted.is_ok and not predicted.truncated
    found = (
        _compare(predicted, gold, gold_is_ordered=gold_statement.has_top_level_order)
        if comparable
        else dict.fromkeys(comparison.METRICS, False)
    )
    return Verdict(
        metrics=MappingProxyType({name: found[name] is True for name in comparison.METRICS}),
        predicted_status=predicted.status,
        both_empty=comparable and not predicted.rows and not gold.rows,
        lossy_text=predicted.lossy_text or gold.lossy_text,
        nondeterministic=nondeterministic,
        truncated=predicted.truncated,
        undecided=None in found.values(),
    )


def _compare(predicted: QueryResult, gold: QueryResult, *, gold_is_ordered: bool) -> Mapping[str, bool | None]:
    rows = predicted.rows, gold.rows
    return {
        "bird": comparison.bird(*rows),
        "multiset": comparison.multiset(*rows),
        "spider": comparison.spider(*rows, gold_is_ordered=gold_is_ordered),
        "strict": comparison.strict(*rows),
        "relaxed": comparison.relaxed(*rows),
    }
