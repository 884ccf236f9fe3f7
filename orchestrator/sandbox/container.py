"""One container from its creation to its removal, without any notion of what it is asked to do."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Any

from orchestrator.domain.frames import Frame
from orchestrator.domain.policies import Purpose
from orchestrator.errors import EngineTimeout, EvolvariumError, SandboxError
from orchestrator.sandbox.channel import Channel
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.leases import Lease
from orchestrator.sandbox.meters import Meter, Reading, meter_for
from orchestrator.sandbox.owners import Owner
from orchestrator.sandbox.settings import Blueprint, container_settings
from orchestrator.sandbox.uids import UidPool

READY_SECONDS = 60.0
EXIT_SECONDS = 10.0
IDLE_MARGIN = 0.8
PROTOCOL = 1
_POLL_SECONDS = 0.02
_ROLES = {Purpose.DERIVE: Purpose.SQL.value}
"""What a runner calls itself where it is not the purpose: one image serves both."""


class Container:
    """A running container whose channel is open; made by `Launcher`, and to be destroyed on every way out."""

    def __init__(self, launcher: Launcher, blueprint: Blueprint, *, name: str, uid: int) -> None:
        """Describe a container that does not exist yet."""
        self._launcher = launcher
        self._engine = launcher.engine
        self.blueprint = blueprint
        self.name = name
        self.uid = uid
        self.id = ""
        """The engine's id; empty before it is created."""
        self.created_at = time.monotonic()
        self._channel: Channel | None = None
        self._meter: Meter | None = None
        self._baseline: Reading | None = None
        self._is_stopping = threading.Event()
        self._has_stopped = False

    @property
    def channel(self) -> Channel:
        """Its channel."""
        if self._channel is None:
            msg = f"container {self.name} was not started"
            raise SandboxError(msg)
        return self._channel

    def boot(self, labels: dict[str, str]) -> None:
        """Create, attach, start, and wait until the runner is ready.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed, or the runner did not become ready.
        """
        self.id = self._engine.create(container_settings(self.blueprint, name=self.name, uid=self.uid, labels=labels))
        stream = self._engine.attach(self.id)
        self._channel = Channel(stream, self.blueprint.limits, name=self.name, on_end=self._channel_ended)
        self._engine.start(self.id)
        self._check_ready(self._channel.receive(READY_SECONDS))
        found = self._engine.inspect(self.id) or {}
        self._meter = meter_for(self._engine, self.id, int((found.get("State") or {}).get("Pid") or 0))
        self._baseline = self._meter.read()

    def read(self) -> Reading | None:
        """What it has used since it was ready; None: nothing can be read any more.

        Raises:
            SandboxError: The engine failed.
        """
        reading = self._meter.read() if self._meter is not None else None
        if reading is None or reading.cpu_seconds is None:
            return reading
        before = (self._baseline.cpu_seconds if self._baseline is not None else None) or 0.0
        return Reading(
            cpu_seconds=max(0.0, reading.cpu_seconds - before),
            memory_peak_bytes=reading.memory_peak_bytes,
            at_process_limit=reading.at_process_limit,
            out_of_memory=reading.out_of_memory,
        )

    def wants_cpu(self) -> bool | None:
        """Whether something in it runs or waits for a processor; None: that cannot be seen."""
        return None if self._meter is None else self._meter.wants_cpu()

    def is_virgin(self) -> bool:
        """Whether it still waits for its first frame, and will go on to for a while."""
        age = time.monotonic() - self.created_at
        stale = age > IDLE_MARGIN * self.blueprint.limits.idle_seconds
        return not (self.channel.has_ended or self.channel.has_unread or stale)

    def stop(self) -> dict[str, Any]:
        """Close the channel, see to it that nothing runs any more, and return the engine's view of the end.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed, or the container is gone, or runs on although its stream has ended.
        """
        ended_by_itself = self.channel.ended_by_itself
        self._is_stopping.set()
        self.channel.close()
        if not ended_by_itself:
            self._engine.kill(self.id)
        state = self._final_state()
        self.channel.join()
        self._has_stopped = True
        return state

    def destroy(self) -> None:
        """Kill and remove, in whatever state it is; idempotent.

        Raises:
            EngineUnavailable: No engine answers; a later sweep removes it.
            SandboxError: The engine failed; a later sweep removes it.
        """
        self._is_stopping.set()
        try:
            if self._channel is not None and not self._has_stopped:
                self._channel.close()
                self._engine.kill(self.id)
                self._channel.join()
            self._engine.remove(self.id or self.name)
        finally:
            self._launcher.uids.give_back(self.uid)

    def _channel_ended(self, channel: Channel) -> None:
        """Kill at once what went over a limit, in the reading thread, whatever the owner is doing."""
        if channel.ended_by_itself or self._is_stopping.is_set():
            return
        try:
            self._engine.kill(self.id)
        except EvolvariumError:  # `stop` tries again and tells
            return

    def _check_ready(self, frame: Frame | None) -> None:
        role = _ROLES.get(self.blueprint.purpose, self.blueprint.purpose.value)
        if frame is None:
            state = (self._engine.inspect(self.id) or {}).get("State") or {}
            said = self.channel.output[-500:].decode("utf-8", "replace")
            msg = (
                f"the {role!r} runner in image {self.blueprint.grant.image!r} did not become ready within"
                f" {READY_SECONDS:.0f} s: container {state.get('Status', 'gone')}, exit code {state.get('ExitCode')},"
                f" {self.channel.violation or 'no frame'}; it said {said!r}"
            )
            raise SandboxError(msg)
        if frame.type != "ready" or frame.head.get("protocol") != PROTOCOL or frame.head.get("role") != role:
            msg = (
                f"image {self.blueprint.grant.image!r} answers {dict(frame.head)!r} where a ready {role!r} runner of"
                f" protocol {PROTOCOL} is due; rebuild it with `evolvarium images build`"
            )
            raise SandboxError(msg)

    def _final_state(self) -> dict[str, Any]:
        deadline = time.monotonic() + EXIT_SECONDS
        while True:
            found = self._engine.inspect(self.id)
            if found is None:
                msg = f"container {self.name} is gone, and not by us"
                raise SandboxError(msg)
            state: dict[str, Any] = found["State"]
            if not state.get("Running"):
                return state
            if time.monotonic() > deadline:
                msg = f"container {self.name} runs on {EXIT_SECONDS:.0f} s after its stream has ended"
                raise EngineTimeout(msg)
            time.sleep(_POLL_SECONDS)


class Launcher:
    """Makes containers of one owner. Thread-safe."""

    def __init__(self, engine: Engine, owner: Owner, lease: Lease, uids: UidPool) -> None:
        """Make containers on `engine` with the labels of `owner`."""
        self.engine = engine
        self.uids = uids
        self._owner = owner
        self._lease = lease

    def launch(self, blueprint: Blueprint) -> Container:
        """A virgin container whose runner is ready.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed, or the runner did not become ready; nothing is left behind.
        """
        name = f"evolvarium-{blueprint.purpose.value}-{secrets.token_hex(8)}"
        container = Container(self, blueprint, name=name, uid=self.uids.draw())
        labels = self._owner.container_labels(blueprint.run_id, blueprint.purpose, self._lease.until)
        try:
            container.boot(labels)
        except BaseException as error:  # an interrupt from the keyboard must not leave it behind either
            try:
                container.destroy()
            except EvolvariumError as second:
                error.add_note(f"and removing it failed: {second}")
            raise
        return container
