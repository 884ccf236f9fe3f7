"""Which databases are for what, and which questions a contest asks (RoboPhD, section 3.2.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.search.streams import stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSplit:
    """Databases by purpose; none is in two parts, and each part is sorted by name."""

    evolve: tuple[str, ...]
    """Contests and error reports come from these."""
    select: tuple[str, ...]
    """The champion is chosen by these."""
    final: tuple[str, ...]
    """Nothing is decided by these."""


def split_databases(names: Iterable[str], seed: int, shares: tuple[int, int, int] = (7, 3, 3)) -> DatabaseSplit:
    """Deal out databases at random, by the stream (seed, "split").

    Sizes are those of the largest-remainder method (Hamilton); of equal remainders the earlier part gets more. A part
    that would stay empty gets one database from the largest part as long as that has more than one, so no part of
    three or more databases is empty; of fewer, `final` and then `select` may be.

    Args:
        names: A set of databases: neither their order nor repetition matters.
        seed: Of the run.
        shares: Of evolve, select and final, all positive.

    Raises:
        ValueError: A share is not positive.
    """
    ranked = sorted(set(names))
    drawn = [ranked[int(n)] for n in stream(seed, "split").permutation(len(ranked))]
    evolve, select, _ = _sizes(len(drawn), shares)
    return DatabaseSplit(
        evolve=tuple(sorted(drawn[:evolve])),
        select=tuple(sorted(drawn[evolve : evolve + select])),
        final=tuple(sorted(drawn[evolve + select :])),
    )


def sample_contest(
    questions_by_database: Mapping[str, Sequence[T]], seed: int, iteration: int, *, databases: int, per_database: int
) -> dict[str, tuple[T, ...]]:
    """The questions of one contest, without replacement.

    Databases are drawn by the stream (seed, "contest", iteration), and the questions of each by its own, which has the
    database's name as a further part: what another database holds cannot change them.

    Args:
        questions_by_database: All there are, in the order of the data set; a database without any is never drawn.
        seed: Of the run.
        iteration: From 1.
        databases: How many, at least 1; all if there are fewer.
        per_database: How many questions of each, at least 1; all that a database has if these are fewer.

    Returns:
        Database to its questions: databases sorted by name, questions in the order of the data set.

    Raises:
        ValueError: A number is under 1, or there is no question at all.
    """
    if databases < 1 or per_database < 1:
        msg = f"a contest asks at least one question of one database, got {databases} x {per_database}"
        raise ValueError(msg)
    ranked = sorted(name for name, questions in questions_by_database.items() if questions)
    if not ranked:
        msg = "there is no question to sample a contest from; give at least one database that has some"
        raise ValueError(msg)
    drawn = stream(seed, "contest", iteration).permutation(len(ranked))[:databases]
    contest = {}
    for name in (ranked[n] for n in sorted(drawn.tolist())):
        questions = questions_by_database[name]
        places = stream(seed, "contest", iteration, name).permutation(len(questions))[:per_database]
        contest[name] = tuple(questions[n] for n in sorted(places.tolist()))
    return contest


def _sizes(count: int, shares: tuple[int, int, int]) -> list[int]:
    if min(shares) < 1:
        msg = f"every part has a positive share, got {shares}"
        raise ValueError(msg)
    total = sum(shares)
    sizes = [count * share // total for share in shares]
    by_remainder = sorted(range(3), key=lambda part: -(count * shares[part] % total))
    for part in by_remainder[: count - sum(sizes)]:
        sizes[part] += 1
    while 0 in sizes and max(sizes) > 1:
        sizes[sizes.index(max(sizes))] -= 1
        sizes[sizes.index(0)] += 1
    return sizes
