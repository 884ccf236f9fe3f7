"""What an estimate assumes, by method; every assumption is shown, and changed with `--assume NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from orchestrator.bootstrap.estimates.models import ContextSource, EstimatedModel
from orchestrator.domain.written_settings import WrittenSettings
from orchestrator.errors import InputError
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.strict_yaml import shown

T = TypeVar("T", bound="Assumptions")
Tokens = Annotated[int, Field(ge=0, le=100_000_000)]
SomeTokens = Annotated[int, Field(ge=1, le=100_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Times = Annotated[float, Field(ge=0, le=100_000)]
_CONTEXT = "context_tokens"


class Assumptions(WrittenSettings):
    """Common to all methods."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    context_tokens: Annotated[int, Field(ge=1024, le=100_000_000)] = 32_768
    """Context of a model of which neither its entry nor the table of capabilities says it; its server may say more."""

    def stated(self, models: Iterable[EstimatedModel]) -> list[tuple[str, float, str]]:
        """(name, value, meaning) of each that is an assumption about these models."""
        fields = dict(type(self).model_fields)
        if not _has_assumed_context(models):
            del fields[_CONTEXT]
        return [(name, getattr(self, name), " ".join((field.description or "").split())) for name, field in
                fields.items()]  # fmt: skip


class RunAssumptions(Assumptions):
    """Of AgenticEvolve; in the paper's symbolic regression a commit took 16 requests, and 2 without analyses."""

    requests_per_commit: Annotated[float, Field(gt=0, le=100_000)] = 10
    """Requests that lead to one commit."""
    reply_tokens: Tokens = 1000
    """Output of one request, reasoning included (about what the paper measured)."""
    result_tokens: SomeTokens = 1500
    """What the answers to a reply's tool calls add to the conversation."""
    handoff_tokens: Tokens = 3000
    """What a conversation that has become too long hands to its successor, beside the task and the program."""
    cached_share: Share = 0.98
    """Part of the conversation so far that comes from the provider's cache, where it has one (99 % in the paper)."""


class BenchAssumptions(Assumptions):
    """Of EvoSQL."""

    schema_tokens: Tokens = 4000
    """Schema text of a database, with example values; only a container may read the database itself."""
    reply_tokens: Tokens = 600
    """Output of a request for a query, reasoning included."""
    critique_tokens: Tokens = 100
    """Output of the critic for each candidate, reasoning included."""
    candidate_tokens: Tokens = 300
    """A candidate in a later request: its query, its result and what was said of it."""
    later_rounds_share: Share = 0.5
    """Part of the questions that make each round after the first (the paper's models stopped 10 to 84 % of them)."""
    repaired_share: Share = 0.05
    """Part of the critiques that have to be asked for again."""
    cached_share: Share = 0.5
    """Part of what requests about a question have in common that comes from the provider's cache, where it has one."""


class EvolveAssumptions(Assumptions):
    """Of RoboPhD."""

    evolver_requests: Annotated[float, Field(gt=0, le=10_000)] = 30
    """Requests of one evolution, its Deep Focus included."""
    opening_tokens: Tokens = 20_000
    """The evolver's first message: packages, standings and error reports."""
    evolver_reply_tokens: Tokens = 2000
    """Output of one of its requests, reasoning included."""
    result_tokens: SomeTokens = 3000
    """What the answers to its tool calls add to the conversation."""
    evolver_cached_share: Share = 0.98
    """Part of its conversation so far that comes from the provider's cache, where it has one."""
    requests_per_answer: Times = 2
    """Requests about one question: for a query, and to look at its result."""
    analysis_tokens: Tokens = 6000
    """Analysis of a database and a package's instructions, which every request about a question holds."""
    reply_tokens: Tokens = 500
    """Output of one request about a question, reasoning included."""
    answered_before_share: Share = 0.0
    """Part of the contests' answers that are known from earlier contests and cost nothing."""
    cached_share: Share = 0.5
    """Part of the analysis that comes from the provider's cache, where it has one."""
    hybrid_share: Share = 0.05
    """Part of the packages' databases that a model analyses because the tool failed."""
    hybrid_requests: Times = 12
    """Requests of such an analysis."""


def assumed(kind: type[T], assignments: Sequence[str], defaults: T | None = None) -> T:
    """Assumptions, with what was said in their place.

    Args:
        kind: Of the method.
        assignments: Each `NAME=VALUE`.
        defaults: Where nothing is said; None: those of the kind.

    Raises:
        InputError: A name is unknown or given twice, or a value is out of its range.
    """
    known = list(kind.model_fields)
    fields: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals:
            msg = f"assumption {shown(assignment)} is not NAME=VALUE; there are {', '.join(known)}"
            raise InputError(msg)
        if name not in known:
            close = next(iter(get_close_matches(name, known, n=1)), None)
            meant = "" if close is None else f" did you mean {close!r}?"
            msg = f"there is no assumption {shown(name)};{meant} there are {', '.join(known)}"
            raise InputError(msg)
        if name in fields:
            msg = f"assumption {name!r} is given twice; give it once"
            raise InputError(msg)
        fields[name] = value
    try:
        return kind.model_validate({**({} if defaults is None else defaults.model_dump()), **fields})
    except ValidationError as error:
        msg = f"assumption {complaint(error.errors(include_url=False)[0])}"
        raise InputError(msg) from error


def require_used(assignments: Sequence[str], models: Sequence[EstimatedModel]) -> None:
    """Refuse an assumed context where that of every model is known.

    Raises:
        InputError: So it is; the message has what is known, and how it is said otherwise.
    """
    is_given = any(assignment.partition("=")[0].strip() == _CONTEXT for assignment in assignments)
    if is_given and not _has_assumed_context(models):
        known = ", ".join(dict.fromkeys(f"{one.name} has {one.context_tokens:,} tokens" for one in models))
        msg = f"the context is known ({known}), so it is not assumed; give `context_tokens` in a --models file instead"
        raise InputError(msg)


def _has_assumed_context(models: Iterable[EstimatedModel]) -> bool:
    return any(one.context_source is ContextSource.ASSUMED for one in models)
