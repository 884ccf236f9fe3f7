"""Everything that is opened for an evolution: data, sandbox, imported databases, and what must stay as it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from orchestrator.bootstrap.bench import open_bench, stops_as_cancelled
from orchestrator.bootstrap.header import policy_record
from orchestrator.bootstrap.model_checks import Said
from orchestrator.bootstrap.models import Models, Wanted, ready_models
from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.bootstrap.robophd.data import EvolveData, load_evolve_data
from orchestrator.bootstrap.robophd.header import conditions_of
from orchestrator.bootstrap.sql.databases import Place, examine
from orchestrator.bootstrap.sql.gold import run_gold
from orchestrator.bootstrap.sql.notices import shorter_limits, some
from orchestrator.domain.model_access import ModelAccess, ModelRole
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.domain.sql import Question
from orchestrator.errors import InputError, PolicyError
from orchestrator.evaluation.databases import DatabaseStore
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.robophd.settings import Settings
from orchestrator.ports import LanguageModel
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.sampling import DatabaseSplit

PURPOSES = (Purpose.SQL, Purpose.DERIVE, Purpose.IMPORT, Purpose.TOOL)
"""Without any of them an evolution could not come to its end."""
FindModel = Callable[[str, ModelRole], LanguageModel]
"""From a name and a role to the model."""
BEFORE = "before-run"
"""Labels what is done before a run has an id."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Everything that is opened for a run."""

    choices: EvolveChoices
    settings: Settings
    data: EvolveData
    split: DatabaseSplit
    place: Place
    models: FindModel
    conditions: Mapping[str, Any]
    """What a resumed run must find as it was."""
    seed: int
    """That dealt out the databases and seeds every answer: of a branch, that of the first run it comes from."""

    @property
    def evolver(self) -> LanguageModel:
        """Makes packages."""
        return self.models(self.choices.evolver, ModelRole.EVOLVER)

    @property
    def answerer(self) -> LanguageModel:
        """Answers questions."""
        return self.models(self.choices.answerer, ModelRole.ANSWERER)

    def of_run(self, run_id: str) -> Site:
        """The same, with what is opened from now on labelled by a run."""
        return replace(self, place=replace(self.place, run_id=run_id))

    def only(self, databases: Sequence[str]) -> Place:
        """The place with some of the databases."""
        return replace(self.place, paths={name: self.place.paths[name] for name in databases})


def evolution_models(  # noqa: PLR0913 - as `ready_models`
    places: Places,
    choices: EvolveChoices,
    *,
    access: ModelAccess,
    wanted: Wanted,
    in_usd: bool,
    token: CancelToken,
    note: Callable[[str], None],
    context_tokens: Mapping[str, int] = MappingProxyType({}),
    said: Said | None = None,
) -> AbstractContextManager[Models]:
    """The models of an evolution, ready to be asked under its policy; the arguments are those of `ready_models`.

    Raises:
        EvolvariumError: As `required_policy`; within the block as `ready_models`.
    """
    return ready_models(
        access,
        required_policy(places, choices),
        wanted,
        in_usd=in_usd,
        token=token,
        note=note,
        context_tokens=context_tokens,
        said=said,
    )


@contextmanager
def open_site(
    places: Places,
    choices: EvolveChoices,
    settings: Settings,
    *,
    run_id: str,
    token: CancelToken,
    note: Callable[[str], None],
    models: FindModel,
    split_seed: int | None = None,
) -> Iterator[Site]:
    """Sandbox, data and imported databases; an operator's stop always comes out as `Cancelled`.

    Args:
        places: Hold the home.
        choices: What was asked for.
        settings: Of the method.
        run_id: Labels containers.
        token: Of the caller.
        note: Told what takes a while, and what may be other than it was meant.
        models: Finds models by name and role.
        split_seed: Dealt out the databases, if another seed than that of the settings did, as of a branch.

    Raises:
        InputError: A database is there twice, or there are too few.
        EvolvariumError: As `required_policy`, `open_bench`, `load_evolve_data` and `DatabaseStore.open`.
    """
    policy = required_policy(places, choices)
    data = load_evolve_data(choices)
    seed = settings.seed if split_seed is None else split_seed
    split = data.split(seed, choices.shares)
    with stops_as_cancelled(token), open_bench(places, policy, token, note) as bench:
        in_force = policy_record(policy, bench.images.digest, PURPOSES)  # before anything is imported
        place = Place(
            sandbox=bench.sandbox,
            store=DatabaseStore(bench.sandbox, home=writable_home(places), image_digest=bench.images.digest),
            paths=data.paths,
            run_id=run_id,
            query_seconds=choices.query_seconds,
            workers=choices.workers or len(os.sched_getaffinity(0)),
            token=token,
        )
        for told in [*some(data.orphans), *shorter_limits(place)]:
            note(told)
        note(f"reading {len(data.paths)} databases; what is new is imported first")
        databases = examine(place)
        require_different(databases)
        conditions = conditions_of(data, split, databases=databases, in_force=in_force)
        yield Site(
            choices=choices,
            settings=settings,
            data=data,
            split=split,
            place=place,
            models=models,
            conditions=conditions,
            seed=seed,
        )


def required_policy(places: Places, choices: EvolveChoices) -> Policy:
    """The policy that was asked for.

    Raises:
        PolicyError: There is none, or it does not grant all that an evolution needs.
    """
    policy = find_policy(places, choices.policy, choices.runtime)
    missing = [purpose.value for purpose in PURPOSES if purpose not in policy.purposes]
    if missing:
        msg = (
            f"policy {policy.name!r} grants no {' and no '.join(map(repr, missing))}, which an evolution of packages "
            "needs; grant it, or use another policy"
        )
        raise PolicyError(msg)
    return policy


def evaluable_questions(
    site: Site, databases: Sequence[str], judge: SqlJudge, note: Callable[[str], None]
) -> list[Question]:
    """The questions on some databases whose gold queries have a result; those that have not run yet are run.

    Raises:
        EvolvariumError: As `run_gold`.
    """
    questions = site.data.of(databases)
    return run_gold(site.only(databases), questions, judge, label=" and ".join(site.data.names), note=note)


def require_different(databases: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse one database under two names, which could be for contests and for final figures at once.

    Args:
        databases: From `examine`.

    Raises:
        InputError: There is one.
    """
    names: dict[str, str] = {}
    for name, examined in databases.items():
        twin = names.setdefault(examined["source"], name)
        if twin != name:
            msg = f"databases {twin!r} and {name!r} are the same file; leave one of them out with `databases`"
            raise InputError(msg)
