"""A real run of AgenticEvolve with the offline engine, in miniature, and the model port's adapters around it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.tasks import TaskView
from orchestrator.domain.verdicts import Verdict
from orchestrator.llm.offline import OfflineModel
from orchestrator.llm.replay import ReplayModel
from orchestrator.methods.agentic_evolve import RunPorts, RunResult, Settings
from orchestrator.methods.agentic_evolve.run import run_agentic_evolve
from orchestrator.ports import AnalysisResult, LanguageModel
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.journal import SqliteJournal

TASK_FOLDER = Path(__file__).parents[3] / "tasks" / "online_bin_packing"
CONTEXT_TOKENS = 500_000
EFFORT = 0.02
Request = tuple[Conversation, tuple[ToolSpec, ...], Sampling]


def task_view() -> TaskView:
    return TaskView(
        name="online_bin_packing",
        description=(TASK_FOLDER / "description.md").read_text("utf-8"),
        initial=FileTree({"program.py": (TASK_FOLDER / "initial" / "program.py").read_bytes()}),
        entry="program.py",
        fitness="fitness",
        features=("ast_nodes", "deviation"),
        has_public_data=False,
    )


def packing() -> ModuleType:
    """The evaluator's own simulator."""
    path = TASK_FOLDER / "evaluator" / "packing.py"
    spec = importlib.util.spec_from_file_location("packing_for_offline", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def outcome(ending: Ending) -> Outcome:
    return Outcome(
        ending=ending,
        exit_code=0 if ending is Ending.OK else 1,
        wall_seconds=1.0,
        cpu_seconds=1.0,
        memory_peak_bytes=1,
        output=b"",
        output_truncated=False,
    )


@dataclass
class Bench:
    """Evaluator and analyst. Programs and scripts are the engine's own, so plain processes will do."""

    sequences: int = 20
    timeouts: int = 0
    """How many fitting analyses are cut off before they print a result."""
    known: Mapping[str, str] = field(default_factory=dict)
    """What analyses printed before, by the digest of their files: equal ones are not run again."""
    printed: dict[str, str] = field(default_factory=dict)
    """What analyses printed, likewise; islands run them at the same time."""
    scripts: list[str] = field(default_factory=list)

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:
        del run_id, attempt_id
        excess, deviation = self.measure(payload["program.py"].decode(), np.random.default_rng(12))
        metrics = {
            "fitness": 1 / (1 + excess),
            "excess_percent": 100 * excess,
            "ast_nodes": 0.5,
            "deviation": deviation,
        }
        return Verdict(split="hidden", metrics=metrics, failure=None, secret=False, outcome=outcome(Ending.OK))

    def measure(self, program: str, rng: np.random.Generator) -> tuple[float, float]:
        """Excess and deviation, every sequence with its own copy of the program."""
        simulator = packing()
        sequences = rng.integers(20, 101, size=(self.sequences, 120))
        copies: list[dict[str, Any]] = [{} for _ in sequences]
        for copy in copies:
            exec(compile(program, "program.py", "exec"), copy)  # noqa: S102 - the engine's own program

        def choose(items: Any, remaining: Any, lengths: Any) -> Any:
            parts = np.split(remaining, np.cumsum(lengths)[:-1])
            return np.concatenate([c["priority"](int(i), p) for c, i, p in zip(copies, items, parts, strict=True)])

        packed = simulator.pack(sequences, 150, choose)
        return packed.bins.sum() / simulator.lower_bounds(sequences, 150).sum() - 1, packed.deviation

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:
        del run_id, attempt_id
        script = files["analysis.py"].decode()
        self.scripts.append(script)
        if '"purpose": "fit"' in script and self.timeouts:
            self.timeouts -= 1
            return AnalysisResult(output=b"start 0: 6.4 %\n", omitted_bytes=0, outcome=outcome(Ending.TIMEOUT))
        if files.digest in self.known:
            output = self.known[files.digest].encode()
            return AnalysisResult(output=output, omitted_bytes=0, outcome=outcome(Ending.OK))
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            done = subprocess.run(
                [sys.executable, "-B", "-W", "error", "analysis.py"],
                cwd=folder,
                env={"OPENBLAS_NUM_THREADS": "1"},
                capture_output=True,
                check=False,
                timeout=300,
            )
        self.printed[files.digest] = (done.stdout + done.stderr).decode()
        ending = Ending.OK if done.returncode == 0 else Ending.ERROR
        return AnalysisResult(output=done.stdout + done.stderr, omitted_bytes=0, outcome=outcome(ending))


class PlainDisclosure:
    def verdict(self, verdict: Verdict) -> Mapping[str, Any]:
        return {"metrics": dict(verdict.metrics or {}), "failure": None}

    def analysis(self, result: AnalysisResult) -> str:
        return result.output.decode()


@dataclass
class Listening:
    """A model whose requests and replies are noted."""

    model: LanguageModel
    heard: list[tuple[Request, Reply]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def context_tokens(self) -> int:
        return self.model.context_tokens

    @property
    def is_repeatable(self) -> bool:
        return self.model.is_repeatable

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return self.model.count_tokens(conversation, tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        return self.model.worst_case(conversation, tools, sampling)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        reply = self.model.complete(conversation, tools, sampling)
        self.heard.append(((conversation, tuple(tools), sampling), reply))
        return reply


class ServedModel:
    """The port, answered by `server.py` in another process."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/"
        self._properties = self._ask("properties", {})

    @property
    def name(self) -> str:
        return str(self._properties["name"])

    @property
    def context_tokens(self) -> int:
        return int(self._properties["context_tokens"])

    @property
    def is_repeatable(self) -> bool:
        return bool(self._properties["is_repeatable"])

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return int(self._ask("count_tokens", _request(conversation, tools)))

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        return from_record(Usage, self._ask("worst_case", _request(conversation, tools, sampling)))

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        return from_record(Reply, self._ask("complete", _request(conversation, tools, sampling)))

    def _ask(self, what: str, request: dict[str, Any]) -> Any:
        body = json.dumps(request).encode()
        with urllib.request.urlopen(self._address + what, data=body, timeout=60) as response:  # noqa: S310 - our own server
            return json.loads(response.read())


def _request(conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling | None = None) -> dict[str, Any]:
    request = {"conversation": to_record(conversation), "tools": [to_record(tool) for tool in tools]}
    return request if sampling is None else request | {"sampling": to_record(sampling)}


def run(model: LanguageModel, bench: Bench, journal: SqliteJournal, **settings: Any) -> RunResult:
    """A small run; two islands, two commits each, a migration after the first."""
    chosen = Settings(**({"seed": 3, "islands": 2, "commits_per_island": 2, "migration_interval": 1} | settings))
    ports = RunPorts(
        model=model,
        evaluator=bench,
        analyst=bench if chosen.analysis else None,
        disclosure=PlainDisclosure(),
        journal=journal,
        ledger=Ledger(Budget(), per_island=Budget()),
    )
    return run_agentic_evolve(run_id="run-1", settings=chosen, task=task_view(), ports=ports, cancel=CancelToken())


def candidates(journal: SqliteJournal) -> dict[str, str]:
    """Digest of every candidate by its journal key."""
    return {key: record["payload"] for key, record in journal.records() if "/commit/" in key}


@dataclass(frozen=True)
class Recording:
    """A finished run."""

    journal: SqliteJournal
    heard: list[tuple[Request, Reply]]
    bench: Bench

    def repeated_bench(self) -> Bench:
        """A bench that does not run an analysis of this run again."""
        return Bench(known=self.bench.printed)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with SqliteJournal(tmp_path_factory.mktemp("recording") / "run.sqlite") as journal:
        model, bench = Listening(OfflineModel(effort=EFFORT)), Bench()
        run(model, bench, journal)
        yield Recording(journal=journal, heard=model.heard, bench=bench)


@pytest.fixture(scope="session")
def served() -> Iterator[ServedModel]:
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(CONTEXT_TOKENS), str(EFFORT)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield ServedModel(int(process.stdout.readline()))
        process.communicate(timeout=30)


@pytest.fixture(params=["offline", "served", "replay"])
def model(request: pytest.FixtureRequest, recording: Recording) -> LanguageModel:
    """Every adapter that can answer the recorded requests."""
    if request.param == "offline":
        return OfflineModel(effort=EFFORT)
    if request.param == "served":
        served: ServedModel = request.getfixturevalue("served")
        return served
    return ReplayModel(recording.journal, recorded="offline", context_tokens=CONTEXT_TOKENS)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "run.sqlite") as journal:
        yield journal


@pytest.fixture
def kit() -> ModuleType:
    """This module, for tests cannot import each other."""
    return sys.modules[__name__]
