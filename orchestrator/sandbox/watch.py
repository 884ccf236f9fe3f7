"""Watching one container while it is used: what it has used, which limits it met, whether the machine starved it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from orchestrator.domain.policies import MIB
from orchestrator.errors import EngineUnavailable, SandboxError
from orchestrator.runtime.workers import Worker, spawn
from orchestrator.sandbox.container import Container
from orchestrator.sandbox.meters import Reading
from orchestrator.sandbox.starvation import Starvation, wall_remedy

WATCH_SECONDS = 0.1
FIRST_WATCH_SECONDS = 0.01  # then twice as long each time, so that a short run has a reading, too
MISSED_READINGS = 3
_JOIN_SECONDS = 10.0


@dataclass(slots=True)
class Met:
    """Which limits were met, each with a line on it."""

    wall: str | None = None
    cpu: str | None = None
    processes: str | None = None
    memory: str | None = None


class Watch:
    """A clock and a thread that reads the meters. A limit that is met closes the channel, which kills the container."""

    def __init__(self, container: Container) -> None:
        """Nothing is watched before `begin`.

        Args:
            container: Its channel is open.
        """
        self._container = container
        self._channel = container.channel
        self._limits = container.blueprint.limits
        self._cpu_cap = self._limits.cpu_seconds
        self._starvation = Starvation(self._limits.cpus)
        self._worker: Worker[None] | None = None
        self._over = threading.Event()
        self._started_at = time.monotonic()
        self.started_time = time.time()
        """Of the first frame, as the wall clock has it; before that of this object."""
        self.met = Met()
        self.last: Reading | None = None
        """The latest; None: there was none yet."""
        self.failure: SandboxError | None = None
        """Why it cannot be watched any more; None: it can."""

    @property
    def over_memory(self) -> str:
        """What is said of a container that wanted too much of it."""
        return f"wanted more than {self._limits.memory_bytes / MIB:g} MiB of memory (memory_bytes)"

    @property
    def wall_seconds(self) -> float:
        """From the first frame to the end of the channel, or until now; 0: no frame was sent or awaited."""
        end = self._channel.ended_at or time.monotonic()
        return 0.0 if self._worker is None else max(0.0, end - self._started_at)

    @property
    def seconds_left(self) -> float:
        """Of wall time, never negative."""
        return max(0.0, self._wall_deadline - time.monotonic())

    def begin(self) -> None:
        """Start the clock and the thread, with the first frame; idempotent."""
        if self._worker is None:
            self._started_at, self.started_time = time.monotonic(), time.time()
            self._worker = spawn(f"watch-{self._container.name}", self._run)

    def cap_cpu(self, total_seconds: float) -> None:
        """Lower the limit on CPU time for now; never over the container's own."""
        self._cpu_cap = min(total_seconds, self._limits.cpu_seconds)

    def stop(self) -> None:
        """End the thread; idempotent."""
        self._over.set()
        if self._worker is not None:
            self._worker.join(_JOIN_SECONDS)

    def read(self) -> None:
        """Take a reading now, and close the channel when it shows a limit met.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed.
        """
        self._judge(self._container.read())

    def check_wall(self) -> None:
        """Close the channel when the wall time is up."""
        if time.monotonic() >= self._wall_deadline and not self._channel.has_ended:
            self.met.wall = f"ran for more than {self._limits.wall_seconds:g} s (wall_seconds)"
            self._channel.close()

    def require_a_fair_share(self) -> None:
        """See that a container that ran out of wall time had a processor to run on.

        Raises:
            SandboxError: It mostly waited for one.
        """
        if self.met.wall is not None and self._starvation.was_starved:
            msg = (
                f"container {self._container.name} had no processor to run on: it {self.met.wall} and mostly waited "
                f"for one; repeat it when the machine is less busy, or {wall_remedy(self._container.blueprint)}"
            )
            raise SandboxError(msg)

    @property
    def _wall_deadline(self) -> float:
        return self._started_at + self._limits.wall_seconds

    def _run(self) -> None:
        missed, pause = 0, FIRST_WATCH_SECONDS
        while not self._over.wait(min(pause, self.seconds_left)):
            pause = min(WATCH_SECONDS, 2 * pause)
            if self._channel.has_ended:
                return
            self.check_wall()
            try:
                reading = self._container.read()
                self._judge(reading)
                self._look_for_starvation(reading)
                missed = 0
            except (SandboxError, EngineUnavailable) as error:
                missed += 1
                if missed >= MISSED_READINGS:  # limits that cannot be watched are no limits
                    self.failure = SandboxError(f"cannot watch {self._container.name}: {error}")
                    self._channel.close()

    def _judge(self, reading: Reading | None) -> None:
        if reading is None:
            return
        self.last = reading
        if reading.out_of_memory:
            self.met.memory = self.over_memory
        elif reading.at_process_limit:
            self.met.processes = f"wanted more than {self._limits.pids} processes and threads (pids)"
        elif reading.cpu_seconds is not None and reading.cpu_seconds > self._cpu_cap:
            limit = "cpu_seconds" if self._cpu_cap == self._limits.cpu_seconds else "load_cpu_seconds"
            self.met.cpu = f"used more than {self._cpu_cap:g} s of CPU time ({limit})"
        else:
            return
        self._channel.close()

    def _look_for_starvation(self, reading: Reading | None) -> None:
        """In the second half of its wall time, which code that computes never reaches on a machine with room for it."""
        now = time.monotonic()
        if reading is None or reading.cpu_seconds is None or now < self._started_at + self._limits.wall_seconds / 2:
            return
        wants_cpu = self._container.wants_cpu()
        if wants_cpu is not None:
            self._starvation.sample(now, reading.cpu_seconds, wants_cpu=wants_cpu)
