"""Where every package stands after the contests so far: ratings, tests and accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.methods.robophd.members import Member
from orchestrator.methods.robophd.settings import EloSettings
from orchestrator.search.ratings import update
from orchestrator.search.tournament import Standing, winners


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestResult:
    """One contest: who was right on which of the same questions."""

    iteration: int
    kind: str
    questions: Mapping[str, tuple[str, ...]]
    """Database to the ids of its questions."""
    right: Mapping[str, frozenset[str]]
    """Package to the questions it answered right; in the order in which the competitors were chosen."""

    @property
    def total(self) -> int:
        """How many questions everybody was asked."""
        return sum(map(len, self.questions.values()))

    @property
    def winners(self) -> frozenset[str]:
        """Everybody with the highest accuracy."""
        return winners({name: len(questions) for name, questions in self.right.items()})

    def accuracy(self, name: str) -> float:
        """Of one competitor, from 0 to 1."""
        return len(self.right[name]) / self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One package in the table."""

    member: Member
    rating: float
    tests: int = 0
    """Contests it took part in."""
    questions: int = 0
    """Of all its contests together."""
    right: int = 0

    @property
    def accuracy(self) -> float | None:
        """Over all its contests; None: it was in none."""
        return self.right / self.questions if self.questions else None


@dataclass
class Standings:
    """Grows contest by contest. Not thread-safe."""

    elo: EloSettings
    members: dict[str, Member] = field(default_factory=dict)
    """In the order of age."""
    contests: list[ContestResult] = field(default_factory=list)
    _ratings: dict[str, float] = field(default_factory=dict)

    def join(self, member: Member) -> None:
        """Take a package into the population."""
        self.members[member.id] = member
        self._ratings[member.id] = self.elo.start

    def apply(self, contest: ContestResult) -> None:
        """Change the ratings by a contest."""
        counts = {name: len(questions) for name, questions in contest.right.items()}
        self._ratings = update(self._ratings, counts, k=self.elo.k, scale=self.elo.scale, order=self.elo.order)
        self.contests.append(contest)

    @property
    def ratings(self) -> Mapping[str, float]:
        """Everybody's, in the order of age."""
        return dict(self._ratings)

    @property
    def for_choice(self) -> Mapping[str, Standing]:
        """Everybody as the choice of competitors needs it."""
        return {
            row.member.id: Standing(rating=row.rating, tests=row.tests, born=row.member.iteration) for row in self.table
        }

    @property
    def table(self) -> tuple[Row, ...]:
        """The best rating first; of equal ones the older."""
        rows = [self._row(member) for member in self.members.values()]
        return tuple(sorted(rows, key=lambda row: -row.rating))

    def _row(self, member: Member) -> Row:
        own = [contest for contest in self.contests if member.id in contest.right]
        return Row(
            member=member,
            rating=self._ratings[member.id],
            tests=len(own),
            questions=sum(contest.total for contest in own),
            right=sum(len(contest.right[member.id]) for contest in own),
        )


def iteration_key(iteration: int, part: str) -> str:
    """A journal key of an iteration, for instance `it/03/end`."""
    return f"it/{iteration:02d}/{part}"


def contest_record(contest: ContestResult, ratings: Mapping[str, float]) -> dict[str, Any]:
    """What the journal keeps of a contest."""
    return {
        "kind": contest.kind,
        "questions": {name: list(ids) for name, ids in contest.questions.items()},
        "competitors": list(contest.right),
        "right": {name: _ordered(contest, right) for name, right in contest.right.items()},
        "ratings": {name: round(rating, 6) for name, rating in ratings.items()},
    }


def contest_from_record(iteration: int, record: Mapping[str, Any]) -> ContestResult:
    """The inverse of `contest_record`."""
    right: Mapping[str, Sequence[str]] = record["right"]
    return ContestResult(
        iteration=iteration,
        kind=record["kind"],
        questions={name: tuple(ids) for name, ids in record["questions"].items()},
        right={name: frozenset(right[name]) for name in record["competitors"]},
    )


def _ordered(contest: ContestResult, right: Iterable[str]) -> list[str]:
    known = frozenset(right)
    return [question for ids in contest.questions.values() for question in ids if question in known]
