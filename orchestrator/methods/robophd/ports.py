"""What RoboPhD is handed; `bootstrap` wires it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.policies import Limits
from orchestrator.methods.robophd.events import Progress
from orchestrator.ports import Database, DatabaseTools, Journal, LanguageModel, Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What may be said of one answer."""

    is_right: bool
    """Execution accuracy as BIRD has it: the set of rows is the gold query's."""
    difference: tuple[str, ...] = ()
    """The shape of the difference in words, never a value: `1 column too many`. Empty if right."""


class ContestJudge(Protocol):
    """Knows the gold results. Thread-safe, and pure: equal results are judged alike."""

    def judge(self, question: str, result: str | None) -> Judged:
        """Judge a recorded result.

        Args:
            question: Id.
            result: Digest of the blob with it (`domain.sql_results`); None: there was no query to run.

        Raises:
            RunStateError: The result, or the question's gold result, is missing or damaged.
        """
        ...


class Databases(Protocol):
    """Databases in the predicted domain. Thread-safe."""

    def open(self, name: str) -> AbstractContextManager[Database]:
        """A database for as long as the block lasts; several users of one share its container.

        Raises:
            EvolvariumError: As `ports.Database`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPorts:
    """Everything outside the method. Nothing here gives away a gold query or its rows."""

    evolver: LanguageModel
    answerer: LanguageModel
    """Also analyses databases whose tool failed."""
    tools: DatabaseTools
    tool_limits: Limits
    """Of one run of a tool, for the evolver to know."""
    databases: Databases
    judge: ContestJudge
    journal: Journal
    """Of the run, exclusively owned; may hold the steps of an earlier process."""
    ledger: Ledger
    """Holds nothing of what an earlier process spent: that is charged again from the journal."""
    cancel: CancelToken
    mode: Mode = Mode.PERFORM
    workers: int = 1
    """How many questions are answered, and tools run, at once; changes nothing but how long it takes."""
    on_event: Callable[[Progress], object] = lambda _: None
    """Told what has just happened; never from two threads at once."""
