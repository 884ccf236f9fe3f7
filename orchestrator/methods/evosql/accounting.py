"""Where the tokens went and what early stopping saved, as in the paper's Tables 11 and 12; pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.domain.conversation import Usage
from orchestrator.methods.evosql.calls import Call, Phase
from orchestrator.methods.evosql.solutions import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens in and out, or a sum of them."""

    infill: int = 0
    """Input, cached input included."""
    cached: int = 0
    """As much of the infill as came from the provider's cache."""
    decode: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        """Sum."""
        return Tokens(
            infill=self.infill + other.infill, cached=self.cached + other.cached, decode=self.decode + other.decode
        )

    @property
    def total(self) -> int:
        """In and out."""
        return self.infill + self.decode


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTokens:
    """One row of Table 11; the critic stands with the round whose candidates it judges."""

    round: int | None
    """From 0 on; None: the sum of all."""
    generator: Tokens
    """The first round's prompt counted once per question, as where one request asks for K completions."""
    equivalent: Tokens
    """The generator's with that prompt counted once per completion (the paper's maj@K-equivalent)."""
    critic: Tokens

    @property
    def total(self) -> int:
        """With the first prompt counted once."""
        return self.generator.total + self.critic.total

    @property
    def total_equivalent(self) -> int:
        """With the first prompt counted once per completion."""
        return self.equivalent.total + self.critic.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One column of Table 12."""

    round: int
    active: int
    """Questions that made this round."""
    outputs: int
    """Candidates of it."""
    stopped_share: float
    """Which part of all questions did not, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Equation (14): what early stopping saved in aggregation."""

    made: int
    """Candidates of later rounds."""
    without_stopping: int
    """What they would have been had every question made all rounds."""

    @property
    def saved(self) -> int:
        """Candidates that were not made."""
        return self.without_stopping - self.made

    @property
    def share(self) -> float | None:
        """Which part that is, from 0 to 1; None: there are no later rounds."""
        return self.saved / self.without_stopping if self.without_stopping else None


def tokens_of(usage: Usage) -> Tokens:
    """Of one call."""
    return Tokens(
        infill=usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens,
        cached=usage.cached_input_tokens,
        decode=usage.output_tokens,
    )


def token_table(
    questions: Iterable[Sequence[Call]], *, rounds: int, critic_last_round: bool = True
) -> tuple[RoundTokens, ...]:
    """Table 11 of one method.

    Args:
        questions: The calls of each question, those of the first round among them; choices are not counted.
        rounds: T.
        critic_last_round: Whether what the critic cost after round T counts; the paper's table has none there.

    Returns:
        A row for every round, and their sum.
    """
    generator, equivalent, critic = ([Tokens()] * rounds for _ in range(3))
    for calls in questions:
        for number in range(rounds):
            of_round = [call for call in calls if call.round == number]
            made = [tokens_of(call.usage) for call in of_round if call.phase in {Phase.ELICIT, Phase.AGGREGATE}]
            judged = [tokens_of(call.usage) for call in of_round if call.phase is Phase.CRITIC]
            equivalent[number] += sum(_each_prefilled(made) if number == 0 else made, Tokens())
            generator[number] += _once_prefilled(made) if number == 0 else sum(made, Tokens())
            if critic_last_round or number < rounds - 1:
                critic[number] += sum(judged, Tokens())
    rows = [
        RoundTokens(round=number, generator=generator[number], equivalent=equivalent[number], critic=critic[number])
        for number in range(rounds)
    ]
    total = RoundTokens(
        round=None,
        generator=sum(generator, Tokens()),
        equivalent=sum(equivalent, Tokens()),
        critic=sum(critic, Tokens()),
    )
    return (*rows, total)


def early_stop_table(rounds_made: Sequence[int], *, candidates: int, rounds: int) -> tuple[Activity, ...]:
    """Table 12 of one method and model.

    Args:
        rounds_made: Of each question, at least 1.
        candidates: K.
        rounds: T.
    """
    active = [sum(made > number for made in rounds_made) for number in range(rounds)]
    return tuple(
        Activity(
            round=number,
            active=count,
            outputs=count * candidates,
            stopped_share=1 - count / len(rounds_made) if rounds_made else 0.0,
        )
        for number, count in enumerate(active)
    )


def aggregate_savings(rounds_made: Sequence[int], *, candidates: int, rounds: int) -> Savings:
    """Equation (14).

    Args:
        rounds_made: Of each question, at least 1.
        candidates: K.
        rounds: T.
    """
    return Savings(
        made=candidates * sum(made - 1 for made in rounds_made),
        without_stopping=candidates * (rounds - 1) * len(rounds_made),
    )


def rounds_made(solutions: Iterable[Solution]) -> tuple[int, ...]:
    """How many rounds each question made."""
    return tuple(len(solution.rounds) for solution in solutions)


def calls_by_question(
    recorded: Mapping[str, Mapping[str, Sequence[Call]]], method: str
) -> tuple[tuple[Call, ...], ...]:
    """The calls of every question under one method, the first round's with them.

    Args:
        recorded: From `calls.read_calls`.
        method: Its name in the journal keys.
    """
    return tuple((*methods.get("", ()), *methods.get(method, ())) for methods in recorded.values())


def _each_prefilled(made: Sequence[Tokens]) -> list[Tokens]:
    """All with the prompt that they share: of completions that came together, one alone was charged for it."""
    paid = next((tokens for tokens in made if tokens.infill), Tokens())
    return [tokens if tokens.infill else replace(paid, decode=tokens.decode) for tokens in made]


def _once_prefilled(made: Sequence[Tokens]) -> Tokens:
    """All outputs, and the input of the first that was charged for it; the others have the same."""
    paid = next((tokens for tokens in made if tokens.infill), Tokens())
    return replace(paid, decode=sum(tokens.decode for tokens in made))
