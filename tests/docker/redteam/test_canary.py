"""S20: a random string in hidden data and evaluator code is nowhere but in the evaluator's own volume."""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hostility import RUN, hostile, with_sequences

from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolCall,
    ToolSpec,
    Usage,
)
from orchestrator.domain.exchanges import Exchange, Wrapping
from orchestrator.domain.frames import Frame, encode
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.domain.records import to_record
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.methods.agentic_evolve import RunPorts, Settings, run_agentic_evolve
from orchestrator.ports import Session, SessionRequest
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.adapter import DockerSandbox
from orchestrator.sandbox.engine import Engine
from orchestrator.storage.journal import SqliteJournal
from tests.exchanging import exchange_in_turns

pytestmark = pytest.mark.docker

PROJECT = Path(__file__).parents[3]
SEARCH = """
import os
for root, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(root, f) != "/sys"]
    for file in files:
        try:
            with open(os.open(os.path.join(root, file), os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as handle:
                text = handle.read(1 << 16) or b""
        except OSError:
            continue
        if b"canary-" in text and b"SEARCH" not in text:
            print(os.path.join(root, file), text)
print(os.environ)
"""
HONEST = "def priority(item, bins):\n    return item - bins * 1.0\n"


@dataclass
class Recorded:
    """Everything that crossed a boundary, as bytes, by whom it reached or came from."""

    sent: dict[str, list[bytes]] = field(default_factory=dict)
    """To containers, by purpose: whole frames."""
    settings: dict[str, list[bytes]] = field(default_factory=dict)
    """Of containers, by purpose: what the engine says of them and of their images."""
    shown: list[bytes] = field(default_factory=list)
    """To the model."""
    came: dict[str, list[bytes]] = field(default_factory=dict)
    """From containers, by purpose: whole frames and what was printed."""

    def has(self, parts: Sequence[bytes], canary: str) -> bool:
        return any(canary.encode() in part for part in parts)


class RecordingSession:
    """`ports.Session` with a witness."""

    def __init__(self, session: Session, purpose: str, recorded: Recorded) -> None:
        self._session = session
        self._sent = recorded.sent.setdefault(purpose, [])
        self._came = recorded.came.setdefault(purpose, [])

    @property
    def image_digest(self) -> str:
        return self._session.image_digest

    def send(self, frame: Frame) -> None:
        self._sent.append(encode(frame))
        self._session.send(frame)

    def receive(self) -> Frame | None:
        frame = self._session.receive()
        if frame is not None:
            self._came.append(encode(frame))
        return frame

    def exchange(self, answerer: Session, wrapping: Wrapping, clock: Callable[[], float]) -> Exchange:
        return exchange_in_turns(self, answerer, wrapping, clock)

    def cap_cpu(self, total_seconds: float) -> None:
        self._session.cap_cpu(total_seconds)

    def finish(self, claim: Ending = Ending.OK) -> Outcome:
        outcome = self._session.finish(claim)
        self._came.append(outcome.output)
        return outcome

    def cancel(self) -> None:
        self._session.cancel()


class RecordingSandbox:
    """`ports.Sandbox` with a witness; what is imported is recorded as sent to `import`."""

    def __init__(self, sandbox: DockerSandbox, engine: Engine, recorded: Recorded) -> None:
        self._sandbox = sandbox
        self._engine = engine
        self._recorded = recorded

    @property
    def policy(self) -> Policy:
        return self._sandbox.policy

    @contextmanager
    def session(self, request: SessionRequest) -> Iterator[RecordingSession]:
        purpose = request.purpose.value
        with self._sandbox.session(request) as session:
            wanted = {"evolvarium.run": request.run_id, "evolvarium.purpose": purpose}
            described = [self._engine.inspect(str(one["Id"])) for one in self._engine.containers(wanted)]
            image = self._engine.call("history", lambda client: client.history(session.image_digest))
            self._recorded.settings.setdefault(purpose, []).append(json.dumps([described, image]).encode())
            yield RecordingSession(session, purpose, self._recorded)

    def import_volume(self, files: Mapping[str, bytes], *, run_id: str) -> str:
        self._recorded.sent.setdefault("import", []).extend(files.values())
        return self._sandbox.import_volume(files, run_id=run_id)

    def warm(self, request: SessionRequest, count: int) -> None:
        self._sandbox.warm(request, count)

    def live_containers(self, run_id: str) -> int:
        return self._sandbox.live_containers(run_id)

    def close(self) -> None:
        """The sandbox belongs to somebody else."""


