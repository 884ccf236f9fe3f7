"""Databases that can be asked: the gate, the policy's data rules and sealed containers put together.

Each opened database has a container of its own, so predicted and gold SQL never meet in one, nor do two databases. Gold
runs on the same derived file as everything else: what a rule keeps back, no question can be about.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from orchestrator.domain.data_access import Access, find_rule, naming_nothing
from orchestrator.domain.policies import Purpose
from orchestrator.domain.sql import Description, QueryResult, QueryStatus
from orchestrator.errors import PolicyError
from orchestrator.evaluation.database_files import read_database
from orchestrator.evaluation.database_imports import ImportedDatabase, Importer
from orchestrator.evaluation.derivation import derive_limits
from orchestrator.evaluation.query_containers import Job, Mounted, QueryContainer, sql_limits
from orchestrator.ports import Sandbox
from orchestrator.sql.access import refusal
from orchestrator.sql.gate import Refusal, check
from orchestrator.sql.reads import named_absent

T = TypeVar("T")


class Domain(StrEnum):
    """Whose queries run in a container; those of two never share one."""

    PREDICTED = "predicted"
    GOLD = "gold"
    TOOL = "tool"


class DatabaseStore:
    """The databases of one installation, under the data rules of a sandbox's policy. Thread-safe."""

    def __init__(self, sandbox: Sandbox, *, home: Path, image_digest: Callable[[str], str]) -> None:
        """Keep the places; nothing is read or imported yet.

        Args:
            sandbox: Its policy holds the data rules.
            home: The installation's state directory; what was imported is remembered below it.
            image_digest: Role to the digest of the image to run, as `DockerSandbox` runs it.
        """
        self._sandbox = sandbox
        self._home = home
        self._image_digest = image_digest
        self._lock = threading.Lock()  # guards _importing
        self._importing: dict[Path, threading.Lock] = {}

    @contextmanager
    def open(
        self, path: Path, name: str, domain: Domain, *, run_id: str, query_seconds: float | None = None
    ) -> Iterator[SandboxDatabase]:
        """A database, imported if that has not been done before; its container starts with the first query.

        Args:
            path: Of the SQLite file, which is only read.
            name: Its id, which the policy's data rules go by.
            domain: Whose queries it will run.
            run_id: Of the containers.
            query_seconds: CPU time of one query, where it is to be less than the rule grants; None: as the rule says.

        Raises:
            PolicyError: No data rule names the database, or the policy does not grant what is needed.
            InputError: The file is no database, is damaged, or nothing of it may be read.
            PrerequisiteError: Engine or image missing, or the home folder cannot be used.
            SandboxError: The sandbox failed.
            Cancelled: An operator asked to stop.
        """
        imported = self._imported(path, name, run_id)
        granted = imported.access.query_seconds
        asked = granted if query_seconds is None else min(granted, query_seconds)
        imported = replace(imported, access=replace(imported.access, query_seconds=asked))
        database = SandboxDatabase(self._sandbox, imported, name=name, domain=domain, run_id=run_id)
        try:
            yield database
        except BaseException as error:
            database.abandon(error)
            raise
        database.close()

    def _imported(self, path: Path, name: str, run_id: str) -> ImportedDatabase:
        policy = self._sandbox.policy
        found = find_rule(policy.data, name)
        if found is None:
            msg = (
                f"no data rule of policy {policy.name!r} names database {name!r}, so it cannot be read;"
                f" add a rule under 'data' with databases: [{name!r}]"
            )
            raise PolicyError(msg)
        sql_limits(self._sandbox)  # before anything is read
        images: dict[Purpose, str] = {
            purpose: self._image_digest(policy.purposes[purpose].image)
            for purpose in (Purpose.DERIVE, Purpose.SQL)
            if purpose in policy.purposes
        }
        source = read_database(path, derive_limits(self._sandbox).tmpfs_bytes // 2)  # it and its copy lie there
        with self._lock:
            importing = self._importing.setdefault(path.resolve(), threading.Lock())
        with importing:
            return Importer(self._sandbox, self._home, images).get(source, *found, run_id=run_id)


class SandboxDatabase:
    """`ports.Database` on real containers, for one domain. Thread-safe."""

    def __init__(self, sandbox: Sandbox, imported: ImportedDatabase, *, name: str, domain: Domain, run_id: str) -> None:
        """Nothing runs before the first query."""
        self._sandbox = sandbox
        self._imported = imported
        self._name = name
        self._domain = domain
        self._run_id = run_id
        columns = {table.name: [c.name for c in table.columns] for table in imported.description.schema.tables}
        self._mounted = Mounted(
            volume=imported.volume,
            sha256=imported.sha256,
            readable=columns if imported.access.hidden else None,
            access=imported.access,
        )
        self._lock = threading.Lock()  # a container serves one thread at a time
        self._container: QueryContainer | None = None

    @property
    def name(self) -> str:
        """As `ports.Database`."""
        return self._name

    @property
    def domain(self) -> Domain:
        """Whose queries it runs."""
        return self._domain

    @property
    def digest(self) -> str:
        """As `ports.Database`."""
        return self._imported.volume

    @property
    def description(self) -> Description:
        """As `ports.Database`."""
        return self._imported.description

    @property
    def access(self) -> Access:
        """As `ports.Database`."""
        return self._imported.access

    @property
    def suspicions(self) -> tuple[str, ...]:
        """What of its data rule names nothing in it and so may be misspelt, one line each."""
        policy = self._sandbox.policy
        found = find_rule(policy.data, self._name)
        if found is None:
            return ()
        number, rule = found
        return tuple(
            f"data rule {number} of policy {policy.name}: `{pattern}` names nothing in database {self._name!r}; "
            "if it is misspelt, it keeps nothing back"
            for pattern in naming_nothing(rule, self._name, self._imported.original)
        )

    def query(self, sql: str, *, attempt_id: str, reverse: bool = False) -> QueryResult:
        """As `ports.Database`."""
        return self._query_all([sql], attempt_id, reverse=reverse)[0]

    def query_all(self, queries: Sequence[str], *, attempt_id: str) -> list[QueryResult]:
        """As `ports.Database`."""
        return self._query_all(queries, attempt_id, reverse=False)

    def check(self, sql: str) -> str:
        """The text that would be executed. Nothing runs.

        Args:
            sql: Untrusted.

        Raises:
            Refusal: The gate or the policy refuses it, or it names what the import had to leave out.
        """
        statement = check(sql)
        reason = refusal(statement, self._imported.original, self._imported.access) or named_absent(
            statement, self._imported.absent
        )
        if reason is not None:
            raise Refusal(reason)
        return statement.text

    def digest_check(self) -> bool:
        """Whether the file that is mounted is still, byte for byte, the one that was imported.

        Raises:
            SandboxError: As `query`.
            Cancelled: As `query`.
        """
        return self._use("digest-check", lambda container: container.digest()) == self._imported.sha256

    def close(self) -> None:
        """End its container; idempotent, and a later query starts another one.

        Raises:
            SandboxError: The sandbox failed.
            Cancelled: An operator asked to stop.
        """
        with self._lock:
            self._release()

    def abandon(self, cause: BaseException) -> None:
        """End its container after a failure of its user, which the container's record names."""
        with self._lock:
            container, self._container = self._container, None
        if container is not None:
            container.abandon(cause)

    def _query_all(self, queries: Sequence[str], attempt_id: str, *, reverse: bool) -> list[QueryResult]:
        results: dict[int, QueryResult] = {}
        jobs: deque[Job] = deque()
        for number, sql in enumerate(queries):
            try:
                jobs.append(Job(number=number, sql=self.check(sql), reverse=reverse))
            except Refusal as refused:
                results[number] = QueryResult(status=QueryStatus.REFUSED, message=refused.reason)
        while jobs:
            self._use(attempt_id, lambda container: container.answer(jobs, results))
        return [results[number] for number in range(len(queries))]

    def _use(self, attempt_id: str, task: Callable[[QueryContainer], T]) -> T:
        """Let a container that is not worn do something."""
        with self._lock:
            if self._container is not None and self._container.is_worn():
                self._release()
            container = self._container or self._start(attempt_id)
            self._container = container
            try:
                done = task(container)
            except BaseException as error:
                self._container = None
                container.abandon(error)
                raise
            if container.has_ended:
                self._release()
            return done

    def _start(self, attempt_id: str) -> QueryContainer:
        attempt = f"{self._domain.value}/{self._name}/{attempt_id}"
        return QueryContainer(self._sandbox, self._mounted, run_id=self._run_id, attempt_id=attempt)

    def _release(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            container.close()
