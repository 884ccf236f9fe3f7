"""What a run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.methods.robophd.members import Member
from orchestrator.methods.robophd.standings import ContestResult


class Ending(StrEnum):
    """Why a run ended."""

    ITERATIONS = "iterations"
    """All of them are done."""
    BUDGET = "budget"
    """Tokens or money do not cover the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run that has ended."""

    ending: Ending
    members: tuple[Member, ...]
    """The oldest first."""
    contests: tuple[ContestResult, ...]
    ratings: Mapping[str, float]
    failures: Mapping[int, str]
    """Iterations whose evolution failed, and why."""
    selection: Mapping[str, tuple[int, int]]
    """Package to (right, questions) on the selection databases; those that the budget did not reach are missing."""
    champion: str
    """By selection; where nothing was scored there, by rating."""
