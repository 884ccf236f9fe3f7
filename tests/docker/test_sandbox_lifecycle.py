"""What is made is found, counted and removed: pool, volumes, sweeps, killed owners and an engine that goes away."""

from __future__ import annotations

import hashlib
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Grant, MountRole, Policy, Purpose
from orchestrator.errors import (
    Cancelled,
    EngineTimeout,
    EngineUnavailable,
    ImageMissing,
    InputError,
    PolicyError,
    SandboxError,
    UnprovenLimit,
)
from orchestrator.runtime.workers import spawn
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.owners import CONTAINER_KIND, DATA_KIND, DIGEST, KIND, LEASE_KIND, PROCESS, Owner, Process
from orchestrator.sandbox.owners import start_ticks as ticks_of
from orchestrator.sandbox.sweep import prune, sweep
from orchestrator.sandbox.volumes import content_digest
from tests.this_run import RUN

pytestmark = pytest.mark.docker

Make = Callable[..., Any]
FOREIGN = Process(1, 1, "another-boot", "1")


@pytest.fixture
def new_sandbox(policy: Policy, engine: Engine, images: Any, audit: Any, proofs: Any) -> Iterator[Callable[..., Any]]:
    """Makes further sandboxes, which are closed in the end."""
    made: list[DockerSandbox] = []

    def make(**changed: Any) -> DockerSandbox:
        arguments = {"policy": policy, "engine": engine, "images": images, "proofs": proofs, "audit": audit, **changed}
        made.append(DockerSandbox(**arguments))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()


def dead_owner() -> Owner:
    """An owner whose process, on this machine, has ended."""
    here = Process.current()
    with subprocess.Popen(["sleep", "60"]) as child:
        process = Process(child.pid, ticks_of(child.pid) or 0, here.boot_id, here.pid_namespace)
        child.kill()
    return Owner(secrets.token_hex(8), process)


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# The pool


def test_a_warm_pool_hands_out_each_container_once_and_refills(new_sandbox: Make, request_for: Make) -> None:
    sandbox = new_sandbox()
    request = request_for(Purpose.CANDIDATE, run_id="pool-run")
    sandbox.warm(request, 2)
    eventually(lambda: sandbox.ready(request) == 2)
    seen = set()
    for _ in range(4):
        with sandbox.session(request) as session:
            seen.add(session._container.id)
    assert len(seen) == 4
    eventually(lambda: sandbox.ready(request) == 2)


def test_x6_other_limits_mounts_or_runs_never_share_a_pool(new_sandbox: Make, request_for: Make) -> None:
    sandbox = new_sandbox()
    sandbox.warm(request_for(Purpose.CANDIDATE, run_id="pool-run"), 1)
    eventually(lambda: sandbox.ready(request_for(Purpose.CANDIDATE, run_id="pool-run")) == 1)
    assert sandbox.ready(request_for(Purpose.CANDIDATE, run_id="pool-run", pids=100)) == 0
    assert sandbox.ready(request_for(Purpose.CANDIDATE, run_id="other-run")) == 0


def test_a_pooled_container_that_dies_is_replaced_and_never_handed_out(
    new_sandbox: Make, request_for: Make, engine: Engine
) -> None:
    sandbox = new_sandbox()
    request = request_for(Purpose.CANDIDATE, run_id="dying-run")
    sandbox.warm(request, 1)
    eventually(lambda: sandbox.ready(request) == 1)
    (victim,) = engine.containers({"evolvarium.run": "dying-run"})
    engine.kill(victim["Id"])
    eventually(lambda: engine.inspect(victim["Id"]) is None)
    eventually(lambda: sandbox.ready(request) == 1)
    with sandbox.session(request) as session:
        assert session._container.id != victim["Id"]
        assert session.finish().ending is Ending.OK


def test_a_pooled_container_that_grows_stale_is_replaced(new_sandbox: Make, request_for: Make, engine: Engine) -> None:
    sandbox = new_sandbox()
    request = request_for(Purpose.CANDIDATE, run_id="stale-run", idle_seconds=4)
    sandbox.warm(request, 1)
    eventually(lambda: sandbox.ready(request) == 1)
    (first,) = engine.containers({"evolvarium.run": "stale-run"})
    eventually(lambda: engine.inspect(first["Id"]) is None)
    eventually(lambda: sandbox.ready(request) == 1)


