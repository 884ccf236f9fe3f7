"""Scores packages: their tools analyse databases, questions are answered and judged, many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Generic, TypeVar

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.errors import BudgetExhausted, Cancelled
from orchestrator.methods.robophd.answering import (
    Analysis,
    Answer,
    AnswerContext,
    Briefing,
    ToolReport,
    analyse,
    answer,
    brief_on,
    run_tool,
)
from orchestrator.methods.robophd.answering.requests import request_key
from orchestrator.methods.robophd.events import Event, Progress
from orchestrator.methods.robophd.ports import Judged, RunPorts
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.ports import Database
from orchestrator.runtime.workers import Worker, WorkerGroup
from orchestrator.search.replay import Steps

T = TypeVar("T")
Sample = Mapping[str, tuple[QuestionView, ...]]
"""Database to the questions that are asked of it."""
_STOP_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One package on one sample."""

    sample: Sample
    briefings: Mapping[str, Briefing]
    """By database, without their texts."""
    analyses: Mapping[str, Analysis]
    """Likewise."""
    answers: Mapping[str, Answer]
    """By question id."""
    judged: Mapping[str, Judged]
    """Likewise."""

    @property
    def right(self) -> frozenset[str]:
        """The questions that were answered right."""
        return frozenset(question for question, judged in self.judged.items() if judged.is_right)

    @property
    def total(self) -> int:
        """How many were asked."""
        return len(self.judged)

    def right_of(self, database: str) -> int:
        """How many of one database's questions were answered right."""
        return sum(self.judged[question.id].is_right for question in self.sample[database])

    @property
    def analyses_record(self) -> dict[str, Any]:
        """What the journal keeps of the analyses, by database: who made it, why not the tool, and how long it is."""
        return {
            name: {
                "source": analysis.source.value,
                "failure": None if analysis.tool.failure is None else analysis.tool.failure.value,
                "tokens": self.briefings[name].analysis_tokens,
                "over_budget": self.briefings[name].is_over_budget,
            }
            for name, analysis in self.analyses.items()
        }


class _Stage(IntEnum):
    """How much of a job is recorded."""

    ENDED = 0
    BEGUN = 1
    NEW = 2


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    work: Callable[[], T]
    end: str
    """Key of what is recorded last."""
    beginning: str
    """Key of what is recorded first."""

    def stage(self, steps: Steps) -> _Stage:
        if steps.recorded(self.end) is not None:
            return _Stage.ENDED
        return _Stage.NEW if steps.recorded(self.beginning) is None else _Stage.BEGUN


