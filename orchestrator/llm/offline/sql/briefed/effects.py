"""What each rule of `conventions` does to the derivations of a question: it changes queries, or how likely they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.llm.offline.sql.briefed import comparisons, rewrites, weights
from orchestrator.llm.offline.sql.logic import Query
from orchestrator.llm.offline.sql.pool import Derived
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.rendering import Unconnected, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Of one rule; a rule without either is heeded when a result is looked at."""

    rewrite: Callable[[Query, Reading], Query] | None = None
    """Gives the query itself where the rule has nothing to say."""
    weigh: Callable[[Query, Reading], float] | None = None
    """Nats to add."""
    justifies: frozenset[str] = frozenset()
    """Kinds of demands (`demands`) that would undo what the rule does, so that they are no doubts."""


EFFECTS: Mapping[str, Effect] = {
    "superlative-limit": Effect(rewrite=rewrites.superlative_limit),
    "superlative-ties": Effect(rewrite=rewrites.superlative_ties, justifies=frozenset(["order"])),
    "count-distinct": Effect(rewrite=rewrites.count_distinct, justifies=frozenset(["count-rows"])),
    "count-rows": Effect(rewrite=rewrites.count_rows, justifies=frozenset(["count-distinct", "distinct"])),
    "distinct-lists": Effect(rewrite=rewrites.distinct_lists, justifies=frozenset(["no-distinct"])),
    "keep-duplicates": Effect(rewrite=rewrites.keep_duplicates, justifies=frozenset(["distinct"])),
    "only-asked": Effect(rewrite=rewrites.only_asked, justifies=frozenset(["output"])),
    "with-measure": Effect(rewrite=rewrites.with_measure, justifies=frozenset(["no-output", "columns", "no-function"])),
    "names-not-ids": Effect(rewrite=rewrites.names_not_ids, justifies=frozenset(["no-output"])),
    "ids-not-names": Effect(rewrite=rewrites.ids_not_names, justifies=frozenset(["no-output", "output"])),
    "full-names": Effect(rewrite=rewrites.full_names, justifies=frozenset(["no-output", "columns"])),
    "first-names": Effect(rewrite=rewrites.first_names, justifies=frozenset(["output", "columns"])),
    "group-first": Effect(rewrite=rewrites.group_first),
    "group-last": Effect(rewrite=rewrites.group_last),
    "asked-order": Effect(rewrite=rewrites.asked_order),
    "evidence-literally": Effect(weigh=weights.evidence_literally),
    "percent-hundred": Effect(rewrite=rewrites.percent_hundred),
    "percent-fraction": Effect(rewrite=rewrites.percent_fraction),
    "exact-values": Effect(rewrite=comparisons.exact_values),
    "like-values": Effect(rewrite=comparisons.like_values, justifies=frozenset(["operator", "no-value"])),
    "values-as-said": Effect(
        rewrite=comparisons.values_as_said, justifies=frozenset(["no-value", "column-value", "value"])
    ),
    "contain-like": Effect(weigh=weights.contain_like),
    "not-in": Effect(weigh=weights.not_in),
    "except": Effect(weigh=weights.with_except),
    "skip-nulls": Effect(rewrite=comparisons.skip_nulls, justifies=frozenset(["no-exclude"])),
    "group-by-key": Effect(rewrite=rewrites.group_by_key),
    "group-by-name": Effect(rewrite=rewrites.group_by_name),
    "cast-numbers": Effect(rewrite=comparisons.cast_numbers),
    "fewest-tables": Effect(weigh=weights.fewest_tables),
    "ignore-case": Effect(rewrite=comparisons.ignore_case),  # last: what it makes of a text is none for the others
    "keep-empty": Effect(),
    "retry-empty": Effect(),
    "keep-query": Effect(),
    "doubt-query": Effect(),
}
"""Every rule's, in the order in which they are applied."""


def justified(rules: frozenset[str]) -> frozenset[str]:
    """Kinds of demands that the rules in force make no doubts of."""
    return frozenset(kind for rule in rules for kind in EFFECTS[rule].justifies)


def in_force(pool: Sequence[Derived], reading: Reading, rules: frozenset[str]) -> tuple[Derived, ...]:
    """The derivations as the rules in force have them, the likeliest first; equal ones are added up."""
    effects = [effect for rule, effect in EFFECTS.items() if rule in rules and (effect.rewrite or effect.weigh)]
    if not effects:
        return tuple(pool)
    found: dict[str, Derived] = {}
    for derived in pool:
        changed = _changed(derived, reading, effects)
        same = found.get(changed.sql)
        found[changed.sql] = changed if same is None else _added(same, changed)
    return tuple(sorted(found.values(), key=lambda derived: -derived.score))


def _changed(derived: Derived, reading: Reading, effects: Sequence[Effect]) -> Derived:
    query, more = derived.query, 0.0
    for effect in effects:
        if effect.rewrite is not None:
            query = effect.rewrite(query, reading)
        if effect.weigh is not None:
            more += effect.weigh(query, reading)
    sql = derived.sql
    if query != derived.query:
        try:
            sql = render(query, reading.schema)
        except Unconnected:
            query = derived.query
    return replace(derived, sql=sql, query=query, score=derived.score + more, drawn=derived.drawn + more)


def _added(left: Derived, right: Derived) -> Derived:
    def both(one: float, other: float) -> float:
        high = max(one, other)
        return high + math.log1p(math.exp(min(one, other) - high))

    return replace(left, score=both(left.score, right.score), drawn=both(left.drawn, right.drawn))
