"""A proposed query, what running it gave, and what the critic says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.sql import QueryStatus
from orchestrator.search.memory import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What became of one query, as far as models and the search need it."""

    status: QueryStatus
    evidence: Evidence
    cluster: str
    """Equal for queries that gave the same."""
    shown: Mapping[str, Any]
    """What models are shown: status, error, columns, the first rows, row_count, truncated."""
    result: str | None
    """Digest of the blob with the whole result (`domain.sql_results`); None: there was no query to run."""
    wall_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Something wrong with a query, and what would repair it; both the critic's words."""

    problem: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique:
    """What the critic said of one candidate."""

    scores: Mapping[str, float]
    """Each from 0 to 10."""
    issues: tuple[Issue, ...] = ()
    execution_assessment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One proposal."""

    sql: str
    """As the model wrote it; empty: its answer held no query."""
    key: str
    """The same for queries that differ only in white space and the case of keywords."""
    execution: Execution
    critique: Critique | None = None
    """None: it was not judged, or not in words that could be read."""

    @property
    def is_valid(self) -> bool:
        """Whether it ran to its end, with rows or without."""
        return self.execution.status is QueryStatus.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A candidate as it stands in a prompt's list."""

    candidate: Candidate
    members: int | None = None
    """For how many of its round it stands; None: for itself."""
