"""What EvoSQL comes to on one question, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.methods.evosql.calls import Call
from orchestrator.methods.evosql.candidates import Candidate
from orchestrator.methods.evosql.questions import QuestionView
from orchestrator.search.agreement import Assessment
from orchestrator.search.memory import Entry


class Ending(StrEnum):
    """Why a question's evolution ended."""

    STABLE = "stable"
    """The best candidates agree with confidence."""
    ROUNDS = "rounds"
    """All rounds are made."""
    BUDGET = "budget"
    """The budget does not cover the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRound:
    """The candidates that every method on a question starts from."""

    question: QuestionView
    candidates: tuple[Candidate, ...]
    """K of them, in the order of their numbers; run, and not judged."""
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round, and how the memory stands after it."""

    number: int
    """From 0 on."""
    assessment: Assessment[Candidate]
    """Its utilities are those of the memory's entries up to this round."""
    summary: str
    """The critic's, after this round; empty: there is none."""
    is_judged: bool
    """Whether anybody judged its candidates; otherwise they inherited what was known of their like."""
    unreadable: int
    """Candidates whose score had to be made up because the critic's answer could not be read."""
    calls: tuple[Call, ...]
    """Of this round; those of the first one's candidates are in `FirstRound`."""

    @property
    def answer(self) -> Candidate:
        """The answer if it were now."""
        return self.assessment.answer.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A question's evolution from its first round to its answer."""

    question: QuestionView
    method: str
    ending: Ending
    entries: tuple[Entry[Candidate], ...]
    """The whole memory, with critiques."""
    rounds: tuple[Round, ...]
    """At least one."""

    @property
    def answer(self) -> Candidate:
        """The final answer; one without SQL where no candidate had any."""
        return self.rounds[-1].answer

    @property
    def best(self) -> Sequence[Entry[Candidate]]:
        """The last round's TopK, best first."""
        return self.rounds[-1].assessment.top

    @property
    def calls(self) -> tuple[Call, ...]:
        """All requests but those for the first round's candidates, and those of a round that the budget cut off."""
        return tuple(call for round_ in self.rounds for call in round_.calls)

    def answer_at(self, number: int) -> Candidate:
        """The answer after a round (T1 is round 0); after an early end it stays what it was.

        Args:
            number: From 0 on.
        """
        return self.rounds[min(number, len(self.rounds) - 1)].answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Best-of-K's answer."""

    answer: Candidate
    candidates: tuple[Candidate, ...]
    """Among which was chosen, best first, each different query once."""
    is_readable: bool
    """Whether the selector's answer could be read; otherwise the first was taken. True where nothing was asked."""
    calls: tuple[Call, ...]
