"""What a run tells while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Event(StrEnum):
    """What has just happened."""

    ITERATION = "iteration"
    """One begins; `subject` is the kind of its round."""
    REQUEST = "request"
    """The evolver has answered; `done` counts its requests."""
    PACKAGE = "package"
    """An evolution has ended; `subject` is the new package's id, or empty where it failed and `note` says why."""
    FOCUS = "focus"
    """A Deep Focus test has ended; `subject` is the draft."""
    ANALYSIS = "analysis"
    """A tool has analysed a database; `subject` is `package/database`."""
    ANSWER = "answer"
    """Questions have been answered: `done` of `total` of the package in `subject`."""
    CONTEST = "contest"
    """One has ended; `figures` holds the accuracy of each competitor."""
    SELECT = "select"
    """A package has been scored on the selection databases; `figures` holds its accuracy."""
    END = "end"
    """`subject` is the champion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One event. A resumed run tells its recorded steps again."""

    event: Event
    iteration: int
    """From 1; 0: none."""
    subject: str = ""
    note: str = ""
    done: int = 0
    total: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)
