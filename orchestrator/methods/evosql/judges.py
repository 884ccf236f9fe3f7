"""Who says how good a round's candidates are: the critic, or nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.conversation import Conversation, Reply, StopReason
from orchestrator.methods.evosql import texts
from orchestrator.methods.evosql.asking import Asker, calls_of
from orchestrator.methods.evosql.calls import Call, Phase
from orchestrator.methods.evosql.candidates import Candidate, Critique, Listed
from orchestrator.methods.evosql.context import QuestionContext
from orchestrator.methods.evosql.critiques import CriticAnswer, read_critiques
from orchestrator.search.memory import Evidence, Memory
from orchestrator.search.utility import inherited_raw_score, raw_score

UNREADABLE_SCORE = 5.0
"""What a candidate counts for whose score nobody knows (our decision)."""
_CUT_OFF = "the answer reached its maximum length and was cut off; say less before the JSON, and less in it"
_NOTHING = CriticAnswer(critiques={}, summary=None, problems=("the answer is missing",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of one round, in the order of its candidates."""

    raw_scores: tuple[float, ...]
    """What equation (6) takes for candidates whose running does not decide."""
    critiques: tuple[Critique | None, ...]
    summary: str
    """Cumulative, over all rounds so far."""
    is_judged: bool = True
    """Whether anybody was asked; otherwise the scores are inherited."""
    unreadable: int = 0
    """Sound candidates whose score had to be made up because the critic's answer could not be read."""
    calls: tuple[Call, ...] = ()


class Judge(Protocol):
    """Judges candidates that have been run."""

    def judge(self, number: int, candidates: Sequence[Candidate], summary: str) -> Judgement:
        """Judge a round.

        Args:
            number: Of the round, from 0 on.
            candidates: Without critiques.
            summary: Of the rounds before it; empty: there is none.

        Raises:
            BudgetExhausted: The budget does not cover it.
            EvolvariumError: As a model request.
        """
        ...


class Critic:
    """Asks a model: once for all candidates of a round, and once more where the answer cannot be read."""

    def __init__(self, context: QuestionContext, asker: Asker) -> None:
        self._context = context
        self._asker = asker
        self._names = context.settings.score_names

    def judge(self, number: int, candidates: Sequence[Candidate], summary: str) -> Judgement:
        """See `Judge`."""
        groups = self._groups(candidates)
        listed = self._listed(candidates, groups)
        request = texts.judge_request(
            self._context.question, self._context.schema, listed, summary=summary, score_names=self._names
        )
        answer, replies = self._asked(request, number, len(listed))
        critiques: list[Critique | None] = [None] * len(candidates)
        for index, members in enumerate(groups, 1):
            for place in members:
                critiques[place] = answer.critiques.get(index)
        return Judgement(
            raw_scores=tuple(UNREADABLE_SCORE if c is None else raw_score(list(c.scores.values())) for c in critiques),
            critiques=tuple(critiques),
            summary=summary if answer.summary is None else answer.summary,
            unreadable=sum(
                critique is None and candidate.execution.evidence is Evidence.SOUND
                for critique, candidate in zip(critiques, candidates, strict=True)
            ),
            calls=calls_of(replies, Phase.CRITIC, number),
        )

    def _groups(self, candidates: Sequence[Candidate]) -> list[list[int]]:
        """Places of the candidates that are judged together, each group's first one for all of them."""
        if self._context.settings.critic_mode == "ungrouped":
            return [[place] for place in range(len(candidates))]
        groups: dict[str, list[int]] = {}
        for place, candidate in enumerate(candidates):
            groups.setdefault(candidate.execution.cluster, []).append(place)
        return list(groups.values())

    def _listed(self, candidates: Sequence[Candidate], groups: Sequence[Sequence[int]]) -> list[Listed]:
        is_grouped = self._context.settings.critic_mode == "grouped"
        return [
            Listed(candidate=candidates[places[0]], members=len(places) if is_grouped else None) for places in groups
        ]

    def _asked(self, request: Conversation, number: int, count: int) -> tuple[CriticAnswer, list[Reply | None]]:
        first = self._asker.ask(Phase.CRITIC, 1, request, round_number=number)
        answer = self._read(first, count)
        if not answer.problems or first is None:
            return answer, [first]
        problems = (*([_CUT_OFF] if first.stop is StopReason.LENGTH else []), *answer.problems)
        repair = texts.repair_request(request, first.message, problems)
        second = self._asker.ask(Phase.CRITIC, 2, repair, round_number=number)
        return self._read(second, count).completed_by(answer), [first, second]

    def _read(self, reply: Reply | None, count: int) -> CriticAnswer:
        if reply is None:
            return _NOTHING
        return read_critiques(reply.message.text, count=count, score_names=self._names)


class NoCritic:
    """Self-evolution: whatever ran to its end and gave rows counts as confident; nothing is said of it."""

    def __init__(self, confidence: float) -> None:
        """Give everybody the same.

        Args:
            confidence: tau.
        """
        self._confidence = confidence

    def judge(self, number: int, candidates: Sequence[Candidate], summary: str) -> Judgement:
        """See `Judge`."""
        del number
        count = len(candidates)
        return Judgement(raw_scores=(self._confidence,) * count, critiques=(None,) * count, summary=summary)


def unjudged(memory: Memory[Candidate], candidates: Sequence[Candidate], summary: str) -> Judgement:
    """What is known of a round that nobody was asked about: its candidates inherit from their like in earlier rounds.

    Args:
        memory: Of the rounds before it.
        candidates: Of the round.
        summary: Stays as it is.
    """
    scores = tuple(
        inherited_raw_score(memory, c.key, c.execution.cluster, default=UNREADABLE_SCORE) for c in candidates
    )
    return Judgement(raw_scores=scores, critiques=(None,) * len(candidates), summary=summary, is_judged=False)