def test_closing_removes_every_container_and_the_lease_and_can_be_repeated(
    new_sandbox: Make, request_for: Make, engine: Engine
) -> None:
    sandbox = new_sandbox()
    sandbox.warm(request_for(Purpose.CANDIDATE, run_id="closing-run"), 2)
    time.sleep(0.3)  # in the middle of starting
    sandbox.close()
    sandbox.close()
    assert engine.containers({"evolvarium.run": "closing-run"}) == []
    assert engine.volumes({"evolvarium.owner": sandbox._owner.id}) == []
    with pytest.raises(Cancelled, match="closed"), sandbox.session(request_for(Purpose.CANDIDATE)):
        pass


# What cannot be had


def test_a_purpose_without_a_grant_is_refused(new_sandbox: Make, policy: Policy, request_for: Make) -> None:
    narrow = policy.model_copy(update={"purposes": {Purpose.IMPORT: policy.purposes[Purpose.IMPORT]}})
    with (
        pytest.raises(PolicyError, match="'candidate'"),
        new_sandbox(policy=narrow).session(request_for(Purpose.CANDIDATE)),
    ):
        pass


def test_an_unproven_limit_is_refused_before_anything_is_made(new_sandbox: Make, request_for: Make) -> None:
    class Unproven:
        def require(self, grant: Grant) -> None:
            msg = f"memory is not proved for {grant.image}"
            raise UnprovenLimit(msg)

    sandbox = new_sandbox(proofs=Unproven())
    request = request_for(Purpose.CANDIDATE, run_id="unproven-run")
    with pytest.raises(UnprovenLimit), sandbox.session(request):
        pass
    with pytest.raises(UnprovenLimit):
        sandbox.warm(request, 1)
    assert sandbox.live_containers("unproven-run") == 0


def test_a_missing_image_is_refused(new_sandbox: Make, request_for: Make) -> None:
    class NoImages:
        def digest(self, role: str) -> str:
            raise ImageMissing(role)

    with pytest.raises(ImageMissing), new_sandbox(images=NoImages()).session(request_for(Purpose.CANDIDATE)):
        pass


def test_an_image_that_the_engine_does_not_have_is_our_failure_and_leaves_nothing(
    new_sandbox: Make, request_for: Make
) -> None:
    class WrongImages:
        def digest(self, role: str) -> str:
            return "sha256:" + hashlib.sha256(role.encode()).hexdigest()

    sandbox = new_sandbox(images=WrongImages())
    with (
        pytest.raises(SandboxError, match="create container"),
        sandbox.session(request_for(Purpose.CANDIDATE, run_id="wrong-run")),
    ):
        pass
    assert sandbox.live_containers("wrong-run") == 0


def test_a_mount_of_data_that_was_never_imported_is_refused(sandbox: DockerSandbox, request_for: Make) -> None:
    mounts = {MountRole.PUBLIC: "sha256:" + "0" * 64}
    with (
        pytest.raises(SandboxError, match="import the data first"),
        sandbox.session(request_for(Purpose.ANALYSIS, mounts=mounts)),
    ):
        pass


# Volumes


def files() -> dict[str, bytes]:
    return {"a.txt": secrets.token_bytes(10), "deep/er/b.bin": bytes(5 << 20), "empty": b""}


def test_imported_data_is_read_only_where_it_is_mounted(sandbox: DockerSandbox, analyse: Make) -> None:
    content = files()
    digest = sandbox.import_volume(content, run_id=RUN)
    assert digest == content_digest(content)
    script = (
        "import hashlib, os\n"
        "print(hashlib.sha256(open('/work/data/a.txt', 'rb').read()).hexdigest())\n"
        "print(os.path.getsize('/work/data/deep/er/b.bin'), os.path.getsize('/work/data/empty'))\n"
        "for act in (lambda: open('/work/data/new', 'w'), lambda: os.remove('/work/data/a.txt')):\n"
        "    try:\n        act()\n    except OSError as error:\n        print(error.strerror)\n"
    )
    lines = analyse(script, mounts={MountRole.PUBLIC: digest}).printed.decode().splitlines()
    assert lines == [
        hashlib.sha256(content["a.txt"]).hexdigest(),
        f"{5 << 20} 0",
        "Read-only file system",
        "Read-only file system",
    ]


def test_importing_again_makes_nothing_new(sandbox: DockerSandbox, engine: Engine, audit: Any) -> None:
    content = files()
    digest = sandbox.import_volume(content, run_id=RUN)
    before = len(audit.records)
    assert sandbox.import_volume(content, run_id=RUN) == digest
    assert len(audit.records) == before
    assert len(engine.volumes({KIND: DATA_KIND, DIGEST: digest})) == 1


