"""One configuration on one question: every method on the same first round, judged when all of them have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from orchestrator.bootstrap.ledger import RememberingLedger
from orchestrator.bootstrap.sql.blind_journal import BlindJournal
from orchestrator.bootstrap.sql.configurations import Configuration, shared_replies
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.databases import OpenDatabases, Place
from orchestrator.bootstrap.sql.outcomes import (
    EVOLUTIONS,
    CallRecord,
    EvolutionRecord,
    Method,
    Outcome,
    PredictionRecord,
    Right,
    SpentRecord,
    outcome_of,
)
from orchestrator.bootstrap.sql.prompts import SchemaTexts
from orchestrator.domain.sql import Question
from orchestrator.errors import BudgetExhausted, Cancelled
from orchestrator.evaluation.databases import SandboxDatabase
from orchestrator.evaluation.sql_judge import Asked, Flag, Judged, Metric, SqlJudge
from orchestrator.methods.evosql import (
    Candidate,
    FirstRound,
    Progress,
    QuestionPorts,
    QuestionView,
    Solution,
    best_of_k,
    elicit,
    majority_answer,
    self_evolve,
    solve,
)
from orchestrator.methods.evosql.calls import Call
from orchestrator.ports import Database, Journal
from orchestrator.runtime.workers import CancelToken, Worker, WorkerGroup
from orchestrator.storage.scoped_journal import ScopedJournal

_STOP_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class Follow:
    """How the work is followed and stopped."""

    token: CancelToken
    on_outcome: Callable[[Outcome], object] = lambda _: None
    """Told a question's outcome, in the thread that worked on it."""
    on_event: Callable[[Progress], object] = lambda _: None


def evaluate(
    questions: Sequence[Question],
    configuration: Configuration,
    *,
    place: Place,
    texts: Callable[[SandboxDatabase], SchemaTexts],
    judge: SqlJudge,
    journal: Journal,
    follow: Follow,
) -> list[Outcome]:
    """What one configuration comes to on questions that can be evaluated, in their order: see `evaluate_all`."""
    evaluate_all(questions, [configuration], place=place, texts=texts, judge=judge, journal=journal, follow=follow)
    outcomes = (recorded(journal, question, configuration) for question in questions)
    return [outcome for outcome in outcomes if outcome is not None]


def evaluate_all(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    *,
    place: Place,
    texts: Callable[[SandboxDatabase], SchemaTexts],
    judge: SqlJudge,
    journal: Journal,
    follow: Follow,
) -> None:
    """Configurations on questions that can be evaluated; what is recorded is not done again.

    Several questions at once, and of each one configuration after the other, while its database is open.

    Args:
        questions: Those of one database best stand together.
        configurations: What is measured.
        place: Of their databases, and how many questions are worked on at once.
        texts: Prepares the schema of a database.
        judge: Knows the gold results of these questions.
        journal: Of the run.
        follow: Of the caller.

    Raises:
        EvolvariumError: As a model request and as `ports.Database`; what was recorded stays.
    """
    open_ones = [q for q in questions if any(recorded(journal, q, one) is None for one in configurations)]
    started: dict[str, Worker[None]] = {}
    with OpenDatabases(place, open_ones, texts) as databases:
        group = WorkerGroup("questions", limit=place.workers, token=follow.token, stop_seconds=_STOP_SECONDS)
        inner = replace(follow, token=group.token)

        def job(question: Question) -> Callable[[], None]:
            return lambda: _answer(question, configurations, databases, judge, journal, inner)

        with group, suppress(Cancelled):  # where one has failed before all are there, the group raises its error
            for question in open_ones:
                started[question.id] = group.spawn(question.id, job(question))
    for worker in started.values():
        worker.result()


def _answer(
    question: Question,
    configurations: Sequence[Configuration],
    databases: OpenDatabases,
    judge: SqlJudge,
    journal: Journal,
    follow: Follow,
) -> None:
    with databases.use(question.database) as (database, texts):
        view = view_of(question)
        schema = texts.of(view)
        for configuration in shared_replies(configurations):
            if recorded(journal, question, configuration) is None:
                scoped = ScopedJournal(journal, configuration.scope)
                outcome = _Task(configuration, view, schema, database, scoped, follow).outcome(question, judge)
                scoped.put(view.key + configuration.record, outcome.model_dump(mode="json"))
                follow.on_outcome(outcome)


def recorded(journal: Journal, question: Question, configuration: Configuration) -> Outcome | None:
    """What a configuration came to on a question; None: nothing yet.

    Raises:
        RunStateError: The record is damaged.
    """
    return outcome_of(journal, configuration.scope + view_of(question).key + configuration.record)