class Scorer:
    """Scores packages for one run and one answer model. What is recorded is not done again. Thread-safe."""

    def __init__(self, context: AnswerContext, ports: RunPorts, *, reads_only: bool = False) -> None:
        """Nothing is opened yet.

        Args:
            context: Of the answer model.
            ports: Of the run.
            reads_only: Whether nothing is to be done that is not recorded, since the run has ended, or is replayed.
        """
        self._context = context
        self._ports = ports
        self._reads_only = reads_only
        self._telling = threading.Lock()  # one event at a time reaches `on_event`

    def tell(self, progress: Progress) -> None:
        """Report an event; the callback is never called from two threads at once."""
        with self._telling:
            self._ports.on_event(progress)

    def try_tool(self, package: AgentPackage, database: str) -> tuple[ToolReport, str | None]:
        """Run a package's tool on a database, without anything that makes up for its failure.

        Returns:
            How it did, and what it gave; None: it failed.

        Raises:
            EvolvariumError: As `answering.run_tool`.
        """
        with self._ports.databases.open(database) as opened:
            report = run_tool(self._context, package, opened, tools=self._ports.tools)
        text = None if report.text is None else self._ports.journal.get_blob(report.text).decode("utf-8")
        return report, text

    def score(self, label: str, package: AgentPackage, sample: Sample, *, iteration: int) -> Scored:
        """Analyse, answer and judge.

        Args:
            label: Names the package in events.
            package: Untrusted.
            sample: The questions.
            iteration: For events; 0: none.

        Raises:
            BudgetExhausted: A ceiling does not cover the next request.
            EvolvariumError: As `answering.analyse` and `answering.answer`; what was recorded stays.
        """
        with ExitStack() as stack:
            opened = {name: stack.enter_context(self._ports.databases.open(name)) for name in sample}
            analyses = self._analyses(label, package, opened, iteration)
            briefings = {
                name: brief_on(self._context, package, database, analyses[name]) for name, database in opened.items()
            }
            answers = self._answers(label, sample, briefings, opened, iteration)
        judged = {id_: self._ports.judge.judge(id_, one.result) for id_, one in answers.items()}
        # A run keeps all its contests, so the texts, which may be megabytes, are let go of.
        return Scored(
            sample=sample,
            briefings={
                name: replace(one, analysis=None, instructions="", system="") for name, one in briefings.items()
            },
            analyses={name: replace(one, text=None) for name, one in analyses.items()},
            answers=answers,
            judged=judged,
        )

    def _analyses(
        self, label: str, package: AgentPackage, opened: Mapping[str, Database], iteration: int
    ) -> dict[str, Analysis]:
        def analysed(database: Database) -> Analysis:
            analysis = analyse(self._context, package, database, tools=self._ports.tools)
            note = "" if analysis.tool.failure is None else analysis.tool.failure.value
            self.tell(
                Progress(event=Event.ANALYSIS, iteration=iteration, subject=f"{label}/{database.name}", note=note)
            )
            return analysis

        keys, digest = self._context.keys, package.digest
        return self._all(
            {
                name: _Job(_bound(analysed, database), keys.hybrid(digest, name), keys.tool(digest, name))
                for name, database in opened.items()
            }
        )

    def _answers(
        self,
        label: str,
        sample: Sample,
        briefings: Mapping[str, Briefing],
        opened: Mapping[str, Database],
        iteration: int,
    ) -> dict[str, Answer]:
        total = sum(map(len, sample.values()))
        done = 0

        def answered(question: QuestionView) -> Answer:
            nonlocal done
            database = question.database
            found = answer(self._context, question, briefings[database], database=opened[database])
            with self._telling:
                done += 1
                self._ports.on_event(
                    Progress(event=Event.ANSWER, iteration=iteration, subject=label, done=done, total=total)
                )
            return found

        jobs = {}
        for question in _interleaved(sample):
            key = self._context.keys.answer(briefings[question.database].package, question.id)
            jobs[question.id] = _Job(_bound(answered, question), key, request_key(key, 1))
        return self._all(jobs)

    def _all(self, jobs: Mapping[str, _Job[T]]) -> dict[str, T]:
        """What the jobs give, by their names; several at once.

        What is recorded comes first, so that it is charged before anything new is asked for.

        Raises:
            BaseException: What a job raised; the others are stopped.
        """
        steps = self._context.steps
        ordered = {name: jobs[name] for name in sorted(jobs, key=lambda name: jobs[name].stage(steps))}
        found = self._read(ordered) if self._reads_only else self._worked(ordered)
        return {name: found[name] for name in jobs}

    def _worked(self, jobs: Mapping[str, _Job[T]]) -> dict[str, T]:
        workers: dict[str, Worker[T]] = {}
        ports = self._ports
        group = WorkerGroup("packages", limit=ports.workers, token=ports.cancel, stop_seconds=_STOP_SECONDS)
        try:
            with group, suppress(Cancelled):  # where one has failed before all are there, the group raises its error
                for name, job in jobs.items():
                    workers[name] = group.spawn(name, job.work)
        except BudgetExhausted:
            # That ends a run, so it counts only where all others came as far as their budget, too.
            for worker in workers.values():
                if worker.error is not None and not isinstance(worker.error, BudgetExhausted):
                    raise worker.error from None
            raise
        return {name: worker.result() for name, worker in workers.items()}

    def _read(self, jobs: Mapping[str, _Job[T]]) -> dict[str, T]:
        """What the jobs give, one after the other; where budget ended some of them, the others are charged as well.

        Raises:
            BaseException: What a job raised.
        """
        found: dict[str, T] = {}
        spent: BudgetExhausted | None = None
        for name, job in jobs.items():
            if spent is not None and job.stage(self._context.steps) is _Stage.NEW:
                break
            try:
                found[name] = job.work()
            except BudgetExhausted as error:
                spent = spent or error
        if spent is not None:
            raise spent
        return found


def _interleaved(sample: Sample) -> list[QuestionView]:
    """The questions of all databases in turn, so that threads seldom wait for the same container."""
    longest = max(map(len, sample.values()), default=0)
    return [questions[place] for place in range(longest) for questions in sample.values() if place < len(questions)]


S = TypeVar("S")


def _bound(job: Callable[[S], T], argument: S) -> Callable[[], T]:
    return lambda: job(argument)
