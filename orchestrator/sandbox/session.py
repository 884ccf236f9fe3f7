"""One container's use: frames, and on every way out its end, its removal and its audit record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.exchanges import Exchange, Wrapping
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.errors import Cancelled, EngineUnavailable, EvolvariumError, SandboxError
from orchestrator.ports import Session, SessionRequest
from orchestrator.sandbox.carrying import Carrier
from orchestrator.sandbox.container import Container
from orchestrator.sandbox.endings import Evidence, classify, foreign_act
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.records import record_of
from orchestrator.sandbox.watch import Watch


class ContainerSession:
    """`ports.Session` on one container. Not thread-safe, except `cancel`."""

    def __init__(
        self,
        container: Container,
        request: SessionRequest,
        *,
        engine: Engine,
        policy_digest: str,
        audit: Callable[[AuditRecord], None],
    ) -> None:
        """Take over a virgin container.

        Args:
            container: Destroyed by `finish` or `abandon`.
            request: What it was asked for.
            engine: It runs there.
            policy_digest: For the record.
            audit: Called once, when everything is over.
        """
        self._container = container
        self._channel = container.channel
        self._request = request
        self._engine = engine
        self._policy_digest = policy_digest
        self._audit = audit
        self._watch = Watch(container)
        self._cancelled = threading.Event()
        self._outcome: Outcome | None = None
        self._is_closed = False

    @property
    def image_digest(self) -> str:
        """As `ports.Session`."""
        return self._container.blueprint.image_digest

    def send(self, frame: Frame) -> None:
        """As `ports.Session`."""
        self._check()
        self._begin()
        self._channel.send(frame)
        self._check()

    def receive(self) -> Frame | None:
        """As `ports.Session`."""
        self._check()
        self._begin()
        while True:
            frame = self._channel.receive(self._watch.seconds_left)
            self._check()
            if frame is not None:
                return frame
            if self._channel.has_ended:
                return None
            self._watch.check_wall()

    def exchange(self, answerer: Session, wrapping: Wrapping, clock: Callable[[], float]) -> Exchange:
        """As `ports.Session`."""
        if not isinstance(answerer, ContainerSession):
            msg = f"{self._request.attempt_id} cannot exchange with a {type(answerer).__name__}, which is no container"
            raise SandboxError(msg)
        both = (self, answerer)

        def check() -> None:
            for session in both:
                session._check()
                session._watch.check_wall()

        for session in both:
            session._begin()
        return Carrier(self._channel, answerer._channel, wrapping, clock).carry(check)

    def cap_cpu(self, total_seconds: float) -> None:
        """As `ports.Session`."""
        self._watch.cap_cpu(total_seconds)

    def cancel(self) -> None:
        """As `ports.Session`."""
        self._cancelled.set()
        self._channel.close()  # its reader kills the container, and wakes whoever waits

    def finish(self, claim: Ending = Ending.OK) -> Outcome:
        """As `ports.Session`; also raises `Cancelled` after `cancel`, and `AuditError` when the record fails."""
        if self._outcome is not None:
            return self._outcome
        if self._is_closed:
            self._check()
            msg = f"the session of {self._request.attempt_id} is over"
            raise SandboxError(msg)
        try:
            with _engine_failures(), self._cancellation():
                outcome = self._conclude(claim)
        except BaseException as error:
            self.abandon(error)
            raise
        self._close(outcome.ending.value, outcome)
        self._outcome = outcome
        return outcome

    def abandon(self, cause: BaseException) -> None:
        """Destroy and audit a container whose use ended with an exception; idempotent.

        What goes wrong here is added to `cause` as a note, so that `cause` is what is raised.
        """
        if self._is_closed:
            return
        ending = "sandbox-error" if isinstance(cause, SandboxError) else "cancelled"
        outcome = self._measure(Ending.NO_RESULT, f"{type(cause).__name__}: {cause}"[:500], None)
        try:
            self._close(ending, outcome)
        except EvolvariumError as error:
            cause.add_note(f"and while cleaning up: {error}")

    @contextmanager
    def _cancellation(self) -> Iterator[None]:
        """Whatever fails after a cancellation fails because of it: the canceller may have removed the container."""
        try:
            yield
        except SandboxError as error:
            if not self._cancelled.is_set():
                raise
            raise Cancelled(self._cancelled_message) from error

    @property
    def _cancelled_message(self) -> str:
        return f"{self._request.attempt_id} was cancelled"

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled(self._cancelled_message)
        if self._watch.failure is not None:
            raise self._watch.failure

    def _begin(self) -> None:
        if not self._is_closed:
            self._watch.begin()

    def _conclude(self, claim: Ending) -> Outcome:
        self._watch.stop()
        self._watch.require_a_fair_share()
        ended_by_itself = self._channel.ended_by_itself
        if not self._channel.has_ended:
            self._watch.read()
        found_at = time.time()
        state = self._container.stop()
        self._check()
        code = state.get("ExitCode")
        met = self._watch.met
        memory = self._watch.over_memory if state.get("OOMKilled") else met.memory
        if state.get("Error"):
            msg = f"container {self._container.name} ended with an error of the engine: {state['Error']}"
            raise SandboxError(msg)
        if ended_by_itself and code and code > 128 and memory is None:
            self._exclude_others(found_at)
        evidence = Evidence(
            memory=memory,
            processes=met.processes,
            excess=self._channel.excess,
            wall=met.wall,
            cpu=met.cpu,
            violation=self._channel.violation,
            ended_by_itself=ended_by_itself,
            exit_code=code,
        )
        ending, detail = classify(evidence, claim)
        return self._measure(ending, detail, code)

    def _exclude_others(self, until: float) -> None:
        """A container that somebody else killed did not kill itself."""
        act = foreign_act(self._engine.events(self._container.id, self._watch.started_time - 1, until + 1))
        if act is not None:
            msg = f"somebody else did {act!r} to container {self._container.name}"
            raise SandboxError(msg)

    def _measure(self, ending: Ending, detail: str, code: int | None) -> Outcome:
        last = self._watch.last
        return Outcome(
            ending=ending,
            exit_code=code,
            wall_seconds=self._watch.wall_seconds,
            cpu_seconds=None if last is None else last.cpu_seconds,
            memory_peak_bytes=None if last is None else last.memory_peak_bytes,
            output=self._channel.output,
            output_truncated=self._channel.output_truncated,
            detail=detail,
        )

    def _close(self, ending: str, outcome: Outcome) -> None:
        """Destroy and audit, whatever happens on the way."""
        self._is_closed = True
        self._watch.stop()
        try:
            with _engine_failures():
                self._container.destroy()
        except SandboxError as error:
            self._record("sandbox-error", f"not removed: {error}"[:500], outcome)
            raise
        self._record(ending, outcome.detail, outcome)

    def _record(self, ending: str, detail: str, outcome: Outcome) -> None:
        self._audit(
            record_of(
                self._container,
                self._request,
                outcome,
                policy_digest=self._policy_digest,
                ending=ending,
                detail=detail,
                started_at=self._watch.started_time,
            )
        )


@contextmanager
def _engine_failures() -> Iterator[None]:
    """An engine that goes away while a container runs is a failure of the sandbox, as the port has it."""
    try:
        yield
    except EngineUnavailable as error:
        msg = f"the engine went away: {error}"
        raise SandboxError(msg) from error
