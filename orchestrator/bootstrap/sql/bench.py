"""`sql bench`: a data set measured from its gold queries to the comparison of digests, resumable at any moment.

First every gold query runs, in containers of its own, and again like a prediction; only what can be evaluated is then
answered by the methods. The figures are computed from the journal alone (`results.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.bootstrap.bench import open_bench
from orchestrator.bootstrap.header import policy_record
from orchestrator.bootstrap.models import find_model
from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.configurations import Configuration
from orchestrator.bootstrap.sql.data import BenchData, load_data, view_of
from orchestrator.bootstrap.sql.databases import Place, compare_digests, examine, for_each
from orchestrator.bootstrap.sql.header import bench_header, conditions_of, read_header, require_same
from orchestrator.bootstrap.sql.outcomes import Outcome
from orchestrator.bootstrap.sql.prompts import SchemaTexts, prompts_record, schema_characters
from orchestrator.bootstrap.sql.questions import Follow, evaluate, recorded
from orchestrator.domain.policies import Purpose
from orchestrator.domain.sql import Question
from orchestrator.errors import Cancelled, EvolvariumError
from orchestrator.evaluation.databases import DatabaseStore, Domain, SandboxDatabase
from orchestrator.evaluation.sql_judge import Asked, SqlJudge, Standing
from orchestrator.methods.evosql import Progress, Settings
from orchestrator.ports import Journal, LanguageModel, Sandbox
from orchestrator.runtime.workers import CancelToken

END_KEY = "run/end"
_PURPOSES = (Purpose.SQL, Purpose.DERIVE, Purpose.IMPORT)
_BEFORE = "before-run"
"""Labels what is done before a run has an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A bench that has its journal."""

    run_id: str
    choices: BenchChoices
    settings: Settings
    questions: int


@dataclass(frozen=True, kw_only=True)
class BenchWatch:
    """How a bench is followed and stopped from outside."""

    token: CancelToken
    note: Callable[[str], None]
    """Told what takes a while."""
    on_start: Callable[[Begun], object]
    """Told once the run can be resumed."""
    on_questions: Callable[[int, int], object]
    """Told how many questions can be evaluated, and how many of them have their outcome already."""
    on_outcome: Callable[[Outcome], object]
    """Told a question's outcome; from several threads."""
    on_event: Callable[[Progress], object] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchEnded:
    """A bench that came to its end."""

    run_id: str
    containers_left: int | None
    """None: no engine was needed."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Everything that a data set is measured with, before there is a run."""

    data: BenchData
    choices: BenchChoices
    settings: Settings
    generator: LanguageModel
    critic: LanguageModel
    place: Place
    conditions: Mapping[str, Any]
    """What a resumed run must find as it was."""

    def texts(self, database: SandboxDatabase) -> SchemaTexts:
        """The schema of a database, with what the data set says of its columns."""
        return SchemaTexts(
            database.description,
            self.data.dataset.descriptions.get(database.name, {}),
            name=database.name,
            characters=schema_characters(self.generator, self.critic),
        )


def begin_bench(places: Places, choices: BenchChoices, settings: Settings, watch: BenchWatch) -> BenchEnded:
    """Measure a data set from the beginning.

    Raises:
        EvolvariumError: See the exception tree; once `on_start` was called, the run is kept and can be resumed.
    """
    data = load_data(choices)
    with opened(places, data, choices, settings, watch, run_id=_BEFORE) as bench:
        run_id, journal = run_store(places).create()
        with journal:
            journal.put("run", bench_header(choices, settings, data, bench.conditions))
            return _perform(bench, run_id, journal, watch)


