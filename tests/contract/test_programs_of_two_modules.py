"""A search whose program has two modules: what the agent may touch, what is evaluated, and what counts as the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.files import write_tree
from orchestrator.domain.budgets import Budget
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
)
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Disclosure
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.llm.offline import OfflineModel
from orchestrator.methods.agentic_evolve import History, RunPorts, Settings, read_history, run_agentic_evolve
from orchestrator.ports import AnalysisResult
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.runs import RunStore

OUTCOME = Outcome(
    ending=Ending.OK, exit_code=0, wall_seconds=1.0, cpu_seconds=1.0, memory_peak_bytes=None, output=b"",
    output_truncated=False,
)  # fmt: skip
AT = (0.25, 0.5, 1.0, 1.5)
CALLS = f"from program import estimate; print([float(estimate(x)) for x in {AT}])"


class Processes:
    """Runs programs in processes of their own, in folders with all their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, files: FileTree, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        folder = self._folder / name
        if not folder.exists():
            write_tree(files, folder, force=False)
        return subprocess.run(
            [sys.executable, "-B", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:  # noqa: ARG002 - the port's
        """Squared distance from 1, on a few points."""
        done = self.run(payload, f"evaluated-{attempt_id}", "-c", CALLS)
        if done.returncode:
            failure = Failure(ending=Ending.ERROR, exception="Exception")
            return Verdict(split="hidden", metrics=None, failure=failure, secret=True, outcome=OUTCOME)
        error = sum((value - 1) ** 2 for value in json.loads(done.stdout))
        metrics = {"fitness": 1 / (1 + error), "error": error, "ast_nodes": 0.5, "bias": 0.5}
        return Verdict(split="hidden", metrics=metrics, failure=None, secret=True, outcome=OUTCOME)

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:  # noqa: ARG002 - the port's
        """`analysis.py` beside both modules."""
        done = self.run(files, f"analysed-{attempt_id}", "analysis.py")
        return AnalysisResult(output=done.stdout.encode(), omitted_bytes=0, outcome=OUTCOME)


class Scripted(OfflineModel):
    """Says what it was given, a message for each request, and keeps what it was asked."""

    def __init__(self, *messages: AssistantMessage) -> None:
        super().__init__()
        self._messages = list(messages)
        self.asked: list[Conversation] = []
        self.tools: Sequence[ToolSpec] = ()

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:  # noqa: ARG002
        """The next message; then nothing more."""
        self.asked.append(conversation)
        self.tools = tools
        message = self._messages.pop(0) if self._messages else AssistantMessage(text="I end my turn.")
        return Reply(message=message, usage=Usage(), stop=StopReason.TOOLS if message.tool_calls else StopReason.END)

    @property
    def results(self) -> list[str]:
        """Of all tool calls."""
        answers = [message for message in self.asked[-1].messages if isinstance(message, ToolMessage)]
        return [result.text for message in answers for result in message.results]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(new_task(tmp_path, "two", two_modules=True))


def says(*calls: tuple[str, dict[str, str]]) -> AssistantMessage:
    return AssistantMessage(
        text="",
        tool_calls=tuple(
            ToolCall(id=f"c{number}", name=name, arguments=arguments) for number, (name, arguments) in enumerate(calls)
        ),
    )


def searched(task: Task, folder: Path, model: OfflineModel, **settings: Any) -> History:
    _, journal = RunStore(folder).create()
    with journal:
        processes = Processes(folder / "processes")
        ports = RunPorts(
            model=model,
            evaluator=processes,
            analyst=processes if settings.get("analysis", True) else None,
            disclosure=TaskDisclosure(Disclosure(), task),
            journal=journal,
            ledger=Ledger(Budget(), per_island=Budget()),
        )
        run_agentic_evolve(
            run_id="r",
            settings=Settings(islands=1, idle_turns=1, **settings),
            task=task.view,
            ports=ports,
            cancel=CancelToken(),
        )
        return read_history(journal)


def test_an_agent_edits_the_second_module_and_is_scored_for_it(task: Task, tmp_path: Path) -> None:
    edit = ("edit", {"file": "model.py", "old": "START = 0.2\n", "new": "START = 1.0\n"})
    undo = ("edit", {"file": "model.py", "old": "START = 1.0\n", "new": "START = 0.2\n"})
    model = Scripted(
        says(("read", {"file": "model.py"}), edit, ("commit", {"description": "higher"})),
        says(undo, ("commit", {"description": "as it was"})),
        says(("read_commit", {"id": "i0-c01"}), ("write", {"file": "other.py", "content": ""})),
    )
    history = searched(task, tmp_path / "home", model, commits_per_island=5)
    first, again = history.commits
    assert first.candidate.payload["program.py"] == task.initial["program.py"]
    assert b"START = 1.0" in first.candidate.payload["model.py"]
    assert history.best is first
    assert history.initial is not None
    assert first.verdict.metrics["fitness"] > history.initial.verdict.metrics["fitness"]  # type: ignore[index]
    assert again.duplicate_of == "initial", "a program is the same only if all its files are"
    read, edited, _, _, _, shown, refused = model.results
    assert read == task.initial["model.py"].decode()
    assert json.loads(edited)["file"] == "model.py"
    for file, content in first.candidate.payload.items():
        assert f"{file}:\n```python\n{content.decode()}```" in shown
    assert "there is no file 'other.py'; the files are model.py, program.py, analysis.py" in refused


def test_an_agent_is_told_of_all_modules(task: Task, tmp_path: Path) -> None:
    model = Scripted()
    searched(task, tmp_path / "home", model, commits_per_island=1)
    system, first = model.asked[0].system, model.asked[0].messages[0].text  # type: ignore[union-attr]
    assert "- model.py, program.py: the candidate that evolves" in system
    assert "The evaluator calls program.py, which may import the others" in system
    assert "write each of its files to continue from it" in system
    for file, content in task.initial.items():
        assert f"{file}:\n```python\n{content.decode()}```" in first
    files = [
        tool.parameters["properties"]["file"]["enum"] for tool in model.tools if tool.name in {"read", "write", "edit"}
    ]
    assert files == [["model.py", "program.py", "analysis.py"]] * 3


@pytest.mark.parametrize("analysis", [True, False], ids=["analysis", "no-analysis"])
def test_the_offline_engine_searches_in_both_modules(task: Task, tmp_path: Path, *, analysis: bool) -> None:
    history = searched(task, tmp_path / "home", OfflineModel(), commits_per_island=6, analysis=analysis)
    assert len(history.commits) == 6
    assert all(set(entry.candidate.payload) == set(task.initial) for entry in history.commits)
    assert any(entry.candidate.payload["model.py"] != task.initial["model.py"] for entry in history.commits)
    assert history.initial is not None
    assert history.best is not None
    assert history.best is not history.initial
    assert all(" becomes " in entry.candidate.description for entry in history.commits)
    if analysis:
        assert history.total.analyses >= len(history.commits)


def test_its_successors_know_both_modules(task: Task, tmp_path: Path) -> None:
    tight = OfflineModel(context_tokens=9000)
    history = searched(task, tmp_path / "home", tight, commits_per_island=12, max_output_tokens=2000)
    assert len(history.commits) == 12
    assert all(b"def line" in entry.candidate.payload["model.py"] for entry in history.commits)
    assert all(b"from model" in entry.candidate.payload["program.py"] for entry in history.commits)


def test_the_winner_is_written_as_a_folder(task: Task, tmp_path: Path) -> None:
    history = searched(task, tmp_path / "home", OfflineModel(), commits_per_island=1, analysis=False)
    assert history.best is not None
    target = write_tree(history.best.candidate.payload, tmp_path / "winner", force=False)
    assert {file.name for file in target.iterdir()} == {"model.py", "program.py"}
