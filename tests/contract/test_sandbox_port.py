"""What `ports.Sandbox` and `ports.Session` promise, asked of every adapter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MIB, Grant, Limits, MountRole, Policy, Purpose
from orchestrator.errors import Cancelled, PolicyError, SandboxError
from orchestrator.ports import Sandbox, Session, SessionRequest
from orchestrator.runtime.workers import spawn
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore

pytestmark = pytest.mark.docker

RUN = "contract-run"
LIMITS = Limits(wall_seconds=20, cpu_seconds=10, memory_bytes=256 * MIB, pids=32, output_bytes=4096)
POLICY = Policy(
    version=1,
    name="contract",
    purposes={
        Purpose.ANALYSIS: Grant(image="analysis", mounts=frozenset({MountRole.PUBLIC}), limits=LIMITS),
        Purpose.IMPORT: Grant(image="base", mounts=frozenset({MountRole.TARGET}), limits=LIMITS),
    },
)


class Records(list[AuditRecord]):
    """An audit log in memory; adding to a list is atomic."""


class TakenAsProved:
    def require(self, grant: Grant) -> None:
        """Accept every grant."""


Opened = tuple[Sandbox, Records]


@contextmanager
def on_this_machines_engine() -> Iterator[Opened]:
    """The adapter that talks to the engine itself."""
    records = Records()
    with Engine.connect() as engine:
        images = ImageStore(engine, writable_home(find_places(None, None)))
        images.build()
        proofs = TakenAsProved()
        with DockerSandbox(policy=POLICY, engine=engine, images=images, proofs=proofs, audit=records) as sandbox:
            yield sandbox, records


ADAPTERS: dict[str, Callable[[], AbstractContextManager[Opened]]] = {"engine": on_this_machines_engine}


@pytest.fixture(scope="module", params=sorted(ADAPTERS))
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    with ADAPTERS[request.param]() as opened:
        yield opened


@pytest.fixture
def sandbox(opened: Opened) -> Sandbox:
    return opened[0]


@pytest.fixture
def records(opened: Opened) -> Records:
    return opened[1]


@pytest.fixture(autouse=True)
def _no_container_is_left(sandbox: Sandbox) -> Iterator[None]:
    yield
    assert sandbox.live_containers(RUN) == 0


def request_for(**changed: object) -> SessionRequest:
    arguments = {"purpose": Purpose.ANALYSIS, "run_id": RUN, "attempt_id": "i1-a01", **changed}
    return SessionRequest(**arguments)  # type: ignore[arg-type]  # each test passes what the field takes


def lowered(**limits: float) -> Limits:
    return Limits.model_validate({**LIMITS.model_dump(), **limits})


def start(session: Session, script: str) -> None:
    table, body = pack_blobs({"analysis.py": script.encode()})
    session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, body))


def frames_of(session: Session) -> list[Frame]:
    frames: list[Frame] = []
    while (frame := session.receive()) is not None:
        frames.append(frame)
        if frame.type == "done":
            break
    return frames


def printed(frames: list[Frame]) -> bytes:
    return b"".join(frame.body for frame in frames if frame.type == "output")


# Sandbox


def test_the_policy_in_force_is_told(sandbox: Sandbox) -> None:
    assert sandbox.policy.digest() == POLICY.digest()


def test_a_session_is_virgin_and_its_ready_frame_is_consumed(sandbox: Sandbox) -> None:
    with sandbox.session(request_for()) as session:
        start(session, "print('first')")
        assert printed(frames_of(session)) == b"first\n"
        assert session.finish().ending is Ending.OK


def test_no_session_finds_a_trace_of_another(sandbox: Sandbox) -> None:
    script = (
        "import os\nfor place in ('/tmp', '/work', '/dev/shm'):\n"
        "    print([name for name in os.listdir(place) if 'trace' in name])\n"
        "    open(place + '/trace', 'w').write('x')\n"
    )
    for _ in range(2):
        with sandbox.session(request_for()) as session:
            start(session, script)
            assert printed(frames_of(session)) == b"[]\n[]\n[]\n"


def test_a_purpose_without_a_grant_is_a_policy_error(sandbox: Sandbox) -> None:
    with pytest.raises(PolicyError), sandbox.session(request_for(purpose=Purpose.EVALUATOR)):
        pass


def test_a_limit_over_the_policys_is_a_policy_error(sandbox: Sandbox) -> None:
    with pytest.raises(PolicyError, match="pids"), sandbox.session(request_for(limits=lowered(pids=33))):
        pass


def test_a_mount_that_is_not_granted_is_a_policy_error(sandbox: Sandbox) -> None:
    mounts = {MountRole.TASK: "sha256:" + "0" * 64}
    with pytest.raises(PolicyError, match="task"), sandbox.session(request_for(mounts=mounts)):
        pass


def test_a_volume_is_named_by_its_content_and_mounted_as_it_was_imported(sandbox: Sandbox) -> None:
    files = {"a/b.txt": b"content", "empty": b""}
    digest = sandbox.import_volume(files, run_id=RUN)
    assert sandbox.import_volume(dict(reversed(files.items())), run_id=RUN) == digest
    assert sandbox.import_volume({**files, "empty": b"x"}, run_id=RUN) != digest
    with sandbox.session(request_for(mounts={MountRole.PUBLIC: digest})) as session:
        start(session, "print(open('/work/data/a/b.txt').read())")
        assert printed(frames_of(session)) == b"content\n"


def test_containers_are_counted_by_run(sandbox: Sandbox) -> None:
    with sandbox.session(request_for()):
        assert sandbox.live_containers(RUN) == 1
        assert sandbox.live_containers("another-run") == 0


def test_sessions_run_side_by_side(sandbox: Sandbox) -> None:
    meeting = threading.Barrier(3, timeout=60)

    def work() -> bytes:
        with sandbox.session(request_for()) as session:
            meeting.wait()
            start(session, "print('here')")
            return printed(frames_of(session))

    workers = [spawn(f"session-{n}", work) for n in range(3)]
    assert all(worker.join(90) for worker in workers)
    assert [worker.result() for worker in workers] == [b"here\n"] * 3


# Session


def test_the_digest_of_the_image_is_told(sandbox: Sandbox, records: Records) -> None:
    with sandbox.session(request_for()) as session:
        digest = session.image_digest
    assert digest.startswith("sha256:")
    assert records[-1].image_digest == digest


def test_receive_gives_none_once_the_container_has_ended_and_goes_on_to(sandbox: Sandbox) -> None:
    with sandbox.session(request_for()) as session:
        start(session, "pass")
        while session.receive() is not None:
            pass
        assert session.receive() is None


def test_a_container_that_has_ended_swallows_what_is_sent(sandbox: Sandbox) -> None:
    with sandbox.session(request_for()) as session:
        start(session, "pass")
        while session.receive() is not None:
            pass
        session.send(Frame({"type": "late"}, bytes(MIB)))
        assert session.finish(Ending.OK).ending is Ending.OK


def test_a_limit_overrides_the_claim(sandbox: Sandbox) -> None:
    with sandbox.session(request_for(limits=lowered(wall_seconds=1))) as session:
        start(session, "import time\ntime.sleep(99)")
        assert frames_of(session) == []
        outcome = session.finish(Ending.OK)
    assert outcome.ending is Ending.TIMEOUT
    assert 1 <= outcome.wall_seconds < 3


@pytest.mark.parametrize("claim", [Ending.ERROR, Ending.NO_RESULT, Ending.INVALID_RESULT, Ending.DISK])
def test_a_claim_stands_that_nothing_contradicts(sandbox: Sandbox, claim: Ending) -> None:
    with sandbox.session(request_for()) as session:
        start(session, "pass")
        frames_of(session)
        assert session.finish(claim).ending is claim


def test_finish_can_be_repeated_and_leaves_one_record(sandbox: Sandbox, records: Records) -> None:
    before = len(records)
    with sandbox.session(request_for()) as session:
        start(session, "pass")
        frames_of(session)
        assert session.finish() == session.finish(Ending.ERROR)
        assert sandbox.live_containers(RUN) == 0
    assert len(records) == before + 1
    assert (records[-1].run_id, records[-1].attempt_id, records[-1].ending) == (RUN, "i1-a01", "ok")
    assert records[-1].policy_digest == POLICY.digest()


def test_a_cap_on_cpu_time_ends_a_busy_loop(sandbox: Sandbox) -> None:
    with sandbox.session(request_for()) as session:
        session.cap_cpu(0.5)
        start(session, "while True:\n    pass")
        frames_of(session)
        outcome = session.finish(Ending.NO_RESULT)
    assert outcome.ending is Ending.TIMEOUT
    assert "cpu" in outcome.detail


def test_a_cap_on_cpu_time_is_never_more_than_the_limit(sandbox: Sandbox) -> None:
    with sandbox.session(request_for(limits=lowered(cpu_seconds=0.5))) as session:
        session.cap_cpu(99)
        start(session, "while True:\n    pass")
        frames_of(session)
        assert session.finish(Ending.NO_RESULT).ending is Ending.TIMEOUT


def test_cancel_makes_pending_and_later_calls_raise(sandbox: Sandbox, records: Records) -> None:
    with pytest.raises(Cancelled), sandbox.session(request_for()) as session:  # noqa: PT012 - the calls of one session
        start(session, "import time\ntime.sleep(99)")
        worker = spawn("cancel", lambda: (time.sleep(0.3), session.cancel()))
        with pytest.raises(Cancelled):
            frames_of(session)
        assert worker.join(10)
        with pytest.raises(Cancelled):
            session.send(Frame({"type": "late"}))
        session.finish()
    assert records[-1].ending == "cancelled"


def test_an_exception_in_the_block_removes_the_container(sandbox: Sandbox, records: Records) -> None:
    with pytest.raises(KeyError), sandbox.session(request_for()):
        raise KeyError
    assert records[-1].ending == "cancelled"


def test_our_own_failure_in_the_block_is_recorded_as_such(sandbox: Sandbox, records: Records) -> None:
    with pytest.raises(SandboxError), sandbox.session(request_for()):
        raise SandboxError
    assert records[-1].ending == "sandbox-error"


def test_digests_in_the_record_depend_on_what_was_sent_and_received(sandbox: Sandbox, records: Records) -> None:
    for word in ("a", "a", "b"):
        with sandbox.session(request_for()) as session:
            start(session, f"print({word!r})")
            frames_of(session)
            session.finish()
    first, same, other = records[-3:]
    assert (first.input_digest, first.output_digest) == (same.input_digest, same.output_digest)
    assert first.input_digest != other.input_digest
    assert first.output_digest != other.output_digest


# Last, since nothing runs after it


def test_warm_containers_are_virgin_and_closing_removes_them_and_can_be_repeated(sandbox: Sandbox) -> None:
    sandbox.warm(request_for(), 1)
    deadline = time.monotonic() + 60
    while sandbox.live_containers(RUN) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with sandbox.session(request_for()) as session:
        start(session, "print('warm')")
        assert printed(frames_of(session)) == b"warm\n"
    sandbox.close()
    sandbox.close()
    assert sandbox.live_containers(RUN) == 0