def resume_bench(places: Places, name: str, watch: BenchWatch) -> BenchEnded:
    """Continue a bench where its journal ends; one that has ended needs nothing.

    Raises:
        RunStateError: There is no such run, it is in use, or the data, policy, images, prompts or models have changed.
        EvolvariumError: Otherwise as `begin_bench`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id) as journal:
        header, choices, settings = read_header(run_id, journal)
        if journal.get(END_KEY) is not None:
            return BenchEnded(run_id=run_id, containers_left=None)
        data = load_data(choices)
        with opened(places, data, choices, settings, watch, run_id=run_id) as bench:
            require_same(header, bench.conditions)
            return _perform(bench, run_id, journal, watch)


@contextmanager
def opened(
    places: Places, data: BenchData, choices: BenchChoices, settings: Settings, watch: BenchWatch, *, run_id: str
) -> Iterator[Opened]:
    """One data set as `opened_all` opens several."""
    with opened_all(places, [(data, choices)], settings, token=watch.token, note=watch.note, run_id=run_id) as (bench,):
        yield bench


@contextmanager
def opened_all(
    places: Places,
    measured: Sequence[tuple[BenchData, BenchChoices]],
    settings: Settings,
    *,
    token: CancelToken,
    note: Callable[[str], None],
    run_id: str,
) -> Iterator[list[Opened]]:
    """Sandbox, models and imported databases; an operator's stop always comes out as `Cancelled`.

    Args:
        places: Hold the home.
        measured: At least one data set, with choices that differ in nothing but where it is and what is taken of it.
        settings: Of the method.
        token: Of the caller.
        note: Told what takes a while.
        run_id: On every container.

    Raises:
        EvolvariumError: As `find_model`, `find_policy`, `open_bench` and `DatabaseStore.open`.
    """
    choices = measured[0][1]
    generator, critic = find_model(choices.model), find_model(choices.critic)
    policy = find_policy(places, choices.policy, choices.runtime)
    try:
        with open_bench(places, policy, token, note) as bench:
            store = DatabaseStore(bench.sandbox, home=writable_home(places), image_digest=bench.images.digest)
            in_force = policy_record(policy, bench.images.digest, _PURPOSES)
            found = []
            for data, of_data in measured:
                place = _place(bench.sandbox, store, data, of_data, token, run_id)
                note(f"reading {_counted(len(place.paths))}; what is new is imported first")
                conditions = conditions_of(
                    data,
                    databases=examine(place),
                    in_force=in_force,
                    prompts=prompts_record(schema_characters(generator, critic)),
                    models={"generator": generator.name, "critic": critic.name},
                )
                one = Opened(
                    data=data,
                    choices=of_data,
                    settings=settings,
                    generator=generator,
                    critic=critic,
                    place=place,
                    conditions=conditions,
                )
                found.append(one)
            yield found
    except EvolvariumError as error:
        if token.is_cancelled and not isinstance(error, Cancelled):
            msg = "stopped by the operator"
            raise Cancelled(msg) from error
        raise


def _place(
    sandbox: Sandbox, store: DatabaseStore, data: BenchData, choices: BenchChoices, token: CancelToken, run_id: str
) -> Place:
    return Place(
        sandbox=sandbox,
        store=store,
        paths=data.databases,
        run_id=run_id,
        query_seconds=choices.query_seconds,
        workers=choices.workers or len(os.sched_getaffinity(0)),
        token=token,
    )


def _perform(bench: Opened, run_id: str, journal: Journal, watch: BenchWatch) -> BenchEnded:
    place = replace(bench.place, run_id=run_id)
    questions = bench.data.questions
    watch.on_start(Begun(run_id=run_id, choices=bench.choices, settings=bench.settings, questions=len(questions)))
    judge = SqlJudge(journal, dataset=bench.data.dataset.digest)
    evaluable = run_gold(place, questions, judge, watch.note)
    configuration = Configuration(
        settings=bench.settings,
        methods=bench.choices.methods,
        generator=bench.generator,
        critic=bench.critic,
        budget=bench.choices.budget.share(max(1, len(evaluable))),
    )
    done = sum(recorded(journal, question, configuration) is not None for question in evaluable)
    watch.on_questions(len(evaluable), done)
    evaluate(
        evaluable,
        configuration,
        place=place,
        texts=bench.texts,
        judge=judge,
        journal=journal,
        follow=Follow(token=watch.token, on_outcome=watch.on_outcome, on_event=watch.on_event),
    )
    watch.note("comparing the databases with what they were")
    compare_digests(place, bench.conditions["databases"])
    journal.put(END_KEY, {"unchanged": sorted(place.paths)})
    place.sandbox.close()
    return BenchEnded(run_id=run_id, containers_left=place.sandbox.live_containers(run_id))


def run_gold(
    place: Place, questions: Sequence[Question], judge: SqlJudge, note: Callable[[str], None]
) -> list[Question]:
    """Run the gold queries, several databases at once; the questions that can be evaluated, by database.

    Raises:
        EvolvariumError: As `SqlJudge.run_gold` and `DatabaseStore.open`.
    """
    note(f"running {len(questions)} gold queries, and each again like a prediction")

    def evaluable(name: str) -> list[Question]:
        mine = [question for question in questions if question.database == name]
        asked = [Asked(key=view_of(question).key, gold=question.gold) for question in mine]
        checking = place.open(name, Domain.PREDICTED, is_patient=True)
        with place.open(name, Domain.GOLD) as gold, checking as predicted:
            golds = judge.run_gold(asked, gold, predicted)
        return [question for question, one in zip(mine, golds, strict=True) if one.standing is Standing.EVALUABLE]

    return [question for found in for_each(place, evaluable).values() for question in found]


def _counted(databases: int) -> str:
    return "1 database" if databases == 1 else f"{databases} databases"
