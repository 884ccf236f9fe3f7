"""One container's use: frames, limits on time, and on every way out its end, its removal and its audit record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import MIB
from orchestrator.errors import Cancelled, EngineUnavailable, EvolvariumError, SandboxError
from orchestrator.ports import SessionRequest
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.container import Container
from orchestrator.sandbox.endings import Evidence, classify, foreign_act
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.meters import Reading
from orchestrator.sandbox.records import record_of
from orchestrator.sandbox.starvation import Starvation

WATCH_SECONDS = 0.1
FIRST_WATCH_SECONDS = 0.01  # then twice as long each time, so that a short run has a reading, too
MISSED_READINGS = 3
_JOIN_SECONDS = 10.0


@dataclass(slots=True)
class _Limits:
    """Which limits were met, each with a line on it."""

    wall: str | None = None
    cpu: str | None = None
    processes: str | None = None
    memory: str | None = None


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
        self._limits = container.blueprint.limits
        self._request = request
        self._engine = engine
        self._policy_digest = policy_digest
        self._audit = audit
        self._cpu_cap = self._limits.cpu_seconds
        self._met = _Limits()
        self._last: Reading | None = None
        self._starvation = Starvation(self._limits.cpus)
        self._watcher: Worker[None] | None = None
        self._over = threading.Event()
        self._cancelled = threading.Event()
        self._failure: SandboxError | None = None
        self._outcome: Outcome | None = None
        self._is_closed = False
        self._started_at = time.monotonic()
        self._started_time = time.time()

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
            frame = self._channel.receive(max(0.0, self._wall_deadline - time.monotonic()))
            self._check()
            if frame is not None:
                return frame
            if self._channel.has_ended:
                return None
            self._check_wall()

    def cap_cpu(self, total_seconds: float) -> None:
        """As `ports.Session`."""
        self._cpu_cap = min(total_seconds, self._limits.cpu_seconds)

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
        if self._failure is not None:
            raise self._failure

    @property
    def _wall_deadline(self) -> float:
        return self._started_at + self._limits.wall_seconds

    def _begin(self) -> None:
        """Start the clock and the watch, with the first frame."""
        if self._watcher is None and not self._is_closed:
            self._started_at, self._started_time = time.monotonic(), time.time()
            self._watcher = spawn(f"watch-{self._container.name}", self._watch)

    def _watch(self) -> None:
        missed, pause = 0, FIRST_WATCH_SECONDS
        while not self._over.wait(min(pause, max(0.0, self._wall_deadline - time.monotonic()))):
            pause = min(WATCH_SECONDS, 2 * pause)
            if self._channel.has_ended:
                return
            self._check_wall()
            try:
                reading = self._container.read()
                self._judge(reading)
                self._look_for_starvation(reading)
                missed = 0
            except (SandboxError, EngineUnavailable) as error:
                missed += 1
                if missed >= MISSED_READINGS:  # limits that cannot be watched are no limits
                    self._failure = SandboxError(f"cannot watch {self._container.name}: {error}")
                    self._channel.close()

    def _check_wall(self) -> None:
        if time.monotonic() >= self._wall_deadline and not self._channel.has_ended:
            self._met.wall = f"ran for more than {self._limits.wall_seconds:g} s (wall_seconds)"
            self._channel.close()

    def _judge(self, reading: Reading | None) -> None:
        """Keep a reading, and close the channel when it shows a limit met."""
        if reading is None:
            return
        self._last = reading
        if reading.out_of_memory:
            self._met.memory = self._over_memory
        elif reading.at_process_limit:
            self._met.processes = f"wanted more than {self._limits.pids} processes and threads (pids)"
        elif reading.cpu_seconds is not None and reading.cpu_seconds > self._cpu_cap:
            limit = "cpu_seconds" if self._cpu_cap == self._limits.cpu_seconds else "load_cpu_seconds"
            self._met.cpu = f"used more than {self._cpu_cap:g} s of CPU time ({limit})"
        else:
            return
        self._channel.close()

    @property
    def _over_memory(self) -> str:
        return f"wanted more than {self._limits.memory_bytes / MIB:g} MiB of memory (memory_bytes)"

    def _look_for_starvation(self, reading: Reading | None) -> None:
        """In the second half of its wall time, which code that computes never reaches on a machine with room for it."""
        now = time.monotonic()
        if reading is None or reading.cpu_seconds is None or now < self._started_at + self._limits.wall_seconds / 2:
            return
        wants_cpu = self._container.wants_cpu()
        if wants_cpu is not None:
            self._starvation.sample(now, reading.cpu_seconds, wants_cpu=wants_cpu)

    def _require_a_fair_share(self) -> None:
        if self._met.wall is not None and self._starvation.was_starved:
            msg = (
                f"container {self._container.name} had no processor to run on: it {self._met.wall} and mostly waited "
                "for one; repeat it when the machine is less busy, or grant more wall_seconds"
            )
            raise SandboxError(msg)

    def _conclude(self, claim: Ending) -> Outcome:
        self._stop_watching()
        self._require_a_fair_share()
        ended_by_itself = self._channel.ended_by_itself
        if not self._channel.has_ended:
            self._judge(self._container.read())
        found_at = time.time()
        state = self._container.stop()
        self._check()
        code = state.get("ExitCode")
        memory = self._over_memory if state.get("OOMKilled") else self._met.memory
        if state.get("Error"):
            msg = f"container {self._container.name} ended with an error of the engine: {state['Error']}"
            raise SandboxError(msg)
        if ended_by_itself and code and code > 128 and memory is None:
            self._exclude_others(found_at)
        evidence = Evidence(
            memory=memory,
            processes=self._met.processes,
            excess=self._channel.excess,
            wall=self._met.wall,
            cpu=self._met.cpu,
            violation=self._channel.violation,
            ended_by_itself=ended_by_itself,
            exit_code=code,
        )
        ending, detail = classify(evidence, claim)
        return self._measure(ending, detail, code)

    def _exclude_others(self, until: float) -> None:
        """A container that somebody else killed did not kill itself."""
        act = foreign_act(self._engine.events(self._container.id, self._started_time - 1, until + 1))
        if act is not None:
            msg = f"somebody else did {act!r} to container {self._container.name}"
            raise SandboxError(msg)

    def _stop_watching(self) -> None:
        self._over.set()
        if self._watcher is not None:
            self._watcher.join(_JOIN_SECONDS)

    def _measure(self, ending: Ending, detail: str, code: int | None) -> Outcome:
        end = self._channel.ended_at or time.monotonic()
        return Outcome(
            ending=ending,
            exit_code=code,
            wall_seconds=0.0 if self._watcher is None else max(0.0, end - self._started_at),
            cpu_seconds=None if self._last is None else self._last.cpu_seconds,
            memory_peak_bytes=None if self._last is None else self._last.memory_peak_bytes,
            output=self._channel.output,
            output_truncated=self._channel.output_truncated,
            detail=detail,
        )

    def _close(self, ending: str, outcome: Outcome) -> None:
        """Destroy and audit, whatever happens on the way."""
        self._is_closed = True
        self._stop_watching()
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
                started_at=self._started_time,
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
