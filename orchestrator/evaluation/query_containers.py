"""One container that answers queries against one database, for as long as it lasts.

Queries are sent ahead of their results, few and short enough that the pipe to the container never fills: whoever waits
to send cannot receive, and a container whose results nobody takes ends.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from orchestrator.domain.data_access import Access
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Limits, MountRole, Purpose
from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.errors import PolicyError, ProtocolError, SandboxError
from orchestrator.evaluation.query_results import result_of
from orchestrator.evaluation.requests import open_session
from orchestrator.ports import Sandbox, Session, SessionRequest

HEAP_BYTES = 128 << 20
ADDRESS_BYTES = 512 << 20
EXAMPLES = 3
"""Literals of each column in a description."""
VALUES = 2_000
"""Texts of each column in a description, at most."""
DESCRIBE_SECONDS = 30.0
"""Processor time for a description: our own work, so what a data rule grants to a query does not count."""
MAX_QUERIES = 5_000
"""Of one container; then it is replaced."""
WALL_FACTOR = 10
"""A query may take so many times as long as it may compute; its runner kills it then."""
GRACE_SECONDS = 15.0
"""What a container needs beside a query: to replace the query's process, to send the result."""
OVERHEAD_SECONDS = 0.02
"""Processor time that a query costs beside its own."""
IN_FLIGHT = 8
IN_FLIGHT_BYTES = 32 << 10
"""Half of a pipe."""
_STATUSES = {Ending.MEMORY: QueryStatus.MEMORY, Ending.TIMEOUT: QueryStatus.TIMEOUT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """A database as a container gets it."""

    volume: str
    sha256: str
    """Of the file in it."""
    readable: Mapping[str, Sequence[str]] | None
    """Table to the columns that the authorizer lets through; None: all that there are."""
    access: Access
    """For the limits of one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One query that has passed the gate."""

    number: int
    sql: str
    reverse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a container says of its database."""

    sqlite_version: str
    body: bytes = field(repr=False)
    failure: str
    """Empty: it went well."""


class QueryContainer:
    """A live container. Not thread-safe; used by one owner at a time, who closes or abandons it."""

    def __init__(self, sandbox: Sandbox, mounted: Mounted, *, run_id: str, attempt_id: str) -> None:
        """Start it.

        Raises:
            PolicyError: The policy does not grant it.
            PrerequisiteError: Engine or image missing, or a limit is unproven.
            SandboxError: The sandbox failed, or the volume holds something else.
        """
        self._mounted = mounted
        self._limits = sql_limits(sandbox)
        self._jobs_done = 0
        self._bytes = 0
        self._cpu_seconds = 0.0
        self.has_ended = False
        """Whether it ended by itself."""
        request = SessionRequest(
            purpose=Purpose.SQL, run_id=run_id, attempt_id=attempt_id, mounts={MountRole.DATABASE: mounted.volume}
        )
        with ExitStack() as stack:
            self._session: Session = stack.enter_context(open_session(sandbox, request))
            self._began = time.monotonic()
            self._open()
            self._stack = stack.pop_all()

    @property
    def max_bytes(self) -> int:
        """Of one result: the policy's, and no more than a frame holds."""
        return min(self._mounted.access.max_bytes, self._limits.frame_body_bytes)

    def is_worn(self, coming: int = 1) -> bool:
        """Whether so many more queries could drive it into a limit of its own, so that it must be replaced.

        A container that is new is never worn, however narrow its limits.
        """
        if not self._jobs_done and coming <= 1:
            return False
        query = self._mounted.access.query_seconds
        age = time.monotonic() - self._began
        return (
            self._jobs_done + coming > MAX_QUERIES
            or age + coming * WALL_FACTOR * query + GRACE_SECONDS > self._limits.wall_seconds
            or self._cpu_seconds + coming * (query + OVERHEAD_SECONDS) > self._limits.cpu_seconds
            or self._bytes + coming * (self.max_bytes + self._limits.frame_head_bytes) > self._limits.channel_bytes
        )

    def answer(self, jobs: deque[Job], results: dict[int, QueryResult]) -> None:
        """Answer jobs in their order until there are none left, it is worn or it has ended.

        Args:
            jobs: Those that are answered are taken away.
            results: Gets their results. Where the container ends by itself, the query that it was working on gets its
                ending, and the later ones stay in `jobs`.

        Raises:
            SandboxError: The sandbox failed, or the container's own code broke the protocol.
            Cancelled: An operator asked to stop.
        """
        flying: deque[Job] = deque()
        while True:
            while jobs and self._may_send(jobs[0], flying):
                flying.append(jobs.popleft())
                self._send(flying[-1])
            if not flying:
                return
            frame = self._session.receive()
            job = flying.popleft()
            if frame is None:
                results[job.number] = _ended(self._session.finish(Ending.NO_RESULT))
                jobs.extendleft(reversed(flying))
                self.has_ended = True
                return
            result = result_of(frame, job.number, max_rows=self._mounted.access.max_rows, max_bytes=self.max_bytes)
            self._jobs_done += 1
            self._cpu_seconds += result.wall_seconds + OVERHEAD_SECONDS
            self._bytes += len(frame.body) + self._limits.frame_head_bytes
            results[job.number] = result

    def describe(self) -> Described:
        """Schema, examples and values.

        Raises:
            SandboxError: As `answer`.
            Cancelled: As `answer`.
        """
        frame = self._answer_to(Frame({"type": "describe", "examples": EXAMPLES, "values": VALUES}), "described")
        if isinstance(frame, Outcome) and frame.ending in _STATUSES:
            limits = "the limits of purpose 'sql' do not suffice for it; grant more"
            return Described(sqlite_version="", body=b"", failure=f"{_ending(frame)}: {limits}")
        frame = _frame(frame)
        status, message = frame.head.get("status", "ok"), frame.head.get("message", "")
        return Described(
            sqlite_version=str(frame.head.get("sqlite"))[:40],
            body=frame.body,
            failure="" if status == "ok" else f"{status}, {message}"[:300],
        )

    def digest(self) -> str:
        """SHA-256 of the mounted file, as the container reads it now.

        Raises:
            SandboxError: As `answer`.
            Cancelled: As `answer`.
        """
        return str(self._ask(Frame({"type": "digest"}), "digest").head.get("sha256"))

    def close(self) -> None:
        """End it; idempotent.

        Raises:
            SandboxError: The sandbox failed.
            Cancelled: An operator asked to stop.
        """
        with self._stack:
            self._session.finish(Ending.OK)

    def abandon(self, cause: BaseException) -> None:
        """End it after a failure, which its record names."""
        self._stack.__exit__(type(cause), cause, cause.__traceback__)

    def _open(self) -> None:
        access = self._mounted.access
        limits = {
            "query_seconds": access.query_seconds,
            "max_rows": access.max_rows,
            "max_bytes": self.max_bytes,
            "heap_bytes": HEAP_BYTES,
            "length_bytes": None,
            "address_bytes": ADDRESS_BYTES,
        }
        readable = self._mounted.readable
        frame = self._ask(Frame({"type": "open", "readable": readable, "limits": limits}), "opened")
        if frame.head.get("sha256") != self._mounted.sha256:
            msg = f"the volume {self._mounted.volume} does not hold the database that was imported; import it again"
            raise SandboxError(msg)

    def _ask(self, question: Frame, answer: str) -> Frame:
        return _frame(self._answer_to(question, answer))

    def _answer_to(self, question: Frame, answer: str) -> Frame | Outcome:
        """The answer, or how the container ended instead."""
        self._session.send(question)
        frame = self._session.receive()
        if frame is None:
            return self._session.finish(Ending.NO_RESULT)
        if frame.type != answer:
            msg = f"a frame of type {frame.type!r:.80} came where {answer!r} was due"
            raise ProtocolError(msg)
        self._bytes += len(frame.body) + self._limits.frame_head_bytes
        return frame

    def _may_send(self, job: Job, flying: deque[Job]) -> bool:
        if self.is_worn(len(flying) + 1):
            return False
        size = sum(len(one.sql) for one in flying) + len(job.sql)
        return not flying or (len(flying) < IN_FLIGHT and 4 * size <= IN_FLIGHT_BYTES)  # UTF-8 has up to four bytes

    def _send(self, job: Job) -> None:
        self._session.send(Frame({"type": "query", "id": job.number, "reverse": job.reverse}, job.sql.encode()))


def describe(sandbox: Sandbox, mounted: Mounted, *, run_id: str, attempt_id: str) -> Described:
    """What a container of its own says of a database, whatever its rule grants to queries.

    Raises:
        EvolvariumError: As `QueryContainer` and `QueryContainer.describe`.
    """
    access = replace(mounted.access, query_seconds=DESCRIBE_SECONDS)
    container = QueryContainer(sandbox, replace(mounted, access=access), run_id=run_id, attempt_id=attempt_id)
    try:
        described = container.describe()
    except BaseException as error:
        container.abandon(error)
        raise
    container.close()
    return described


def sql_limits(sandbox: Sandbox) -> Limits:
    """What a container for queries gets.

    Raises:
        PolicyError: Nothing.
    """
    grant = sandbox.policy.purposes.get(Purpose.SQL)
    if grant is None:
        msg = f"policy {sandbox.policy.name!r} grants nothing to purpose 'sql'; add it under 'purposes'"
        raise PolicyError(msg)
    return grant.limits


def _frame(answer: Frame | Outcome) -> Frame:
    if isinstance(answer, Outcome):
        said = answer.output[-200:].decode("utf-8", "replace")
        msg = f"a container for queries ended, {answer.ending.value} ({answer.detail}): {said!r}"
        raise SandboxError(msg)
    return answer


def _ended(outcome: Outcome) -> QueryResult:
    return QueryResult(status=_STATUSES.get(outcome.ending, QueryStatus.KILLED), message=_ending(outcome))


def _ending(outcome: Outcome) -> str:
    return f"its container ended: {outcome.ending.value} ({outcome.detail})"[:300]
