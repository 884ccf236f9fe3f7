"""All derivations of a question that are worth considering, best first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.llm.offline.sql.choices import Chooser, best_runs
from orchestrator.llm.offline.sql.grammar import derive
from orchestrator.llm.offline.sql.logic import Query
from orchestrator.llm.offline.sql.reading import Reading, read
from orchestrator.llm.offline.sql.rendering import Unconnected, render

MAX_RUNS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A query, its logical form, and how likely its derivations are."""

    sql: str
    query: Query
    score: float
    """How likely it is as a whole; nats."""
    drawn: float
    """How likely a first draft is to come to it, pick by pick, each by what stands next to it; nats."""


@lru_cache(maxsize=256)
def pool_of(schema_text: str, question: str, hint: str) -> tuple[Derived, ...]:
    """Different queries, the most likely first; of equal ones the scores are added up. Empty: none could be built."""
    return derivations(read(schema_text, question, hint))


def derivations(reading: Reading, max_runs: int = MAX_RUNS) -> tuple[Derived, ...]:
    """The same for a reading, from at most `max_runs` derivations."""

    def program(choose: Chooser) -> tuple[str, Query] | None:
        try:
            query = derive(reading, choose)
            return render(query, reading.schema), query
        except Unconnected:
            return None

    if not reading.schema.tables:
        return ()
    weights: dict[str, float] = {}
    drawn: dict[str, float] = {}
    queries: dict[str, Query] = {}
    for run in best_runs(program, max_runs):
        if run.result is not None:
            sql, query = run.result
            weights[sql] = weights.get(sql, 0.0) + math.exp(-run.cost - run.charged)
            drawn[sql] = drawn.get(sql, 0.0) + math.exp(-run.drafted)
            queries.setdefault(sql, query)
    ranked = sorted(weights.items(), key=lambda item: -item[1])
    return tuple(
        Derived(sql=sql, query=queries[sql], score=math.log(weight), drawn=math.log(drawn[sql]))
        for sql, weight in ranked
    )
