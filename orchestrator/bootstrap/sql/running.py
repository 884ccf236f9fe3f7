"""What a bench and a sweep have in common: how they are opened, begun, followed, ended and gone on with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from orchestrator.bootstrap.bench import containers_of, open_bench, stops_as_cancelled
from orchestrator.bootstrap.header import policy_record
from orchestrator.bootstrap.model_checks import Said
from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess, access_in_force, record_access
from orchestrator.bootstrap.models import ready_models
from orchestrator.bootstrap.pauses import pausing
from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.runs import find_run, new_run, run_store
from orchestrator.bootstrap.sql.choices import BenchChoices, CommonChoices
from orchestrator.bootstrap.sql.data import BenchData
from orchestrator.bootstrap.sql.databases import Place, compare_digests, examine
from orchestrator.bootstrap.sql.header import conditions_of
from orchestrator.bootstrap.sql.notices import shorter_limits, some
from orchestrator.bootstrap.sql.outcomes import Outcome
from orchestrator.bootstrap.sql.prompts import SchemaTexts, prompts_record, schema_characters
from orchestrator.domain.model_access import ModelAccess, ModelRole
from orchestrator.domain.policies import Purpose
from orchestrator.evaluation.databases import DatabaseStore, SandboxDatabase
from orchestrator.methods.evosql import Progress, Settings
from orchestrator.ports import Journal, LanguageModel, Sandbox
from orchestrator.runtime.workers import CancelToken

END_KEY = "run/end"
BegunT = TypeVar("BegunT")
Measured = Sequence[tuple[BenchData, BenchChoices]]
"""Data sets, with choices that differ in nothing but where each is and what is taken of it; at least one."""
_PURPOSES = (Purpose.SQL, Purpose.DERIVE, Purpose.IMPORT)
_BEFORE = "before-run"
"""Labels what is done before a run has an id."""


@dataclass(frozen=True, kw_only=True)
class Watch(Generic[BegunT]):
    """How a measurement is followed and stopped from outside."""

    token: CancelToken
    note: Callable[[str], None]
    """Told what takes a while, and what may be other than it was meant."""
    on_start: Callable[[BegunT], object]
    """Told once the run can be resumed."""
    on_total: Callable[[int, Iterable[Outcome]], object]
    """Told how many questions, or evolutions of questions, are to be answered, and what came of those that are already:
    one at a time, for all of them together may be large."""
    on_outcome: Callable[[Outcome], object]
    """Told what one of them came to; from several threads."""
    on_event: Callable[[Progress], object] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A measurement that came to its end."""

    run_id: str
    containers_left: int | None
    """None: it had ended already, and no engine answers."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Everything that a data set is measured with."""

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


Perform = Callable[[Sequence[Opened], str, Journal], Mapping[str, Any]]
"""Measures what is not recorded yet, under a run's id; gives what is recorded of the end."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What the record of a run says of how it goes on."""

    measured: Callable[[], Measured]
    settings: Settings
    choices: CommonChoices
    context_tokens: Mapping[str, int]
    """Of its models, by name."""
    require_same: Callable[[Sequence[Opened]], None]
    """Raises RunStateError where conditions have changed."""
    perform: Perform


def begin(
    places: Places,
    measured: Measured,
    settings: Settings,
    watch: Watch[BegunT],
    *,
    header: Callable[[Sequence[Opened], Journal], Mapping[str, Any]],
    perform: Perform,
) -> Ended:
    """A measurement from its beginning.

    Args:
        places: Hold the home.
        measured: What is measured.
        settings: Of the method.
        watch: Of the caller.
        header: The record `run`; what it refers to may be put into the journal as a blob.
        perform: Of the kind of run.

    Raises:
        EvolvariumError: See the exception tree; once `on_start` was called, the run is kept and can be resumed, unless
            it failed before anything was recorded of it.
    """
    with _opened(places, measured, settings, watch, measured[0][1].access) as opened:
        return start(places, opened, watch, header=header, perform=perform)


