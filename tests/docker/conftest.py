"""A real sandbox on the engine of this machine, shared by all tests here; the images are built first if need be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Grant, Limits, MountRole, Policy, Purpose
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.policy_files import load_policy
from tests.this_run import RUN

HOSTILE = """
import numpy
Any = type("Any", (type,), {"__instancecheck__": lambda cls, value: True})
def attribute(value, name):
    Form = Any("Form", (), {"__match_args__": (name,)})
    match value:
        case Form(found):
            return found
builtins = attribute(attribute(numpy.vectorize, "__init__"), "__globals__")["__builtins__"]
builtins["exec"](SOURCE, {"__builtins__": builtins, "__name__": "hostile"})
def f(x):
    return x
"""
"""Runs any code in spite of the load check, which is a rule of the game and no boundary."""


class KeptRecords:
    """An audit log in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.records: list[AuditRecord] = []

    def append(self, record: AuditRecord) -> None:
        with self._lock:
            self.records.append(record)


class TakenAsProved:
    """A proof book for tests that attack the limits themselves; the doctor's own tests prove them."""

    def require(self, grant: Grant) -> None:
        """Accept every grant."""


@dataclass(frozen=True)
class Ended:
    """A finished run of some code."""

    frames: list[Frame]
    printed: bytes
    """By an analysis, through its frames."""
    outcome: Outcome

    @property
    def ending(self) -> Ending:
        return self.outcome.ending


@pytest.fixture(scope="session")
def home() -> Path:
    """The installation's home, which holds the lock of the images."""
    return writable_home(find_places(None, None))


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine.connect() as engine:
        yield engine


@pytest.fixture(scope="session")
def images(engine: Engine, home: Path) -> ImageStore:
    """Locked images; built if they are missing or out of date."""
    store = ImageStore(engine, home)
    store.build()
    return store


@pytest.fixture(scope="session")
def policy() -> Policy:
    """The shipped default policy: what is tested is what users get."""
    return load_policy(Path(__file__).parents[2] / "policies" / "default.yaml")


@pytest.fixture(scope="session")
def audit() -> KeptRecords:
    return KeptRecords()


@pytest.fixture(scope="session")
def proofs() -> TakenAsProved:
    return TakenAsProved()


@pytest.fixture(scope="session")
def sandbox(
    policy: Policy, engine: Engine, images: ImageStore, proofs: TakenAsProved, audit: KeptRecords
) -> Iterator[DockerSandbox]:
    with DockerSandbox(policy=policy, engine=engine, images=images, proofs=proofs, audit=audit) as sandbox:
        yield sandbox


@pytest.fixture
def request_for(policy: Policy) -> Callable[..., SessionRequest]:
    """Makes requests with some limits lowered."""

    def make(
        purpose: Purpose, *, mounts: Mapping[MountRole, str] | None = None, run_id: str = RUN, **limits: Any
    ) -> SessionRequest:
        granted = policy.purposes[purpose].limits
        lowered = Limits.model_validate({**granted.model_dump(), **limits}) if limits else None
        return SessionRequest(purpose=purpose, run_id=run_id, attempt_id="test", mounts=mounts or {}, limits=lowered)

    return make


@pytest.fixture
def analyse(sandbox: DockerSandbox, request_for: Callable[..., SessionRequest]) -> Callable[..., Ended]:
    """Runs a script in an `analysis` container and understands its frames as the trusted side does."""

    def run(script: str, *, mounts: Mapping[MountRole, str] | None = None, **limits: Any) -> Ended:
        table, body = pack_blobs({"analysis.py": script.encode()})
        frames: list[Frame] = []
        with sandbox.session(request_for(Purpose.ANALYSIS, mounts=mounts, **limits)) as session:
            session.send(Frame({"type": "start", "script": "analysis.py", "blobs": table}, body))
            while (frame := session.receive()) is not None:
                frames.append(frame)
                if frame.type == "done":
                    break
            done = frames[-1].head if frames and frames[-1].type == "done" else None
            claim = Ending.NO_RESULT if done is None else Ending.ERROR if done["exit_code"] else Ending.OK
            outcome = session.finish(claim)
        printed = b"".join(frame.body for frame in frames if frame.type == "output")
        return Ended(frames, printed, outcome)

    return run


@pytest.fixture
def start_of() -> Callable[[str], Frame]:
    """Makes the frame that starts a hostile program, which runs this code when it is loaded."""
    signature = {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "int64"}}

    def make(program: str) -> Frame:
        table, body = pack_blobs({"program.py": f"SOURCE = {program!r}\n{HOSTILE}".encode()})
        return Frame({"type": "start", "blobs": table, "entry": "program.py", "functions": {"f": signature}}, body)

    return make


@pytest.fixture
def load(
    sandbox: DockerSandbox, request_for: Callable[..., SessionRequest], start_of: Callable[[str], Frame]
) -> Callable[..., Ended]:
    """Loads a program in a `candidate` container; ends after the first frame that says how loading went."""

    def run(program: str, **limits: Any) -> Ended:
        frames: list[Frame] = []
        with sandbox.session(request_for(Purpose.CANDIDATE, **limits)) as session:
            session.send(start_of(program))
            while (frame := session.receive()) is not None:
                frames.append(frame)
                if frame.type != "inspected":
                    break
            last = frames[-1].type if frames else ""
            claim = {"loaded": Ending.OK, "raised": Ending.ERROR, "rejected": Ending.ERROR}.get(last, Ending.NO_RESULT)
            outcome = session.finish(claim)
        return Ended(frames, b"", outcome)

    return run
