"""What may be chosen about EvoSQL; the defaults are those of the paper's Table 5 and of our decisions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.search.agreement import Rules, TieBreak
from orchestrator.search.utility import Weights
from orchestrator.sql.shown_results import ShownBounds

ONE_SCORE = ("score",)
FOUR_SCORES = ("alignment", "schema", "logic", "completeness")
Temperature = Annotated[float, Field(ge=0, le=2)]


class Settings(BaseModel):
    """Everything but the questions, the databases and the models; part of the run's record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    """Seeds every request and every draw of a payload."""
    candidates: Annotated[int, Field(ge=1, le=256)] = 16
    """K: candidates of a round, and entries that are looked at for stopping and for the answer."""
    rounds: Annotated[int, Field(ge=1, le=32)] = 3
    """T: at most so many rounds, the first one included."""
    payload: Annotated[int, Field(ge=1, le=16)] = 1
    """M: remembered candidates that one improvement is shown."""
    time_discount: Annotated[float, Field(gt=0, le=1)] = 0.9
    """gamma."""
    consistency_weight: Annotated[float, Field(ge=0, le=100)] = 0.3
    """lambda."""
    bonus_cap: Annotated[float, Field(ge=0, le=1000)] | None = None
    """The consistency bonus, lambda included, is at most this; None: no cap."""
    confidence_weight: Annotated[float, Field(ge=0, le=100)] = 1.0
    """Scales what the critic said within the utility; invalid candidates stay at -1, empty ones at 0."""
    confidence_threshold: Annotated[float, Field(ge=0, le=10)] = 8.0
    """tau: from which confidence on a candidate supports its result."""
    selection_temperature: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """kappa."""
    stop_share: Annotated[float, Field(gt=0, le=1)] = 0.9
    """pi: which share of the best K entries must agree with confidence, to stop early."""
    tie_break: TieBreak = TieBreak.EARLIER
    """Which of two entries of the same utility comes first."""
    critic_mode: Literal["ungrouped", "grouped"] = "ungrouped"
    """Whether the critic sees every candidate, or one for each different result."""
    critic_scores: Literal["one", "four"] = "one"
    """Whether it gives one score, or one each for alignment, schema, logic and completeness."""
    critic_last_round: bool = True
    """Whether the last round's candidates are judged too; otherwise they inherit what is known of their like."""
    empty_is_suspect: bool = True
    """Whether a result without rows counts as 0 whatever the critic says."""
    temperature: Temperature | None = 0.8
    """Of the generator; None: the provider's default."""
    critic_temperature: Temperature | None = 0.0
    """Of critic and selector; None: the provider's default."""
    max_output_tokens: Annotated[int, Field(ge=64, le=1_000_000)] = 8_192
    """Of one reply, reasoning included."""
    record_rows: Annotated[int, Field(ge=1, le=1000)] = 10
    """Rows of a result that models are shown."""
    record_cell_characters: Annotated[int, Field(ge=16, le=100_000)] = 200
    """Where a cell is cut."""
    record_characters: Annotated[int, Field(ge=1000, le=1_000_000)] = 8_000
    """Of one result's rows together; rows over it are not shown, but for the first."""

    @property
    def score_names(self) -> tuple[str, ...]:
        """What the critic is asked to score."""
        return ONE_SCORE if self.critic_scores == "one" else FOUR_SCORES

    @property
    def shown_bounds(self) -> ShownBounds:
        """How much of a result models are shown."""
        return ShownBounds(
            rows=self.record_rows, cell_characters=self.record_cell_characters, characters=self.record_characters
        )

    @property
    def rules(self) -> Rules:
        """How a memory is assessed."""
        weights = Weights(
            discount=self.time_discount,
            consistency=self.consistency_weight,
            threshold=self.confidence_threshold,
            confidence=self.confidence_weight,
            bonus_cap=self.bonus_cap,
        )
        return Rules(weights=weights, top=self.candidates, stop_share=self.stop_share, tie_break=self.tie_break)
