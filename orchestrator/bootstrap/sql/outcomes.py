"""What a bench keeps of each question that can be evaluated: who was right in what, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, ValidationError

from orchestrator.domain.conversation import Rare, Usage
from orchestrator.errors import RunStateError
from orchestrator.evaluation.sql_judge import Flag, Metric
from orchestrator.methods.evosql.calls import Call, Phase
from orchestrator.ports import Journal

Right = Annotated[frozenset[Metric], PlainSerializer(lambda right: [m.value for m in Metric if m in right])]
"""The metrics in which something is right; equal ones are written alike."""
Flags = Annotated[frozenset[Flag], PlainSerializer(lambda flags: [f.value for f in Flag if f in flags])]
RECORD = "/outcome"
"""End of the journal key of a question's outcome, after `q/17`."""


class Method(StrEnum):
    """What can be measured on one first round."""

    EVOSQL = "evosql"
    SELF_EVOLUTION = "self_evolution"
    MAJORITY = "majority"
    BEST_OF_K = "best_of_k"
    """A choice among the best of EvoSQL's memory."""


EVOLUTIONS = (Method.EVOSQL, Method.SELF_EVOLUTION)
"""Those that make rounds."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CallRecord(_Record):
    """One answered request."""

    phase: Phase
    round: Annotated[int, Field(ge=0)]
    input: Annotated[int, Field(ge=0)]
    """Tokens; input without what was read from a cache or written into one."""
    cached: Annotated[int, Field(ge=0)]
    written: Annotated[Rare[int], Field(ge=0)] = 0
    """Input that was written into a cache."""
    output: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, call: Call) -> CallRecord:
        """From the method's own account."""
        usage = call.usage
        return cls(
            phase=call.phase,
            round=call.round,
            input=usage.input_tokens,
            cached=usage.cached_input_tokens,
            written=usage.cache_write_tokens,
            output=usage.output_tokens,
        )

    def call(self) -> Call:
        """As the method's accounting takes it; what it cost in money is not kept here."""
        usage = Usage(
            input_tokens=self.input,
            cached_input_tokens=self.cached,
            cache_write_tokens=self.written,
            output_tokens=self.output,
            usd=None,
        )
        return Call(phase=self.phase, round=self.round, usage=usage)


class EvolutionRecord(_Record):
    """One evolution, over and above the first round."""

    ending: str
    answers: tuple[Right, ...]
    """In what the answer was right, after each round that was made; at least one."""
    passed: tuple[Right, ...]
    """Likewise in what any of the K best entries was, which are not all of one round."""
    later: tuple[Right, ...]
    """Likewise of all candidates of the rounds after the first."""
    unreadable: Annotated[int, Field(ge=0)]
    """Candidates whose score had to be made up because the critic's answer could not be read."""
    calls: tuple[CallRecord, ...]
    """Without those of the first round's candidates."""


class PredictionRecord(_Record):
    """What a method answered."""

    sql: str
    """As the model wrote it; empty: no candidate held a query."""
    result: str | None
    """Digest of the blob with what running it gave; None: there was no query to run."""
    flags: Flags
    """Of its comparison with gold, whether it is right or not."""


class SpentRecord(_Record):
    """What was spent on one question by all methods together."""

    requests: Annotated[int, Field(ge=0)]
    input_tokens: Annotated[int, Field(ge=0)]
    cached_input_tokens: Annotated[int, Field(ge=0)]
    cache_write_tokens: Annotated[Rare[int], Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)]
    reasoning_tokens: Annotated[Rare[int], Field(ge=0)] = 0
    usd: str | None
    """A decimal number; None: unknown."""
    lost: Annotated[int, Field(ge=0)]
    """Calls in flight when a process ended, charged at their worst case."""

    @property
    def usage(self) -> Usage:
        """All of it together."""
        return Usage(
            input_tokens=self.input_tokens,
            cached_input_tokens=self.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens,
            output_tokens=self.output_tokens,
            reasoning_tokens=self.reasoning_tokens,
            usd=None if self.usd is None else Decimal(self.usd),
        )


class Outcome(_Record):
    """One question."""

    id: str
    database: str
    first: tuple[Right, ...]
    """In what each candidate of the first round was right; empty: the budget did not cover the round."""
    first_calls: tuple[CallRecord, ...]
    choice_calls: tuple[CallRecord, ...] = ()
    """Of Best-of-K's choice."""
    evolutions: Mapping[Method, EvolutionRecord]
    answers: Mapping[Method, Right]
    """In what each method's final answer was right; one that is missing was not reached by the budget."""
    predictions: Mapping[Method, PredictionRecord] = Field(default={})
    """The final answers themselves."""
    flags: Flags
    """Of the comparisons of final answers that were right in anything."""
    spent: SpentRecord


def outcome_of(journal: Journal, key: str) -> Outcome | None:
    """A question's outcome; None: it has none yet.

    Args:
        journal: Of the run.
        key: Of the record, for instance `q/17/outcome`.

    Raises:
        RunStateError: The record is damaged, or of another version.
    """
    record = journal.get(key)
    if record is None:
        return None
    try:
        return Outcome.model_validate(record)
    except ValidationError as error:
        msg = f"the record of {key!r} is damaged or of another version; restore the run from a copy"
        raise RunStateError(msg) from error
