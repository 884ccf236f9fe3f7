"""A batch: one search on every member of a family of tasks, one after the other, resumable as a whole.

Its own journal holds what was asked for and which run each member has; everything else is in the runs themselves:

    run         {kind: "batch", family, members, choices, settings}
    m03/begun/0001  {run}: the run of the third member, once that run is kept
    m03/end         {state}: how it ended
    run/end         {}: every member has ended

A run is recorded as begun after it has been made. One that a crash cut off in between is found again by the batch that
its own record names; one that is gone, since nothing came of it or somebody removed it, is begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.batch_records import (
    BEGUN_KEY,
    END_KEY,
    ENDED_KEY,
    BatchHeader,
    Member,
    read_header,
    read_members,
)
from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.runs import exists, find_run, new_run, run_store
from orchestrator.bootstrap.search import Finished, Watch, begin, resume
from orchestrator.domain.conversation import Usage
from orchestrator.errors import EvolvariumError, InputError
from orchestrator.evaluation.task_families import members
from orchestrator.evaluation.tasks import family_folder, load_task
from orchestrator.methods.agentic_evolve import StopReason, read_history
from orchestrator.ports import Journal
from orchestrator.storage.runs import RunStore

_SMALLEST_USD = Decimal("0.000001")


@dataclass(frozen=True, kw_only=True)
class BatchWatch:
    """How a batch is followed and stopped from outside."""

    search: Watch
    """Of the members' runs, one after the other."""
    on_start: Callable[[str, BatchHeader], object]
    """Told the batch's id once it can be resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnded:
    """A batch whose members have all ended."""

    run_id: str
    containers_left: int | None
    """Of the members that were run just now; None: no engine was needed."""


def begin_batch(places: Places, choices: Choices, settings: Mapping[str, Any], watch: BatchWatch) -> BatchEnded:
    """Run every member of a family from the beginning.

    Args:
        places: Of this invocation.
        choices: What was asked for; `task` names the family.
        settings: As `search.begin` takes them.
        watch: Of the caller.

    Raises:
        InputError: It is no family, or a member is not well formed.
        EvolvariumError: Otherwise as `search.begin`; once `on_start` was called, the batch is kept and can be resumed.
    """
    family, tasks = family_members(places, choices.task)
    for task in tasks:
        method_settings(load_task(places.task(task)).spec, **settings)
    header = BatchHeader(family=family, members=tasks, choices=choices, settings=dict(settings))
    with new_run(run_store(places)) as (run_id, journal):
        journal.put("run", header.model_dump(mode="json"))
        watch.on_start(run_id, header)
        return _through(places, run_id, journal, watch)


def resume_batch(
    places: Places,
    name: str,
    watch: BatchWatch,
    *,
    accept_policy_change: bool = False,
    given: GivenAccess = NOTHING_GIVEN,
) -> BatchEnded:
    """Go on with the member that stopped, and then with the rest.

    Args:
        places: Of this invocation.
        name: Of the batch.
        watch: Of the caller.
        accept_policy_change: As `search.resume` takes it.
        given: Likewise; it also holds for members that begin now.

    Raises:
        RunStateError: There is no such batch, or it is in use.
        EvolvariumError: Otherwise as `search.resume`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id) as journal:
        header = read_header(run_id, journal)
        if journal.get(END_KEY) is not None:
            watch.search.note(f"batch {run_id} is done already")
            return BatchEnded(run_id=run_id, containers_left=None)
        watch.on_start(run_id, header)
        return _through(places, run_id, journal, watch, accept_policy_change=accept_policy_change, given=given)


def family_members(places: Places, name: str) -> tuple[str, tuple[str, ...]]:
    """A family's name, and its members as `Places.task` takes them.

    Args:
        places: Hold the task roots.
        name: Of the family, or its folder.

    Raises:
        InputError: There is no such family, or it has no members.
    """
    folder = family_folder(name, places.task_roots)
    if folder is None:
        msg = f"{name!r} is no family of tasks, so there are no members to run with --all; leave --all out"
        raise InputError(msg)
    found = members(folder)
    if not found:
        msg = f"the family {name!r} has no members yet; add a folder with a task.yaml to it"
        raise InputError(msg)
    is_known = folder != Path(name)
    return folder.resolve().name, tuple(found) if is_known else tuple(str(task.resolve()) for task in found.values())


