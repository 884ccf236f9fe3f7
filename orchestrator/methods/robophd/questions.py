"""What RoboPhD knows of the data: questions without their gold queries, and which databases are for what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """A question without its gold query."""

    id: str
    """Unique in the run, for instance `spider/17`."""
    database: str
    """Id, unique in the run."""
    text: str
    evidence: str = ""
    """What the data set adds to the question; empty: nothing."""
    group: str = ""
    """Equal for questions of one database with the same gold query: they are no independent evidence. Opaque."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataView:
    """All questions that can be evaluated, by what their databases are for; no database is in two parts."""

    evolve: Mapping[str, tuple[QuestionView, ...]]
    """Database to its questions, in the order of the data set: contests and error reports come from these."""
    select: Mapping[str, tuple[QuestionView, ...]]
    """The champion is chosen by these, and no model that evolves ever hears of the scores."""
