"""What a bench was asked for, as its record keeps it, and the settings that go with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from orchestrator.bootstrap.model_choices import NO_ACCESS, RecordedAccess
from orchestrator.bootstrap.models import Wanted
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.domain.budgets import Budget
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Runtime
from orchestrator.errors import InputError
from orchestrator.methods.evosql import Settings
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.strict_yaml import shown

_SMALLEST_USD = Decimal("0.000001")
_PAPER = {
    "k": "candidates",
    "t": "rounds",
    "m": "payload",
    "gamma": "time_discount",
    "lambda": "consistency_weight",
    "tau": "confidence_threshold",
    "kappa": "selection_temperature",
    "pi": "stop_share",
}
"""What the paper calls a setting."""
QUERY_SECONDS = 30.0
"""The paper's; a policy's data rule may grant less."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        msg = "a path holds no NUL character"
        raise ValueError(msg)
    return text


PathText = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
"""A path in a file of ours; whether something is there, shows later."""


class Layout(StrEnum):
    """How a data set lies on the disk."""

    BIRD = "bird"
    SPIDER = "spider"
    JSONL = "jsonl"


class SqlBudget(BaseModel):
    """What may be spent on language models; None: no ceiling."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    usd: Annotated[Decimal, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None

    def share(self, questions: int) -> Budget:
        """An equal part for each question, so that their order cannot matter."""
        usd = None if self.usd is None else (self.usd / questions).quantize(_SMALLEST_USD, ROUND_DOWN)
        return Budget(usd=usd, tokens=None if self.tokens is None else self.tokens // questions)


class CommonChoices(BaseModel):
    """Options that `sql bench` and `sql sweep` share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "offline"
    critic_model: str | None = None
    """None: the same."""
    policy: str = "default"
    runtime: Runtime | None = None
    query_seconds: Annotated[float, Field(gt=0, le=600)] = QUERY_SECONDS
    """CPU time of a predicted query, at most what the policy's data rule grants."""
    budget: SqlBudget = SqlBudget()
    """Of the whole run."""
    access: RecordedAccess = NO_ACCESS
    """Where its models are, and what they cost."""
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    """Questions at once; None: one per processor of the machine."""

    @property
    def critic(self) -> str:
        """Name of the critic's model."""
        return self.critic_model or self.model

    @property
    def wanted(self) -> Wanted:
        """The models that are asked."""
        return [(ModelRole.GENERATOR, self.model), (ModelRole.CRITIC, self.critic)]


class BenchChoices(CommonChoices):
    """Options of `sql bench` that are not settings of the method; part of the run's record."""

    layout: Layout
    root: str
    """Folder of the data set; of a list as JSON lines, the file."""
    question_file: str | None = None
    """Name of the list of questions; None: the layout's own."""
    databases: tuple[str, ...] | None = None
    """Only questions of these; None: of all."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many questions, spread evenly over the list; None: all."""
    methods: Annotated[tuple[Method, ...], Field(min_length=1)] = tuple(Method)


def methods_of(names: Sequence[str]) -> tuple[Method, ...]:
    """Methods by name, in the order of `Method`.

    Raises:
        InputError: There is none of a name, one is given twice, or Best-of-K lacks the evolution it chooses from.
    """
    known = [method.value for method in Method]
    for name in names:
        if name not in known:
            msg = f"no method {name!r}; there are {', '.join(known)}"
            raise InputError(msg)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        msg = f"method {twice!r} is given twice; give it once"
        raise InputError(msg)
    found = tuple(method for method in Method if method.value in names)
    if not found:
        msg = f"no method is given; there are {', '.join(known)}"
        raise InputError(msg)
    if Method.BEST_OF_K in found and Method.EVOSQL not in found:
        msg = "best_of_k chooses among what evosql comes to; add evosql, or leave best_of_k out"
        raise InputError(msg)
    return found


def settings_of(given: Mapping[str, Any], assignments: Sequence[str] = ()) -> Settings:
    """Settings of the method.

    Args:
        given: Fields; None is not given.
        assignments: More of them, each `name=value` with the value as JSON or as a word.

    Raises:
        InputError: A name is unknown or given twice, or a value is out of its range.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    for assignment in assignments:
        name, text = _assigned(assignment)
        if name in fields:
            msg = f"setting {name!r} is given twice; give it once"
            raise InputError(msg)
        fields[name] = _value(text)
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        msg = f"setting {complaint(error.errors(include_url=False)[0])}"
        raise InputError(msg) from error


def _assigned(assignment: str) -> tuple[str, str]:
    """Name and value of `NAME=VALUE`; the name is known."""
    name, equals, text = assignment.partition("=")
    name = name.strip()
    known = list(Settings.model_fields)
    if not equals:
        msg = f"setting {shown(assignment)} is not NAME=VALUE, for instance rounds=2; there are {', '.join(known)}"
        raise InputError(msg)
    if name not in known:
        raise InputError(no_setting(name))
    return name, text.strip()


def no_setting(name: str) -> str:
    """That there is no setting of a name, and which one may be meant."""
    known = list(Settings.model_fields)
    close = _PAPER.get(name.lower()) or next(iter(get_close_matches(name, known, n=1)), None)
    meant = "" if close is None else f" did you mean {close!r}?"
    return f"there is no setting {shown(name)};{meant} there are {', '.join(known)}"


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return TypeAdapter(int | float | bool | None).validate_json(text)
    except ValidationError:
        return text
