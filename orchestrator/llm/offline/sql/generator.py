"""The generator: draws derivations; in later rounds it prefers those that repair what critic and results show."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence

from orchestrator.llm.offline.sql.choices import softmax
from orchestrator.llm.offline.sql.critic import Candidate
from orchestrator.llm.offline.sql.demands import Demand, demands_in, is_met
from orchestrator.llm.offline.sql.edits import repairs_of
from orchestrator.llm.offline.sql.evidence import doubts, unfounded
from orchestrator.llm.offline.sql.expectations import expectations
from orchestrator.llm.offline.sql.logic import Query
from orchestrator.llm.offline.sql.pool import Derived
from orchestrator.llm.offline.sql.profile import Profile, profile_of
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.rendering import Unconnected, render
from orchestrator.llm.offline.sql.schema import SchemaView

_REPAIRED = 3.0
"""Nats, as all weights here: for meeting a repair that the critique of an earlier attempt names."""
_LESSON = 1.5
"""For following a lesson of the summary."""
_FORESEEN = 0.5
"""Against what a critic would find, for each point that it would take off."""
_UNCHANGED = 6.0
"""For an attempt with which nothing is wrong."""
_SAME_FAULT = -4.0
"""For an attempt that failed, or for which a repair is known."""
_HOPELESS = 3.0
"""For an attempt that ran, whose result is doubted, and for which nobody knows a repair: it may be right."""
_SHARPNESS = 5.0
"""First drafts keep closer to their likeliest picks than the scores alone would have it."""
_MAX_EDITS = 60
_EDIT_COST = 1.0
"""Of each change made to an earlier attempt."""


def draw(scores: Sequence[float], seed: int, temperature: float) -> int:
    """A number of an option, by softmax; temperature 0: the first best."""
    chance = random.Random(hashlib.sha256(f"sql/{seed}".encode()).digest())  # noqa: S311 - sampling, not secrecy
    return chance.choices(range(len(scores)), weights=softmax(scores, temperature))[0]


def write(pool: Sequence[Derived], seed: int, temperature: float) -> str:
    """A query for a first round."""
    return pool[draw([_SHARPNESS * derived.drawn for derived in pool], seed, temperature)].sql


def improve(
    pool: Sequence[Derived],
    reading: Reading,
    candidates: Sequence[Candidate],
    summary: str,
    *,
    seed: int,
    temperature: float,
) -> tuple[str, list[Demand]]:
    """A query that takes earlier attempts into account, and the demands it was to meet.

    Where there is a critique, what it makes of the question is also what new queries are measured by before they are
    given out; without one, the execution records are all there is to go by.
    """
    schema = reading.schema
    is_advised = any(candidate.critique for candidate in candidates)
    expected = expectations(reading) if is_advised else []
    repairs = list(dict.fromkeys(d for c in candidates for d in _repairs(c, schema)))
    lessons = [demand for demand in demands_in(summary, schema) if demand not in repairs]
    earlier = [(candidate, profile_of(candidate.sql, schema)) for candidate in candidates]
    options = [*pool, *_edited(pool, schema, candidates, repairs)]
    scores = []
    for derived in options:
        profile = profile_of(derived.sql, schema)
        score = derived.score
        score -= _FORESEEN * sum(e.weight for e in expected if not e.holds(profile))
        if expected:
            score -= _FORESEEN * sum(doubt.weight for doubt in doubts(reading, profile, {}))
        score += _REPAIRED * sum(is_met(demand, profile) for demand in repairs)
        score += _LESSON * sum(is_met(demand, profile) for demand in lessons)
        score += sum(
            _likeness_to(
                derived.sql, profile, candidate, other, is_repairable=bool(repairs) or candidate.status != "ok"
            )
            for candidate, other in earlier
        )
        scores.append(score)
    return options[draw(scores, seed, temperature)].sql, repairs


def _edited(
    pool: Sequence[Derived], schema: SchemaView, candidates: Sequence[Candidate], repairs: Sequence[Demand]
) -> list[Derived]:
    """Earlier attempts with one repair carried out, or with two, one after the other."""
    there = {_key(derived.sql) for derived in pool}
    edited: dict[str, Derived] = {}
    for candidate in candidates:
        start = _nearest(pool, schema, candidate)
        waiting = [(start.query, start.score)]
        for _ in range(2):
            changed = [
                (other, score - _EDIT_COST)
                for query, score in waiting
                for demand in repairs
                for other in repairs_of(query, demand, schema)
            ][:_MAX_EDITS]
            for query, score in changed:
                sql = _rendered(query, schema)
                if sql is not None and _key(sql) not in there:
                    edited.setdefault(_key(sql), Derived(sql=sql, query=query, score=score, drawn=score))
            waiting = changed
    return list(edited.values())


def _nearest(pool: Sequence[Derived], schema: SchemaView, candidate: Candidate) -> Derived:
    """The derivation that is an earlier attempt, or most like it."""
    features = _features(profile_of(candidate.sql, schema))

    def share(derived: Derived) -> float:
        if _key(derived.sql) == _key(candidate.sql):
            return 2.0
        mine = _features(profile_of(derived.sql, schema))
        return len(mine & features) / max(1, len(mine | features))

    return max(pool, key=share)


def _rendered(query: Query, schema: SchemaView) -> str | None:
    try:
        return render(query, schema)
    except Unconnected:
        return None


def _repairs(candidate: Candidate, schema: SchemaView) -> list[Demand]:
    """What the critique asks for; without one, what the result does: not the same conditions if no row came."""
    issues = candidate.critique.get("issues")
    if isinstance(issues, list):
        said = "\n".join(_text(issue) for issue in issues[:20])
        return demands_in(said, schema)
    if candidate.status == "ok" and candidate.execution.get("row_count") == 0:
        return unfounded(schema, profile_of(candidate.sql, schema))
    return []


def _text(issue: object) -> str:
    if isinstance(issue, dict):
        return f"{issue.get('problem', '')}\n{issue.get('repair', '')}"
    return str(issue)


def _likeness_to(sql: str, profile: Profile, candidate: Candidate, other: Profile, *, is_repairable: bool) -> float:
    """A bonus for staying near an earlier attempt; a penalty for repeating one that has faults."""
    if _key(sql) == _key(candidate.sql):
        return _UNCHANGED if _is_sound(candidate) else _SAME_FAULT if is_repairable else _HOPELESS
    mine, theirs = _features(profile), _features(other)
    return 1.5 * len(mine & theirs) / max(1, len(mine | theirs))


def _is_sound(candidate: Candidate) -> bool:
    if candidate.status != "ok" or candidate.execution.get("row_count") == 0:
        return False
    return not candidate.critique.get("issues")


def _features(profile: Profile) -> set[object]:
    return {*profile.columns, *profile.tables, *profile.literals, *(str(output) for output in profile.outputs)}


def _key(sql: str) -> str:
    return re.sub(r"\s+", " ", sql.strip().rstrip(";")).lower()
