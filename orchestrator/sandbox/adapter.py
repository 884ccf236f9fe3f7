"""The sandbox on an engine: policy in, sealed containers out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, Self

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Grant, MountRole, Policy, Purpose
from orchestrator.errors import Cancelled, EvolvariumError, PolicyError, SandboxError
from orchestrator.ports import AuditLog, SessionRequest
from orchestrator.sandbox.container import Container, Launcher
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.leases import Lease
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, OWNER, RUN, Owner
from orchestrator.sandbox.pool import Pool
from orchestrator.sandbox.session import ContainerSession
from orchestrator.sandbox.settings import Blueprint, granted_limits
from orchestrator.sandbox.sweep import SweepReport, prune, sweep
from orchestrator.sandbox.uids import NARROW, WIDE, UidPool
from orchestrator.sandbox.volumes import Volumes, content_digest, import_frames


class ImageDigests(Protocol):
    """Locked images by role."""

    def digest(self, role: str) -> str:
        """`sha256:` and 64 hex digits of the image to run.

        Raises:
            ImageMissing: It is not built here, or differs from its lock.
        """
        ...


class ProofBook(Protocol):
    """What has been shown to be in force on this engine."""

    def require(self, grant: Grant) -> None:
        """Return if every limit that this grant relies on is proved, or accepted by the policy.

        Raises:
            UnprovenLimit: One is not.
        """
        ...


class DockerSandbox:
    """`ports.Sandbox` on a Docker engine. Thread-safe; a context manager."""

    def __init__(
        self,
        *,
        policy: Policy,
        engine: Engine,
        images: ImageDigests,
        proofs: ProofBook,
        audit: AuditLog,
    ) -> None:
        """Sweep, and take a lease.

        Raises:
            EngineUnavailable: No engine answers.
            SandboxError: The engine failed.
        """
        self._policy = policy
        self._policy_digest = policy.digest()
        self._engine = engine
        self._images = images
        self._proofs = proofs
        self._audit = audit
        self.swept: SweepReport = sweep(engine)
        """What earlier owners had left."""
        self._owner = Owner.new()
        self._lease = Lease(engine, self._owner)
        self._volumes = Volumes(engine, self._owner, self._lease)
        self._launcher = Launcher(engine, self._owner, self._lease, UidPool(_uid_range(engine.info())))
        self._pool = Pool(self._launch)
        self._closing = threading.RLock()  # whoever closes second waits until everything is gone
        self._lock = threading.Lock()  # guards the three below
        self._live: set[ContainerSession] = set()
        self._imports: dict[str, threading.Lock] = {}
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def policy(self) -> Policy:
        """As `ports.Sandbox`."""
        return self._policy

    @contextmanager
    def session(self, request: SessionRequest) -> Iterator[ContainerSession]:
        """As `ports.Sandbox`; also raises `Cancelled` once the sandbox is closed."""
        self._check_open()
        blueprint = self._plan(request)
        container = self._pool.take(blueprint.key) or self._launch(blueprint)
        with self._use(container, request) as session:
            yield session

    def import_volume(self, files: Mapping[str, bytes], *, run_id: str) -> str:
        """As `ports.Sandbox`; also raises `PolicyError` without a grant for `import`, `InputError` for a bad path."""
        digest = content_digest(files)
        with self._lock:
            importing = self._imports.setdefault(digest, threading.Lock())
        with importing:
            if self._volumes.find(digest) is None:
                self._fill(digest, files, run_id)
        return digest

    def has_volume(self, digest: str) -> bool:
        """As `ports.Sandbox`."""
        return self._volumes.find(digest) is not None

    def warm(self, request: SessionRequest, count: int) -> None:
        """As `ports.Sandbox`; raises what `session` raises for a request that cannot be granted."""
        self._check_open()
        self._pool.want(self._plan(request), count)

    def ready(self, request: SessionRequest) -> int:
        """How many virgin containers wait for such requests."""
        return self._pool.waiting(self._plan(request).key)

    def live_containers(self, run_id: str) -> int:
        """As `ports.Sandbox`."""
        return len(self._engine.containers({KIND: CONTAINER_KIND, RUN: run_id}))

    def sweep(self) -> SweepReport:
        """Remove what dead owners left.

        Raises:
            SandboxError: The engine failed, or something is still there.
        """
        return sweep(self._engine)

    def prune(self) -> SweepReport:
        """Sweep, and remove imported data that no container uses.

        Raises:
            SandboxError: The engine failed, or something is still there.
        """
        return prune(self._engine)

    def close(self) -> None:
        """As `ports.Sandbox`: sessions in use are cancelled.

        Raises:
            SandboxError: The engine failed; a later sweep removes what is left.
        """
        with self._closing:
            self._close()

    def _close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            live = list(self._live)
        for session in live:
            session.cancel()
        failures: list[BaseException] = []
        for step in (self._pool.close, self._remove_everything, self._lease.close):
            try:
                step()
            except (EvolvariumError, ExceptionGroup) as error:
                failures.append(error)
        if failures:
            msg = f"containers may be left: {failures[0]}; run `evolvarium sandbox prune`"
            raise SandboxError(msg) from failures[0]

    def _remove_everything(self) -> None:
        for container in self._engine.containers({OWNER: self._owner.id, KIND: CONTAINER_KIND}):
            self._engine.remove(str(container["Id"]))

    def _check_open(self) -> None:
        if self._is_closed:
            msg = "the sandbox was closed"
            raise Cancelled(msg)

    def _grant(self, purpose: Purpose) -> Grant:
        grant = self._policy.purposes.get(purpose)
        if grant is None:
            msg = f"policy {self._policy.name!r} grants nothing to purpose {purpose.value!r}; add it under 'purposes'"
            raise PolicyError(msg)
        return grant

    def _plan(self, request: SessionRequest) -> Blueprint:
        """What a request gets; touches nothing."""
        grant = self._grant(request.purpose)
        limits = granted_limits(grant, request)
        self._proofs.require(grant)
        return Blueprint(
            purpose=request.purpose,
            run_id=request.run_id,
            image_digest=self._images.digest(grant.image),
            grant=grant,
            limits=limits,
            mounts=dict(request.mounts),
        )

    def _launch(self, blueprint: Blueprint) -> Container:
        """A virgin container with its volumes found, and looked at again once they are mounted."""
        self._check_open()
        volumes: dict[MountRole, str] = {}
        for role, digest in blueprint.mounts.items():
            name = self._volumes.find(digest)
            if name is None:
                msg = f"no volume holds {digest} for the mount {role.value!r}; import the data first"
                raise SandboxError(msg)
            volumes[role] = name
        container = self._start(blueprint.with_volumes(volumes))
        try:
            for role, name in volumes.items():
                self._volumes.check(name, blueprint.mounts[role])
        except BaseException:
            container.destroy()
            raise
        return container

    def _start(self, blueprint: Blueprint) -> Container:
        try:
            return self._launcher.launch(blueprint)
        except SandboxError:
            self._check_open()  # closing removes what is being started, too
            raise

    @contextmanager
    def _use(self, container: Container, request: SessionRequest) -> Iterator[ContainerSession]:
        session = ContainerSession(
            container,
            request,
            engine=self._engine,
            policy_digest=self._policy_digest,
            audit=self._audit.append,
        )
        try:
            with self._lock:
                self._live.add(session)
            if self._is_closed:
                session.cancel()
            yield session
            session.finish(Ending.NO_RESULT)
        except BaseException as error:
            session.abandon(error)
            raise
        finally:
            with self._lock:
                self._live.discard(session)

    def _fill(self, digest: str, files: Mapping[str, bytes], run_id: str) -> None:
        request = SessionRequest(purpose=Purpose.IMPORT, run_id=run_id, attempt_id=f"import-{digest[7:19]}")
        grant = self._grant(Purpose.IMPORT)
        if MountRole.TARGET not in grant.mounts:
            msg = f"policy {self._policy.name!r} grants purpose 'import' no mount 'target'; add it to its mounts"
            raise PolicyError(msg)
        blueprint = self._plan(request)
        self._check_open()
        name = self._volumes.new(digest)
        with ExitStack() as on_failure:
            on_failure.callback(self._volumes.discard, name)
            target = blueprint.with_mount(MountRole.TARGET, digest, name)
            with self._use(self._start(target), request) as session:
                stored = _transfer(session, files)
                outcome = session.finish(Ending.OK if stored is not None else Ending.NO_RESULT)
            if stored != digest or outcome.ending is not Ending.OK:
                said = outcome.output[-300:].decode("utf-8", "replace")
                msg = f"importing {digest} ended with {outcome.ending.value} ({outcome.detail}), {stored=}: {said!r}"
                raise SandboxError(msg)
            on_failure.pop_all()
        self._volumes.publish(name, digest)


def _transfer(session: ContainerSession, files: Mapping[str, bytes]) -> str | None:
    """Send files; the digest that the importer read back, or None when it ended without one."""
    for frame in import_frames(files):
        session.send(frame)
    answer = session.receive()
    return str(answer.head.get("digest")) if answer is not None and answer.type == "stored" else None


def _uid_range(info: Mapping[str, Any]) -> range:
    options = " ".join(str(option) for option in info.get("SecurityOptions") or ())
    return NARROW if "name=userns" in options or "name=rootless" in options else WIDE