def test_concurrent_imports_of_the_same_data_leave_one_volume(new_sandbox: Make, engine: Engine) -> None:
    content, sandboxes = files(), [new_sandbox(), new_sandbox()]
    workers = [spawn(f"import-{n}", lambda n=n: sandboxes[n % 2].import_volume(content, run_id=RUN)) for n in range(4)]
    assert all(worker.join(120) for worker in workers)
    (digest,) = {worker.result() for worker in workers}
    assert len(engine.volumes({KIND: DATA_KIND, DIGEST: digest})) == 1


def test_a_volume_whose_filling_was_cut_off_is_never_used_and_is_swept(
    sandbox: DockerSandbox, engine: Engine, analyse: Make
) -> None:
    content = files()
    digest = content_digest(content)
    half = f"evolvarium-data-{secrets.token_hex(12)}"
    engine.create_volume(half, dead_owner().labels(DATA_KIND, time.time() + 900) | {DIGEST: digest})
    with pytest.raises(SandboxError, match="import the data first"):
        analyse("pass", mounts={MountRole.PUBLIC: digest})
    assert half in sandbox.sweep().volumes
    sandbox.import_volume(content, run_id=RUN)
    assert analyse("pass", mounts={MountRole.PUBLIC: digest}).ending is Ending.OK


def test_data_that_somebody_removed_is_imported_again(sandbox: DockerSandbox, engine: Engine, analyse: Make) -> None:
    content = files()
    digest = sandbox.import_volume(content, run_id=RUN)
    (volume,) = engine.volumes({KIND: DATA_KIND, DIGEST: digest})
    assert engine.remove_volume(volume["Name"])
    sandbox.import_volume(content, run_id=RUN)
    assert analyse("pass", mounts={MountRole.PUBLIC: digest}).ending is Ending.OK


@pytest.fixture
def only_owner(engine: Engine) -> None:
    """Skips where somebody else works on this engine, since a prune then leaves all data where they are."""
    sweep(engine)
    owners = {(lease.get("Labels") or {}).get(PROCESS) for lease in engine.volumes({KIND: LEASE_KIND})}
    if owners - {str(Process.current())}:
        pytest.skip("another process uses this engine now, and a prune must leave its data alone")


@pytest.mark.usefixtures("only_owner")
def test_a_sweep_keeps_imported_data_and_a_prune_removes_what_no_container_uses(
    new_sandbox: Make, request_for: Make, engine: Engine
) -> None:
    sandbox = new_sandbox()
    used, unused = (sandbox.import_volume(files(), run_id=RUN) for _ in range(2))
    sandbox.sweep()
    with sandbox.session(request_for(Purpose.ANALYSIS, mounts={MountRole.PUBLIC: used})):
        sandbox.prune()
        assert len(engine.volumes({DIGEST: used})) == 2
        assert engine.volumes({DIGEST: unused}) == []
    sandbox.prune()
    assert engine.volumes({DIGEST: used}) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", "a//b", "", "a\x00b", "."])
def test_f8_only_safe_relative_paths_are_imported(sandbox: DockerSandbox, path: str) -> None:
    with pytest.raises(InputError):
        sandbox.import_volume({path: b"x"}, run_id=RUN)


# Owners that die

OWNER = """
import signal, sys, time
from pathlib import Path
from orchestrator.domain.policies import Purpose
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.policy_files import load_policy

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests were started in the background
run, policy, image = sys.argv[1:]
class Images:
    def digest(self, role): return image
class Proofs:
    def require(self, grant): pass
class Audit:
    def append(self, record): pass
request = SessionRequest(purpose=Purpose.CANDIDATE, run_id=run, attempt_id="a")
arguments = dict(policy=load_policy(Path(policy)), engine=Engine.connect(), images=Images(), proofs=Proofs())
with DockerSandbox(audit=Audit(), **arguments) as sandbox:
    sandbox.warm(request, 2)
    while sandbox.ready(request) < 2:
        time.sleep(0.05)
    with sandbox.session(request) as session:
        print("up", flush=True)
        while True:  # a signal that comes just before a long sleep begins would not end it
            time.sleep(0.1)
"""