def start(
    places: Places,
    opened: Sequence[Opened],
    watch: Watch[BegunT],
    *,
    header: Callable[[Sequence[Opened], Journal], Mapping[str, Any]],
    perform: Perform,
) -> Ended:
    """A new run on opened data sets; otherwise as `begin`."""
    with new_run(run_store(places)) as (run_id, journal):
        journal.put("run", header(opened, journal))
        return _performed(opened, run_id, journal, watch, perform)


def go_on(
    places: Places,
    name: str,
    watch: Watch[BegunT],
    read: Callable[[str, Journal], Recorded],
    given: GivenAccess = NOTHING_GIVEN,
) -> Ended:
    """Continue a measurement where its journal ends; one that has ended needs nothing.

    Args:
        places: Hold the home.
        name: Of the run.
        watch: Of the caller.
        read: Reads the record `run`.
        given: What is said anew about its models.

    Raises:
        RunStateError: There is no such run, it is in use, or the data, policy, images, prompts or models have changed.
        EvolvariumError: Otherwise as `begin`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id) as journal:
        recorded = read(run_id, journal)
        if journal.get(END_KEY) is not None:
            watch.note(f"run {run_id} is done already")
            return Ended(run_id=run_id, containers_left=containers_of(run_id))
        before = access_in_force(journal, recorded.choices.access)
        access = given.over(before)
        with _opened(
            places, recorded.measured(), recorded.settings, watch, access, recorded.context_tokens, run_id, given
        ) as opened:
            recorded.require_same(opened)
            record_access(journal, before, access)
            return _performed(opened, run_id, journal, watch, recorded.perform)


def _performed(
    opened: Sequence[Opened], run_id: str, journal: Journal, watch: Watch[BegunT], perform: Perform
) -> Ended:
    mine = [replace(one, place=replace(one.place, run_id=run_id)) for one in opened]
    with pausing(journal):
        end = perform(mine, run_id, journal)
    watch.note("comparing the databases with what they were")
    for one in mine:
        compare_digests(one.place, one.conditions["databases"])
    journal.put(END_KEY, end)
    sandbox = mine[0].place.sandbox
    sandbox.close()
    return Ended(run_id=run_id, containers_left=sandbox.live_containers(run_id))


@contextmanager
def _opened(
    places: Places,
    measured: Measured,
    settings: Settings,
    watch: Watch[BegunT],
    access: ModelAccess,
    context_tokens: Mapping[str, int] = MappingProxyType({}),
    run_id: str = _BEFORE,
    said: Said | None = None,
) -> Iterator[list[Opened]]:
    """Sandbox, models and imported databases; an operator's stop always comes out as `Cancelled`.

    Raises:
        EvolvariumError: As `find_policy`, `ready_models`, `open_bench` and `DatabaseStore.open`.
    """
    choices, token = measured[0][1], watch.token
    policy = find_policy(places, choices.policy, choices.runtime)
    opening = ready_models(
        access,
        policy,
        choices.wanted,
        in_usd=choices.budget.usd is not None,
        token=token,
        note=watch.note,
        context_tokens=context_tokens,
        said=said,
    )
    with stops_as_cancelled(token), opening as models, open_bench(places, policy, token, watch.note) as bench:
        generator = models.find(choices.model, ModelRole.GENERATOR)
        critic = models.find(choices.critic, ModelRole.CRITIC)
        store = DatabaseStore(bench.sandbox, home=writable_home(places), image_digest=bench.images.digest)
        in_force = policy_record(policy, bench.images.digest, _PURPOSES)
        found = []
        for data, of_data in measured:
            place = _place(bench.sandbox, store, data, of_data, token, run_id)
            for told in [*some(data.dataset.orphans), *shorter_limits(place)]:
                watch.note(told)
            watch.note(f"reading {_counted(len(place.paths))}; what is new is imported first")
            conditions = conditions_of(
                data,
                databases=examine(place),
                in_force=in_force,
                prompts=prompts_record(schema_characters(generator, critic)),
                models={"generator": generator.name, "critic": critic.name},
                context_tokens={model.name: model.context_tokens for model in (generator, critic)},
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


def _counted(databases: int) -> str:
    return "1 database" if databases == 1 else f"{databases} databases"
