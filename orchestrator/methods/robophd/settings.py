"""What may be chosen about RoboPhD; the defaults are the paper's and, where it is silent, our decisions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from orchestrator.search.ratings import Order
from orchestrator.sql.shown_results import ShownBounds

Share = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]


class Strategy(StrEnum):
    """How the evolver is told to go about it; each is a text in `prompts/strategies/`."""

    CROSS_POLLINATION = "cross-pollination"
    REFINEMENT = "refinement"
    RESEARCH_DRIVEN = "research-driven"
    """Needs papers."""
    ERROR_FOCUSED = "error-focused"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EloSettings(_Section):
    """Ratings of the archive."""

    start: Annotated[float, Field(ge=0, le=10_000)] = 1500.0
    k: Annotated[float, Field(gt=0, le=1000)] = 32.0
    scale: Annotated[float, Field(gt=0, le=10_000)] = 400.0
    order: Order = Order.SIMULTANEOUS
    """`sequential` applies the pairs of a contest one after the other, as the published code does."""


class AnswerSettings(_Section):
    """How a question is answered; an exported package is answered with the same."""

    corrections: Annotated[int, Field(ge=0, le=8)] = 2
    """How often the model may look at a result and correct its query."""
    temperatures: Annotated[tuple[Temperature, ...], Field(min_length=1, max_length=9)] = (0.0, 0.2, 0.3)
    """Of the first query and of each later request; the last one counts for all further ones."""
    token_budget: Annotated[int, Field(ge=1000, le=10_000_000)] = 200_000
    """Analysis, instructions, question and evidence together; over it nothing is asked."""
    max_output_tokens: Annotated[int, Field(ge=64, le=1_000_000)] = 8_192
    """Of one reply, reasoning included."""
    hybrid_requests: Annotated[int, Field(ge=0, le=200)] = 24
    """Of the model that analyses a database where the tool failed; 0: such a database has no analysis."""
    hybrid_characters: Annotated[int, Field(ge=1000, le=2_000_000)] = 100_000
    """Where such an analysis is cut."""
    record_rows: Annotated[int, Field(ge=1, le=1000)] = 10
    """Rows of a result that models are shown."""
    record_cell_characters: Annotated[int, Field(ge=16, le=100_000)] = 200
    """Where a cell is cut."""
    record_characters: Annotated[int, Field(ge=1000, le=1_000_000)] = 8_000
    """Of one result's rows together."""

    @property
    def shown_bounds(self) -> ShownBounds:
        """How much of a result models are shown."""
        return ShownBounds(
            rows=self.record_rows, cell_characters=self.record_cell_characters, characters=self.record_characters
        )

    def temperature(self, request: int) -> float:
        """Of one request about a question, the first one being 0."""
        return self.temperatures[min(request, len(self.temperatures) - 1)]


class ScheduleSettings(_Section):
    """Which kind of round an iteration is, and who takes part."""

    agents: Annotated[int, Field(ge=2, le=64)] = 3
    """In a standard round."""
    exploration_agents: Annotated[int, Field(ge=2, le=64)] = 4
    """In challenger and none rounds."""
    late_stage: Annotated[int, Field(ge=2, le=100_000)] = 12
    """The first iteration that may be another round than a standard one."""
    challenger: Share = 0.15
    none: Share = 0.15
    strategies: Annotated[dict[Strategy, Annotated[float, Field(ge=0, le=1e6)]], Field(min_length=1)] = {
        Strategy.CROSS_POLLINATION: 1.0
    }
    """Weights of the strategies that rounds with an evolution draw from."""

    @model_validator(mode="after")
    def _shares_make_sense(self) -> Self:
        if self.challenger + self.none > 1:
            msg = f"challenger {self.challenger} and none {self.none} are more than 1 together"
            raise ValueError(msg)
        if not sum(self.strategies.values()) > 0:
            msg = "the weights of the strategies are all 0; give one of them a weight"
            raise ValueError(msg)
        return self


class EvolverSettings(_Section):
    """The conversation that makes a package."""

    deep_focus: Annotated[int, Field(ge=0, le=10)] = 1
    """k: rounds of testing on earlier iterations and revising."""
    requests: Annotated[int, Field(ge=1, le=10_000)] = 80
    """Model requests of one evolution, its Deep Focus included."""
    tries: Annotated[int, Field(ge=0, le=1000)] = 12
    """How often the tool may be tried on a database."""
    idle_turns: Annotated[int, Field(ge=1, le=100)] = 3
    """It ends after this many turns without a tool call in a row."""
    max_output_tokens: Annotated[int, Field(ge=256, le=1_000_000)] = 32_000
    temperature: Temperature | None = None
    """None: the provider's default."""
    errors_shown: Annotated[int, Field(ge=1, le=1000)] = 30
    """Error reports of one package and database."""


class Settings(_Section):
    """Everything but the data, the models and the policy; part of the run's record."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 30
    databases_per_contest: Annotated[int, Field(ge=1, le=1000)] = 5
    questions_per_database: Annotated[int, Field(ge=1, le=10_000)] = 30
    """At most; a database with fewer gives what it has."""
    elo: EloSettings = EloSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    answers: AnswerSettings = AnswerSettings()
    evolver: EvolverSettings = EvolverSettings()
    papers: tuple[str, ...] = ()
    """Texts that the strategy `research-driven` shows."""

    @model_validator(mode="after")
    def _papers_are_there(self) -> Self:
        if self.schedule.strategies.get(Strategy.RESEARCH_DRIVEN, 0) > 0 and not self.papers:
            msg = (
                "the strategy research-driven needs papers; name files under `papers:` in a --config file, or set its "
                "weight to 0"
            )
            raise ValueError(msg)
        return self
