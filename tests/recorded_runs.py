"""A finished run of AgenticEvolve on the shipped task, recorded as `run` records one, without engine or container."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.finals import measure_finals
from orchestrator.bootstrap.header import policy_record, run_header
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.domain.budgets import Budget
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.tasks import Task
from orchestrator.llm.offline import OfflineModel
from orchestrator.methods.agentic_evolve import RunPorts, Settings, run_agentic_evolve
from orchestrator.ports import AnalysisResult, Journal
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.runs import RunStore

DIGEST = "sha256:" + 64 * "0"
OUTCOME = Outcome(
    ending=Ending.OK,
    exit_code=0,
    wall_seconds=0.5,
    cpu_seconds=0.25,
    memory_peak_bytes=None,
    output=b"\x1b[31mwithheld",
    output_truncated=False,
)


class DigestEvaluator:
    """Scores a program by its digest; every fifth fails."""

    def __init__(self, split: str, data: str = "") -> None:
        self._split = split
        self._fingerprint = {"data": data} if data else {}

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:  # noqa: ARG002 - the port's
        """As the port has it."""
        number = int(payload.digest[7:15], 16)
        failure = Failure(ending=Ending.TIMEOUT) if number % 5 == 0 and attempt_id != "initial" else None
        excess = 1 + number % 1000 / 100
        metrics = {
            "fitness": 1 / (1 + excess / 100),
            "excess_percent": excess,
            "ast_nodes": number % 97 / 97,
            "deviation": number % 89 / 89,
        }
        return Verdict(
            split=self._split,
            metrics=None if failure else metrics,
            failure=failure,
            secret=False,
            outcome=OUTCOME,
            fingerprint=self._fingerprint,
        )


class QuietAnalyst:
    """Prints one line for every experiment."""

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:  # noqa: ARG002 - the port's
        """As the port has it."""
        return AnalysisResult(output=b"3 bins\n", omitted_bytes=0, outcome=OUTCOME)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """How runs of a home are made, and gone on with."""

    home: Path
    task: Task
    settings: Settings
    choices: Choices
    data: str = ""
    """Identifies the data of every split; empty: the verdicts do not say."""

    @classmethod
    def of(
        cls,
        home: Path,
        task: Task,
        *,
        analysis: bool = False,
        interval: int | None = None,
        commits: int = 3,
        data: str = "",
        **chosen: Any,
    ) -> Recording:
        """Two islands of a few commits each; `chosen` goes to the choices of a user, but for the seed."""
        settings = method_settings(
            task.spec, seed=chosen.pop("seed", 1), islands=2, commits_per_island=commits, analyses_per_commit=None,
            analysis=analysis, migration_interval=interval,
        )  # fmt: skip
        return cls(home=home, task=task, settings=settings, choices=Choices(task=task.name, **chosen), data=data)

    def made(self, *, measured: bool = True) -> str:
        """A whole run, measured on the split `fresh` at its end if that is wanted; its id."""
        run_id, journal = RunStore(self.home).create()
        with journal:
            policy = find_policy(find_places(self.home, None), "default")
            in_force = policy_record(policy, lambda _: DIGEST)
            journal.put("run", run_header(self.settings, self.task, OfflineModel(), self.choices, in_force))
            self.go_on(run_id, journal)
            if measured:
                measure_finals(journal, run_id, ["fresh"], self._evaluator)
        return run_id

    def _evaluator(self, split: str) -> DigestEvaluator:
        return DigestEvaluator(split, self.data)

    def go_on(self, run_id: str, journal: Journal) -> None:
        """Search from where the journal ends."""
        policy = find_policy(find_places(self.home, None), "default")
        ports = RunPorts(
            model=OfflineModel(),
            evaluator=self._evaluator("hidden"),
            analyst=QuietAnalyst() if self.settings.analysis else None,
            disclosure=TaskDisclosure(policy.disclosure, self.task),
            journal=journal,
            ledger=Ledger(Budget(), per_island=self.choices.budget_per_island(self.settings.islands)),
        )
        run_agentic_evolve(
            run_id=run_id, settings=self.settings, task=self.task.view, ports=ports, cancel=CancelToken()
        )