class ScriptedModel:
    """`ports.LanguageModel`: a thief; analyses and commits programs that read all they can."""

    name = "scripted"
    context_tokens = 200_000
    is_repeatable = True

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._lock = threading.Lock()
        self._turns = [
            ("write", {"file": "analysis.py", "content": SEARCH}),
            ("run_analysis", {}),
            ("write", {"file": "program.py", "content": hostile(SEARCH)["program.py"].decode()}),
            ("commit", {"description": "reads everything"}),
            ("write", {"file": "program.py", "content": HONEST + "raise ValueError(open)\n"}),
            ("commit", {"description": "fails"}),
            ("read_commit", {"id": "i0-c01"}),
        ]

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return 100 + len(json.dumps(to_record(conversation))) // 4 + len(tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        return Usage(
            input_tokens=self.count_tokens(conversation, tools), output_tokens=sampling.max_output_tokens, usd=None
        )

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        del sampling
        with self._lock:
            self._recorded.shown.append(
                json.dumps([to_record(conversation), [to_record(one) for one in tools]]).encode()
            )
            calls = (ToolCall(id="c", name=self._turns[0][0], arguments=self._turns[0][1]),) if self._turns else ()
            self._turns = self._turns[1:]
        return Reply(
            message=AssistantMessage(text="" if calls else "done", tool_calls=calls),
            usage=Usage(input_tokens=1, output_tokens=1, usd=None),
            stop=StopReason.TOOLS if calls else StopReason.END,
        )


def seeded(folder: Path, canary: str) -> Task:
    """Online bin packing whose code and data hold the canary, and which is scored only if the evaluator finds it."""
    package = shutil.copytree(PROJECT / "tasks" / "online_bin_packing", folder / "online_bin_packing")
    code = package / "evaluator" / "evaluate.py"
    text = code.read_text()
    text = text.replace(
        '    return {"sequences.json": json.dumps(sizes.tolist()).encode()}',
        f'    return {{"sequences.json": json.dumps(sizes.tolist()).encode(), "canary.txt": b"{canary}"}}',
    )
    text = text.replace(
        "    sequences = load(data, split)\n",
        f'    assert (data / "canary.txt").read_text() == "{canary}"\n    sequences = load(data, split)\n',
    )
    assert text.count(canary) == 2
    code.write_text(text)
    return load_task(package)


@pytest.mark.probe(
    "S20", "a canary in hidden data: frames, settings, images, analyses and conversations of a whole run"
)
def test_the_canary_is_in_the_evaluators_volume_and_nowhere_else(
    sandbox: DockerSandbox, engine: Engine, tmp_path: Path, expected: Mapping[str, Any]
) -> None:
    canary = f"canary-{secrets.token_hex(16)}"
    recorded = Recorded()
    task = with_sequences(seeded(tmp_path, canary), expected["sequences"])
    box = RecordingSandbox(sandbox, engine, recorded)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = SplitStore(home=home, seeds=SeedSource.installation(home))
    host = EvaluatorHost(box, task, "hidden", store)
    with SqliteJournal(tmp_path / "run.sqlite") as journal:
        run_agentic_evolve(
            run_id=RUN,
            settings=Settings(islands=1, commits_per_island=2, requests_per_island=12, idle_turns=1),
            task=task.view,
            ports=RunPorts(
                model=ScriptedModel(recorded),
                evaluator=host,
                analyst=SandboxAnalyst(box, task),
                disclosure=TaskDisclosure(sandbox.policy.disclosure, task),
                journal=journal,
                ledger=Ledger(Budget()),
            ),
            cancel=CancelToken(),
        )
        verdicts = [record["verdict"] for _, record in journal.records("i0/commit")]
    assert len(verdicts) == 2
    assert [verdict for verdict in verdicts if verdict["metrics"]], (
        verdicts
    )  # the evaluator found the canary in its volume
    # Controls: the same searches find it where it belongs, and find what the candidates did get.
    assert recorded.has(recorded.sent["import"], canary)
    assert recorded.has(recorded.came["evaluator"], canary)  # the generated files, on their way to the volume
    assert recorded.has(recorded.sent["candidate"], "SOURCE")
    assert recorded.has(recorded.sent["analysis"], "canary-")
    assert recorded.has(recorded.shown, "fails")
    for purpose in (Purpose.CANDIDATE.value, Purpose.ANALYSIS.value):
        assert len(recorded.settings[purpose]) >= 1
        for parts in (recorded.sent[purpose], recorded.settings[purpose], recorded.came[purpose]):
            assert not recorded.has(parts, canary), purpose
            assert not recorded.has(parts, canary.removeprefix("canary-")), purpose
    assert not recorded.has(recorded.shown, canary.removeprefix("canary-"))