class _Task:
    """One question under one configuration."""

    def __init__(
        self,
        configuration: Configuration,
        question: QuestionView,
        schema: str,
        database: Database,
        journal: Journal,
        follow: Follow,
    ) -> None:
        self._configuration = configuration
        self._question = question
        self._schema = schema
        self._ledger = RememberingLedger(configuration.budget)
        self._ports = QuestionPorts(
            generator=configuration.generator,
            critic=configuration.critic,
            database=database,
            journal=BlindJournal(journal, configuration.record),
            ledger=self._ledger,
            cancel=follow.token,
            on_event=follow.on_event,
        )

    def outcome(self, asked: Question, judge: SqlJudge) -> Outcome:
        """Answer, then judge."""
        solved = self._solved()
        results = _Results(asked, self._question.key, judge, solved)
        return Outcome(
            id=asked.id,
            database=asked.database,
            first=results.rights(solved.first),
            first_calls=_calls(solved.first_calls),
            choice_calls=_calls(solved.choice_calls),
            evolutions={
                method: EvolutionRecord(
                    ending=solution.ending.value,
                    answers=results.rights([round_.answer for round_ in solution.rounds]),
                    passed=tuple(
                        results.any_right([entry.content for entry in round_.assessment.top])
                        for round_ in solution.rounds
                    ),
                    later=results.rights([entry.content for entry in solution.entries if entry.round > 0]),
                    unreadable=sum(round_.unreadable for round_ in solution.rounds),
                    calls=_calls(solution.calls),
                )
                for method, solution in solved.solutions.items()
            },
            answers={method: results.rights([answer])[0] for method, answer in solved.answers.items()},
            predictions={method: results.prediction(answer) for method, answer in solved.answers.items()},
            flags=results.flags(list(solved.answers.values())),
            spent=self._spent(),
        )

    def _solved(self) -> _Solved:
        """Every method as far as the budget goes; what it refuses is refused in every process alike."""
        methods = self._configuration.methods
        solved = _Solved()
        try:
            first = elicit(self._question, self._schema, settings=self._configuration.settings, ports=self._ports)
        except BudgetExhausted:
            return solved
        solved.first, solved.first_calls = first.candidates, first.calls
        if Method.MAJORITY in methods:
            solved.answers[Method.MAJORITY] = majority_answer(first)
        for method in EVOLUTIONS:
            if method in methods:
                solved.solutions[method] = self._evolved(method, first)
                solved.answers[method] = solved.solutions[method].answer
        if Method.BEST_OF_K in methods:
            self._choose(solved)
        return solved

    def _evolved(self, method: Method, first: FirstRound) -> Solution:
        evolve = solve if method is Method.EVOSQL else self_evolve
        return evolve(
            self._question,
            self._schema,
            settings=self._configuration.settings,
            ports=self._ports,
            first=first,
            name=self._configuration.names[method],
        )

    def _choose(self, solved: _Solved) -> None:
        solution = solved.solutions[Method.EVOSQL]
        with suppress(BudgetExhausted):
            choice = best_of_k(self._schema, solution, settings=self._configuration.settings, ports=self._ports)
            solved.answers[Method.BEST_OF_K] = choice.answer
            solved.choice_calls = choice.calls

    def _spent(self) -> SpentRecord:
        snapshot = self._ledger.snapshot()
        usage = snapshot.spent.usage
        return SpentRecord(
            requests=snapshot.spent.requests,
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            usd=None if usage.usd is None else str(usage.usd),
            lost=snapshot.lost_count,
        )


@dataclass
class _Solved:
    """What the methods came to, as far as they came."""

    first: Sequence[Candidate] = ()
    first_calls: Sequence[Call] = ()
    choice_calls: Sequence[Call] = ()
    solutions: dict[Method, Solution] = field(default_factory=dict)
    answers: dict[Method, Candidate] = field(default_factory=dict)


class _Results:
    """Everything a question's methods proposed, judged once."""

    def __init__(self, asked: Question, key: str, judge: SqlJudge, solved: _Solved) -> None:
        proposed = [*solved.first, *solved.answers.values()]
        for solution in solved.solutions.values():
            proposed += [entry.content for entry in solution.entries]
            proposed += [round_.answer for round_ in solution.rounds]
        digests = list(dict.fromkeys(candidate.execution.result for candidate in proposed))
        judged = judge.judge(Asked(key=key, gold=asked.gold), digests)
        self._judged: dict[str | None, Judged] = dict(zip(digests, judged, strict=True))

    def rights(self, candidates: Sequence[Candidate]) -> tuple[Right, ...]:
        return tuple(self._judged[candidate.execution.result].right for candidate in candidates)

    def any_right(self, candidates: Sequence[Candidate]) -> Right:
        return frozenset[Metric]().union(*self.rights(candidates))

    def prediction(self, answer: Candidate) -> PredictionRecord:
        result = answer.execution.result
        return PredictionRecord(sql=answer.sql, result=result, flags=self._judged[result].flags)

    def flags(self, answers: Sequence[Candidate]) -> frozenset[Flag]:
        """Of the answers that are right in anything."""
        found = [self._judged[answer.execution.result] for answer in answers]
        return frozenset[Flag]().union(*(judged.flags for judged in found if judged.right))


def _calls(calls: Sequence[Call]) -> tuple[CallRecord, ...]:
    return tuple(map(CallRecord.of, calls))