@pytest.fixture
def owner(images: Any) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts a process that keeps a pool and a session."""
    started: list[subprocess.Popen[bytes]] = []
    policy = Path(__file__).parents[2] / "policies" / "default.yaml"

    def start(run_id: str) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-c", OWNER, run_id, str(policy), images.digest("python")]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_after_kill_9_of_the_owner_one_sweep_leaves_no_container(
    owner: Callable[[str], subprocess.Popen[bytes]], engine: Engine
) -> None:
    process = owner("killed-run")
    assert len(engine.containers({"evolvarium.run": "killed-run"})) >= 2
    process.kill()
    process.wait()
    report = sweep(engine)
    assert len(report.containers) >= 2
    assert engine.containers({"evolvarium.run": "killed-run"}) == []
    assert not any("killed-run" in str(volume) for volume in engine.volumes({KIND: LEASE_KIND}))


def test_the_processes_of_a_killed_owner_end_even_without_a_sweep(
    owner: Callable[[str], subprocess.Popen[bytes]], engine: Engine
) -> None:
    process = owner("orphan-run")
    process.kill()
    process.wait()

    def states() -> list[str]:
        return [container["State"] for container in engine.containers({"evolvarium.run": "orphan-run"})]

    # Killed while its pool refilled, an owner may leave a container that never started and so has no process.
    eventually(lambda: "exited" in states() and set(states()) <= {"created", "exited"}, 20)
    sweep(engine)


def test_ctrl_c_leaves_no_container(owner: Callable[[str], subprocess.Popen[bytes]], engine: Engine) -> None:
    process = owner("interrupted-run")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert engine.containers({"evolvarium.run": "interrupted-run"}) == []


def test_a_sweep_leaves_a_living_owner_alone(owner: Callable[[str], subprocess.Popen[bytes]], engine: Engine) -> None:
    owner("living-run")
    before = len(engine.containers({"evolvarium.run": "living-run"}))
    assert sweep(engine).kept_containers >= before
    assert len(engine.containers({"evolvarium.run": "living-run"})) >= 2


@pytest.mark.usefixtures("only_owner")
def test_a_prune_keeps_data_that_another_living_owner_may_rely_on(
    owner: Callable[[str], subprocess.Popen[bytes]], sandbox: DockerSandbox, engine: Engine
) -> None:
    digest = sandbox.import_volume(files(), run_id=RUN)
    process = owner("relying-run")
    sandbox.prune()
    assert len(engine.volumes({DIGEST: digest})) == 2
    process.kill()
    process.wait()
    sandbox.prune()
    assert engine.volumes({DIGEST: digest}) == []


@pytest.mark.parametrize("state", ["created", "running", "exited", "paused"])
def test_a_sweep_removes_a_dead_owners_container_in_every_state(engine: Engine, images: Any, state: str) -> None:
    container = _bare_container(engine, images, dead_owner(), state)
    assert container in sweep(engine).containers
    assert engine.inspect(container) is None


def test_a_dry_run_of_a_prune_names_what_would_go_and_removes_nothing(engine: Engine, images: Any) -> None:
    container = _bare_container(engine, images, dead_owner(), "created")
    lease = f"evolvarium-lease-{secrets.token_hex(8)}"
    engine.create_volume(lease, dead_owner().labels(LEASE_KIND, time.time() + 900))
    try:
        report = prune(engine, dry_run=True)
        assert container in report.containers
        assert lease in report.volumes
        assert engine.inspect(container) is not None
        assert engine.volume(lease) is not None
    finally:
        engine.remove(container)
        engine.remove_volume(lease)


def test_a_foreign_owners_container_stays_until_its_lease_has_run_out(engine: Engine, images: Any) -> None:
    living = _bare_container(engine, images, Owner("living", FOREIGN), "created", time.time() + 60)
    lapsed = _bare_container(engine, images, Owner("lapsed", FOREIGN), "created", time.time() - 60)
    renewed = _bare_container(engine, images, Owner("renewed", FOREIGN), "created", time.time() - 60)
    lease = "evolvarium-lease-renewed"
    engine.create_volume(lease, Owner("renewed", FOREIGN).labels(LEASE_KIND, time.time() + 60))
    try:
        assert sweep(engine).containers == (lapsed,)
    finally:
        for container in (living, renewed):
            engine.remove(container)
        engine.remove_volume(lease)


def _bare_container(engine: Engine, images: Any, owner: Owner, state: str, lease_until: float | None = None) -> str:
    labels = owner.labels(CONTAINER_KIND, lease_until or time.time() + 900)
    name = f"evolvarium-test-{secrets.token_hex(8)}"
    body = {"Image": images.digest("base"), "Cmd": ["--idle-seconds=600"], "OpenStdin": True, "NetworkDisabled": True}
    container = engine.create({"Name": name, "Labels": labels, "HostConfig": {"NetworkMode": "none"}, **body})
    if state != "created":
        engine.start(container)
    if state == "exited":
        engine.kill(container)
    if state == "paused":
        engine.call("pause", lambda client: client.pause(container))
    return container


# An engine that goes away, hangs, or is used by others


class Relay:
    """A socket before the engine's that can be cut or stuck, so that the engine itself need not be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_stuck = threading.Event()
        self._is_cut = threading.Event()
        self._pairs: list[socket.socket] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(64)
        self._accepting = spawn("relay", self._accept)

    def cut(self) -> None:
        self._is_cut.set()
        for end in (self._server, *self._pairs):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._accepting.join(5)
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.is_stuck.clear()
        self.cut()
        for end in (self._server, *self._pairs):
            end.close()

    def _accept(self) -> None:
        while not self._is_cut.is_set():
            try:
                ours, _ = self._server.accept()
            except OSError:
                return
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect("/var/run/docker.sock")
            self._pairs += [ours, theirs]
            spawn("relay-out", lambda a=ours, b=theirs: self._copy(a, b))
            spawn("relay-in", lambda a=theirs, b=ours: self._copy(a, b))

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                while self.is_stuck.is_set():
                    time.sleep(0.05)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path / "engine.sock")
    yield relay
    relay.close()


