"""The databases of a bench: imported before anything is spent, open while questions need them, compared at the end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from orchestrator.bootstrap.sql.prompts import SchemaTexts
from orchestrator.domain.data_access import find_rule
from orchestrator.domain.policies import Policy
from orchestrator.domain.sql import Question
from orchestrator.errors import Cancelled, RunStateError, SandboxError
from orchestrator.evaluation.database_files import read_database
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.evaluation.derivation import derive_limits
from orchestrator.ports import Sandbox
from orchestrator.runtime.workers import CancelToken, Worker, WorkerGroup

T = TypeVar("T")
_STOP_SECONDS = 900.0
GOLD_FACTOR = 2
"""A gold query may compute so many times as long as the longest prediction."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the databases of a run are, and who opens them."""

    sandbox: Sandbox
    store: DatabaseStore
    paths: Mapping[str, Path]
    """Id to file."""
    run_id: str
    query_seconds: float
    """CPU time of a predicted query."""
    workers: int
    token: CancelToken

    def open(self, name: str, domain: Domain, *, is_patient: bool = False) -> AbstractContextManager[SandboxDatabase]:
        """A database in one domain.

        Args:
            name: Of the database.
            domain: Whose queries it will run.
            is_patient: Queries get all the time that the policy grants, as gold queries do; otherwise a part of it.
        """
        is_predicted = domain is not Domain.GOLD and not is_patient
        seconds = predicted_seconds(self.sandbox.policy, name, self.query_seconds) if is_predicted else None
        return self.store.open(self.paths[name], name, domain, run_id=self.run_id, query_seconds=seconds)


def predicted_seconds(policy: Policy, name: str, most: float) -> float:
    """CPU time of one generated query: a part of what the policy grants, so that gold has the longer limit.

    Args:
        policy: In force; without a rule for the database nothing can be asked of it anyway.
        name: Of the database.
        most: What was asked for.
    """
    found = find_rule(policy.data, name)
    return most if found is None else min(most, found[1].query_seconds / GOLD_FACTOR)


def examine(place: Place) -> dict[str, dict[str, Any]]:
    """Import every database that is not imported yet; what is there and what is kept back, by name.

    Raises:
        EvolvariumError: As `DatabaseStore.open`.
    """
    return for_each(place, lambda name: _examined(place, name))


def compare_digests(place: Place, before: Mapping[str, Mapping[str, Any]]) -> None:
    """See that neither the files on the disk nor what containers see of them has changed.

    Args:
        place: Of the databases.
        before: From `examine`.

    Raises:
        SandboxError: What a container has mounted is no longer what was imported.
        RunStateError: A file on the disk is another one.
    """

    def check(name: str) -> None:
        if _source_digest(place, name) != before[name]["source"]:
            msg = f"database {str(place.paths[name])!r} has changed since the run began; restore it, or start a new run"
            raise RunStateError(msg)
        with place.open(name, Domain.PREDICTED) as database:
            if database.digest != before[name]["volume"] or not database.digest_check():
                msg = f"the mounted copy of database {name!r} has changed; its results cannot be trusted: start anew"
                raise SandboxError(msg)

    for_each(place, check)


class OpenDatabases:
    """Databases of the predicted domain, each open from its first question to its last. Thread-safe."""

    def __init__(
        self, place: Place, questions: Sequence[Question], texts: Callable[[SandboxDatabase], SchemaTexts]
    ) -> None:
        """Nothing is open yet.

        Args:
            place: Of the databases.
            questions: Those that will ask.
            texts: Prepares the schema of a database, once while it is open.
        """
        self._place = place
        self._texts = texts
        self._left = Counter(question.database for question in questions)
        self._locks = {name: threading.Lock() for name in self._left}  # guard _left, _open and _stacks of one name
        self._open: dict[str, tuple[SandboxDatabase, SchemaTexts]] = {}
        self._stacks: dict[str, ExitStack] = {}

    @contextmanager
    def use(self, name: str) -> Iterator[tuple[SandboxDatabase, SchemaTexts]]:
        """A database for one question; the last one closes it.

        Raises:
            EvolvariumError: As `DatabaseStore.open`.
        """
        with self._locks[name]:
            if name not in self._open:
                with ExitStack() as stack:
                    database = stack.enter_context(self._place.open(name, Domain.PREDICTED))
                    self._open[name] = (database, self._texts(database))
                    self._stacks[name] = stack.pop_all()
            opened = self._open[name]
        yield opened
        with self._locks[name]:
            self._left[name] -= 1
            if not self._left[name]:
                del self._open[name]
                self._stacks.pop(name).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what is still open, after a failure with its reason."""
        with ExitStack() as all_of_them:
            for stack in self._stacks.values():
                all_of_them.push(stack)
            if error is not None:
                all_of_them.pop_all().__exit__(kind, error, trace)


def _examined(place: Place, name: str) -> dict[str, Any]:
    source = _source_digest(place, name)
    with place.open(name, Domain.PREDICTED) as database:
        return {
            "source": source,
            "volume": database.digest,
            "sqlite": database.description.sqlite_version,
            "tables": len(database.description.schema.tables),
            "hidden": len(database.access.hidden),
            "dropped": len(database.description.dropped),
        }


def _source_digest(place: Place, name: str) -> str:
    return read_database(place.paths[name], derive_limits(place.sandbox).tmpfs_bytes // 2).digest


def for_each(place: Place, job: Callable[[str], T]) -> dict[str, T]:
    """What a job gives for every database, in their order; several at once.

    Raises:
        BaseException: What a job raised; the others are stopped.
    """
    workers: dict[str, Worker[T]] = {}
    group = WorkerGroup("databases", limit=place.workers, token=place.token, stop_seconds=_STOP_SECONDS)
    with group, suppress(Cancelled):  # where one has failed before all are there, the group raises its error
        for name in place.paths:
            workers[name] = group.spawn(name, _bound(job, name))
    return {name: worker.result() for name, worker in workers.items()}


def _bound(job: Callable[[str], T], name: str) -> Callable[[], T]:
    return lambda: job(name)