def _through(
    places: Places,
    batch_id: str,
    journal: Journal,
    watch: BatchWatch,
    *,
    accept_policy_change: bool = False,
    given: GivenAccess = NOTHING_GIVEN,
) -> BatchEnded:
    header = read_header(batch_id, journal)
    containers: int | None = None
    for member in read_members(header, journal):
        if member.end is not None:
            continue
        watch.search.token.check()
        watch.search.note(f"member {member.number} of {len(header.members)}: {member.task}")
        run_id = _kept(run_store(places), batch_id, member)
        if run_id is None:
            finished = _begun(places, batch_id, header, journal, member, watch.search, given)
        else:
            if run_id != member.run_id:
                _record(journal, member, run_id)
            finished = resume(places, run_id, watch.search, accept_policy_change=accept_policy_change, given=given)
        containers = (containers or 0) + (finished.containers_left or 0)
        journal.put(ENDED_KEY.format(member.number), {"state": _state(places, finished.run_id)})
    journal.put(END_KEY, {})
    return BatchEnded(run_id=batch_id, containers_left=containers)


def _begun(
    places: Places,
    batch_id: str,
    header: BatchHeader,
    journal: Journal,
    member: Member,
    watch: Watch,
    given: GivenAccess,
) -> Finished:
    """A member's run from its beginning, with its share of what the batch may still spend."""

    def on_start(run_id: str, *run: Any) -> None:  # noqa: ANN401 - passed on as it is
        _record(journal, member, run_id)
        watch.on_start(run_id, *run)

    choices = share(header, read_members(header, journal), lambda run_id: spent(run_store(places), run_id))
    access = given.over(header.choices.access)
    mine = choices.model_copy(update={"task": member.task, "batch": batch_id, "access": access})
    return begin(places, mine, header.settings, replace(watch, on_start=on_start))


def share(header: BatchHeader, found: Sequence[Member], spent_by: Callable[[str], Usage]) -> Choices:
    """The choices of the batch, with the next member's equal share of what is left of its spending limits.

    Args:
        header: Of the batch.
        found: All its members.
        spent_by: What a run has spent.
    """
    limits = header.choices
    if limits.budget_usd is None and limits.budget_tokens is None:
        return limits
    waiting = sum(member.end is None for member in found)
    usage = sum((spent_by(member.run_id) for member in found if member.run_id is not None), Usage(usd=Decimal(0)))
    usd, tokens = limits.budget_usd, limits.budget_tokens
    if usd is not None:
        usd = (max(Decimal(0), usd - (usage.usd or Decimal(0))) / waiting).quantize(_SMALLEST_USD, ROUND_DOWN)
    if tokens is not None:
        tokens = max(0, tokens - usage.tokens) // waiting
    return limits.model_copy(update={"budget_usd": usd, "budget_tokens": tokens})


def spent(store: RunStore, run_id: str) -> Usage:
    """What a run has spent; a lost call counts at the most that it can have cost.

    Raises:
        RunStateError: It is damaged.
    """
    if not exists(store, run_id):
        return Usage(usd=Decimal(0))
    with store.open(run_id, read_only=True) as journal:
        return read_history(journal).total.usage


def _state(places: Places, run_id: str) -> str:
    with run_store(places).open(run_id, read_only=True) as journal:
        stops = read_history(journal).stops.values()
    return "budget-spent" if StopReason.BUDGET_SPENT in stops else "done"


def _record(journal: Journal, member: Member, run_id: str) -> None:
    prefix = BEGUN_KEY.format(member.number)
    journal.put(f"{prefix}{1 + sum(1 for _ in journal.records(prefix)):04d}", {"run": run_id})


def _kept(store: RunStore, batch_id: str, member: Member) -> str | None:
    """A member's run, also one that its batch had no time to record; None: there is none that anything is known of."""
    if member.run_id is not None and exists(store, member.run_id):
        return member.run_id
    return next(_runs_of(store, batch_id, member.task), None)


def _runs_of(store: RunStore, batch_id: str, task: str) -> Iterator[str]:
    for info in store.list():
        if info.created_at is None:
            continue
        try:
            with store.open(info.id, read_only=True) as journal:
                choices = (journal.get("run") or {}).get("choices", {})
        except EvolvariumError:
            continue  # whatever is wrong with another run is no concern of the batch
        if isinstance(choices, Mapping) and choices.get("batch") == batch_id and choices.get("task") == task:
            yield info.id