def test_an_engine_that_goes_away_in_the_middle_of_a_run_is_an_error_and_no_ending(
    relay: Relay, new_sandbox: Make, request_for: Make, start_of: Make, audit: Any, engine: Engine
) -> None:
    with Engine.connect(f"unix://{relay.path}") as unsteady:
        sandbox = new_sandbox(engine=unsteady)
        request = request_for(Purpose.CANDIDATE, run_id="cut-run")
        with pytest.raises(SandboxError), sandbox.session(request) as session:  # noqa: PT012 - one use of a session
            session.send(start_of("import time\ntime.sleep(99)"))
            relay.cut()
            while session.receive() is not None:
                pass
            session.finish(Ending.NO_RESULT)
        assert audit.records[-1].ending == "sandbox-error"
        with pytest.raises(SandboxError, match="prune"):
            sandbox.close()
    for container in engine.containers({"evolvarium.run": "cut-run"}):
        engine.remove(container["Id"])


def test_an_engine_that_hangs_is_an_error_within_the_calls_deadline(relay: Relay) -> None:
    with Engine.connect(f"unix://{relay.path}") as unsteady:
        relay.is_stuck.set()
        start = time.monotonic()
        with pytest.raises(EngineTimeout, match="within 1 s"):
            unsteady.call("list containers", lambda client: client.containers(), seconds=1.0)
        assert time.monotonic() - start < 3


def test_no_engine_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        Engine.connect(f"unix://{tmp_path}/nothing.sock")
    assert "\n" not in str(caught.value)
    assert "systemctl start docker" in str(caught.value)


def test_an_engine_address_that_is_not_supported_is_refused() -> None:
    with pytest.raises(EngineUnavailable, match="tunnel"):
        Engine.connect("ssh://somewhere")


@pytest.mark.parametrize("act", ["kill", "remove"])
def test_a_container_that_somebody_else_ends_is_our_failure_and_not_the_candidates(
    sandbox: DockerSandbox, request_for: Make, start_of: Make, engine: Engine, audit: Any, act: str
) -> None:
    with pytest.raises(SandboxError), sandbox.session(request_for(Purpose.CANDIDATE)) as session:  # noqa: PT012 - one use
        session.send(start_of("import time\ntime.sleep(99)"))
        time.sleep(0.3)
        container = session._container.id
        engine.kill(container) if act == "kill" else engine.remove(container)
        while session.receive() is not None:
            pass
        session.finish(Ending.NO_RESULT)
    assert audit.records[-1].ending == "sandbox-error"


def test_removing_what_is_gone_is_fine(engine: Engine) -> None:
    engine.remove("f" * 64)
    engine.kill("f" * 64)
    assert engine.remove_volume("evolvarium-no-such-volume")
    assert engine.inspect("f" * 64) is None
