"""A new run that goes on from an iteration of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess, access_in_force
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.robophd.choices import Branch
from orchestrator.bootstrap.robophd.copying import copy_until
from orchestrator.bootstrap.robophd.final import OPENED
from orchestrator.bootstrap.robophd.header import Earlier, read_header, require_same, split_seed
from orchestrator.bootstrap.robophd.running import Ended, Watch, header_of_run, performed, recorded_packages
from orchestrator.bootstrap.robophd.site import BEFORE, evolution_models, open_site
from orchestrator.bootstrap.runs import find_run, new_run, run_store
from orchestrator.errors import InputError
from orchestrator.methods.robophd.run import RUN
from orchestrator.methods.robophd.settings import Settings
from orchestrator.methods.robophd.standings import iteration_key
from orchestrator.ports import Journal


def branch_evolution(
    places: Places,
    name: str,
    from_iteration: int,
    watch: Watch,
    change: Callable[[Settings], Settings],
    more: dict[str, Any] | None = None,
    given: GivenAccess = NOTHING_GIVEN,
) -> Ended:
    """A new run that takes over another one's iterations up to `from_iteration` and goes on from there.

    Args:
        places: Of this invocation.
        name: Of the other run, which stays as it is.
        from_iteration: The first iteration that is made anew, at least 2.
        watch: Of the caller.
        change: From the other run's settings to those of the new one.
        more: Fields of the choices that are other than the other run's: `budget` and `workers`.
        given: What is said anew about its models.

    Raises:
        InputError: The other run has not come so far, or settings change that what is taken over rests on.
        EvolvariumError: Otherwise as `begin_evolution`.
    """
    store = run_store(places)
    source = find_run(store, name)
    with store.open(source, read_only=True) as other:
        header, choices, before, earlier = read_header(source, other)
        settings = change(before)
        _require_reached(source, other, from_iteration, settings)
        _require_kept(before, settings)
        packages = recorded_packages(header, other)
        taken_over = _taken_over(before, earlier, from_iteration - 1)
        origin = Branch(run=source, from_iteration=from_iteration, after_final=other.get(OPENED) is not None)
        if choices.branch is not None and choices.branch.after_final:
            origin = origin.model_copy(update={"after_final": True})
        access = given.over(access_in_force(other, choices.access))
        choices = choices.model_copy(update={**(more or {}), "branch": origin, "access": access})
        with (
            evolution_models(
                places,
                choices,
                access=choices.access,
                wanted=choices.wanted,
                in_usd=choices.budget.usd is not None,
                token=watch.token,
                note=watch.note,
                context_tokens=header.get("context_tokens", {}),
                said=given,
            ) as models,
            open_site(
                places,
                choices,
                settings,
                run_id=BEFORE,
                token=watch.token,
                note=watch.note,
                models=models.find,
                split_seed=split_seed(before, earlier),
            ) as site,
        ):
            require_same(header, site.conditions)
            with new_run(store) as (run_id, journal):
                journal.put(RUN, header_of_run(site, packages, taken_over))
                copy_until(other, journal, from_iteration)
                return performed(site, packages, taken_over, run_id, journal, watch)


def _taken_over(before: Settings, earlier: Earlier, last: int) -> list[tuple[int, Settings]]:
    """(last iteration, settings) of the runs that a branch comes from, cut after its last iteration that is kept."""
    kept = [(until, settings) for until, settings in earlier if until < last]
    owner = next((settings for until, settings in earlier if until >= last), before)
    return [*kept, (last, owner)]


def _require_reached(source: str, other: Journal, from_iteration: int, settings: Settings) -> None:
    if from_iteration < 2:
        msg = f"--from-iteration {from_iteration} keeps nothing of run {source}; begin a new run, or give 2 or more"
        raise InputError(msg)
    if other.get(iteration_key(from_iteration - 1, "end")) is None:
        ended = 0
        while other.get(iteration_key(ended + 1, "end")) is not None:
            ended += 1
        way_out = f"give at most {ended + 1}" if ended else f"`evolvarium resume {source}` goes on with it"
        msg = f"run {source} has ended {ended} iterations, so it cannot be branched from iteration {from_iteration}; "
        raise InputError(msg + way_out)
    if from_iteration > settings.iterations:
        msg = (
            f"the branch would begin with iteration {from_iteration} and end with {settings.iterations}; give a higher "
            "--iterations, or a lower --from-iteration"
        )
        raise InputError(msg)


def _require_kept(before: Settings, settings: Settings) -> None:
    changed = [part for part in ("answers", "elo") if getattr(before, part) != getattr(settings, part)]
    if changed:
        msg = (
            f"a branch keeps the settings {' and '.join(map(repr, changed))} of its run, since what it takes over "
            "rests on them; leave them out, or begin a new run"
        )
        raise InputError(msg)
