"""A sandbox whose containers are played by scripts: what each one answers to a frame, and how it ends."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.exchanges import Exchange, Wrapping
from orchestrator.domain.frames import Frame, encode, pack_blobs
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Grant, Limits, MountRole, Policy, Purpose
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import EvolvariumError
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.ports import Session, SessionRequest
from tests.exchanging import exchange_in_turns

Answer = Frame | EvolvariumError
Script = Callable[[Frame], Iterable[Answer]]
PROGRAM = FileTree({"program.py": b"def estimate(x):\n    return x\n"})
METRICS = {"fitness": 0.5, "error": 1.0, "ast_nodes": 0.25, "bias": 0.75}


@dataclass
class Play:
    """One container: its answers, the end that the sandbox sees, and afterwards what happened."""

    script: Script
    sees: Ending | None = None
    """A limit that was met, which overrides every claim."""
    wall_seconds: float = 1.0
    exit_code: int = 0
    image: str = "sha256:image"
    opening: EvolvariumError | None = None
    """Raised instead of a container."""
    request: SessionRequest | None = None
    received: list[Frame] = field(default_factory=list)
    caps: list[float] = field(default_factory=list)
    claims: list[Ending] = field(default_factory=list)


class ScriptedSession:
    """`ports.Session`: answers as its script says, and has ended when the answers are used up."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._waiting: deque[Answer] = deque()

    @property
    def image_digest(self) -> str:
        return self._play.image

    def send(self, frame: Frame) -> None:
        encode(frame)  # what is sent must be a frame
        self._play.received.append(frame)
        self._waiting.extend(self._play.script(frame))

    def receive(self) -> Frame | None:
        answer = self._waiting.popleft() if self._waiting else None
        if isinstance(answer, EvolvariumError):
            raise answer
        return answer

    def exchange(self, answerer: Session, wrapping: Wrapping, clock: Callable[[], float]) -> Exchange:
        return exchange_in_turns(self, answerer, wrapping, clock)

    def cap_cpu(self, total_seconds: float) -> None:
        self._play.caps.append(total_seconds)

    def finish(self, claim: Ending = Ending.OK) -> Outcome:
        self._play.claims.append(claim)
        return Outcome(
            ending=self._play.sees or self._play.claims[0],
            exit_code=self._play.exit_code,
            wall_seconds=self._play.wall_seconds,
            cpu_seconds=0.5,
            memory_peak_bytes=1 << 20,
            output=b"printed",
            output_truncated=False,
            detail="as the test says",
        )

    def cancel(self) -> None:
        raise NotImplementedError


class ScriptedSandbox:
    """`ports.Sandbox`: plays the containers of each purpose in the given order, the last one again and again."""

    def __init__(self) -> None:
        limits = Limits(output_bytes=400, output_kill_bytes=4000, wall_seconds=60, cpu_seconds=60)
        self.policy = Policy(
            version=1,
            name="scripted",
            purposes={
                Purpose.CANDIDATE: Grant(image="python", limits=limits),
                Purpose.ANALYSIS: Grant(image="analysis", mounts=frozenset({MountRole.PUBLIC}), limits=limits),
                Purpose.EVALUATOR: Grant(image="evaluator", mounts=frozenset({MountRole.TASK}), limits=limits),
            },
        )
        self.plays: dict[Purpose, list[Play]] = {purpose: [] for purpose in Purpose}
        self.opened: list[Play] = []
        self.volumes: dict[str, Mapping[str, bytes]] = {}
        self.warmed: list[tuple[SessionRequest, int]] = []
        self._lock = threading.Lock()

    def play(self, purpose: Purpose, script: Script, **fields: object) -> Play:
        """Add a container."""
        play = Play(script, **fields)  # type: ignore[arg-type]  # the fields of `Play`
        self.plays[purpose].append(play)
        return play

    @contextmanager
    def session(self, request: SessionRequest) -> Iterator[ScriptedSession]:
        with self._lock:
            waiting = self.plays[request.purpose]
            play = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            play.request = request
            self.opened.append(play)
        if play.opening is not None:
            raise play.opening
        yield ScriptedSession(play)

    def import_volume(self, files: Mapping[str, bytes], *, run_id: str) -> str:  # noqa: ARG002 - the port's
        manifest = {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}
        digest = "sha256:" + hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
        self.volumes[digest] = dict(files)
        return digest

    def warm(self, request: SessionRequest, count: int) -> None:
        self.warmed.append((request, count))

    def live_containers(self, run_id: str) -> int:  # noqa: ARG002 - the port's
        return 0

    def close(self) -> None:
        """Nothing to remove."""


def frame(kind: str, body: bytes = b"", **head: object) -> Frame:
    return Frame({"type": kind, **head}, body)


def inner(kind: str, **head: object) -> Frame:
    """A frame from the evaluator to the candidate."""
    return frame("to-candidate", encode(frame(kind, **head)))


def scored(**changes: object) -> Frame:
    return frame("verdict", status="scored", metrics={**METRICS, **changes})


LOADED = (frame("inspected", nodes=20, lines=5), frame("loaded"))


def honest_candidate(received: Frame) -> Iterable[Answer]:
    return {"start": LOADED, "open": [frame("opened")]}.get(received.type, [frame("reply", columns=[])])


def generator(content: bytes = b"hidden points") -> Script:
    """An evaluator's container that is asked to generate."""

    def script(received: Frame) -> Iterable[Answer]:
        assert received.type == "generate"
        table, body = pack_blobs({"points.json": content + str(received.head["seed"]).encode()})
        yield frame("generated", body, blobs=table, last=True)

    return script


def evaluator(*answers: Answer) -> Script:
    """An evaluator's container that opens one copy of the program and then says this."""

    def script(received: Frame) -> Iterable[Answer]:
        return [inner("open", instances=1)] if received.type == "start" else answers

    return script


def candidate(*answers: Answer) -> Script:
    """A candidate that answers `start` with this and then keeps silent."""
    return lambda received: answers if received.type == "start" else []


def after_loading(*answers: Answer) -> Script:
    """A candidate that loads and answers everything else with this."""
    return lambda received: LOADED if received.type == "start" else answers


def evaluate(host: EvaluatorHost) -> Verdict:
    return host.evaluate(PROGRAM, run_id="run", attempt_id="i0-c01")
