"""`task assess`: what a task's own code says of the final candidates of runs, beside their metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrator.bootstrap.batch_records import read_header, read_members
from orchestrator.bootstrap.bench import Bench, open_bench, stops_as_cancelled
from orchestrator.bootstrap.finals import final_splits, read_finals
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.runs import BATCH, exists, kind_of, run_store
from orchestrator.bootstrap.search import SearchRun, recorded_run
from orchestrator.bootstrap.splits import split_store
from orchestrator.domain.verdicts import Assessment, Verdict
from orchestrator.errors import RunStateError
from orchestrator.evaluation.hidden import SplitStore, files_digest
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.methods.agentic_evolve.final_choice import final_entry, named_entry, rule_of
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.final_choice import Rule

BY_ID = "id"
"""Stands for a rule where the candidate was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which candidate of a run is assessed."""

    commit: str | None = None
    """Its id; None: the final one."""
    choice: Rule | None = None
    """The rule of the final choice; None: the task's."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is said of one run's candidate."""

    run_id: str
    task: str
    quality: str
    """The metric that people read."""
    meanings: dict[str, str]
    """Of what is assessed."""
    choice: str
    """The rule, or `id`."""
    commit: str | None
    """None: nothing has a score, so nothing is assessed."""
    verdicts: Sequence[Verdict] = ()
    """On the split that guides the search, and then on the others that can be had."""
    assessment: Assessment | None = None


def runs_to_assess(places: Places, run_id: str, note: Callable[[str], None]) -> list[str]:
    """The run itself; of a batch, the runs of its members.

    Args:
        places: Of this invocation.
        run_id: Of a run or a batch.
        note: Told which members have not ended.

    Raises:
        RunStateError: It is a batch of which no member has begun.
    """
    store = run_store(places)
    with store.open(run_id, read_only=True) as journal:
        if kind_of(journal) != BATCH:
            return [run_id]
        members = read_members(read_header(run_id, journal), journal)
    found = [member.run_id for member in members if member.run_id is not None and exists(store, member.run_id)]
    if not found:
        msg = f"no member of batch {run_id} has a run yet; `evolvarium resume {run_id}` goes on"
        raise RunStateError(msg)
    for member in members:
        if member.end is None:
            begun = member.run_id in found
            so_far = "is unfinished; its best so far is assessed" if begun else "has no run yet and is left out"
            note(f"{member.task} {so_far} (`evolvarium resume {run_id}` goes on)")
    return found


def assess_runs(
    places: Places,
    run_ids: Sequence[str],
    asked: Asked,
    *,
    token: CancelToken,
    note: Callable[[str], None],
    on_run: Callable[[str], object],
) -> Iterator[Found]:
    """Assess one run after the other, in containers; nothing is recorded, so that it can be repeated.

    Args:
        places: Of this invocation.
        run_ids: At least one, all begun under the same policy.
        asked: Of each of them.
        token: An operator's wish to stop.
        note: Told what takes a while, and what is other than it was.
        on_run: Told the task of each run before it is assessed.

    Raises:
        InputError: A task has no assessment, or nothing that the rule could choose by.
        RunStateError: A run is damaged, or has no such candidate.
        EvolvariumError: Otherwise as `EvaluatorHost.assess`.
    """
    store = run_store(places)
    with store.open(run_ids[0], read_only=True) as journal:
        choices = recorded_run(places, run_ids[0], journal).choices
        _chosen(run_ids[0], journal, asked)  # what is wrong with it is told before anything is started
    policy = find_policy(places, choices.policy, choices.runtime)
    with stops_as_cancelled(token), open_bench(places, policy, token, note) as bench:
        for run_id in run_ids:
            token.check()
            with store.open(run_id, read_only=True) as journal:
                run = recorded_run(places, run_id, journal)
                on_run(run.task.name)
                yield _assessed(places, bench, run, asked, note)


def _assessed(places: Places, bench: Bench, run: SearchRun, asked: Asked, note: Callable[[str], None]) -> Found:
    entry, choice = _chosen(run.run_id, run.journal, asked)
    found = Found(
        run_id=run.run_id,
        task=run.task.name,
        quality=run.task.spec.quality.metric,
        meanings=dict(run.task.spec.assessment),
        choice=choice,
        commit=None if entry is None else entry.id,
    )
    if entry is None:
        return found
    known = (run.journal.get("run") or {})["task"]["evaluator"]
    if known != files_digest(run.task.evaluator):
        note(
            f"the evaluator of {run.task.name!r} has changed since run {run.run_id} began; the present one assesses it"
        )
    note(f"assessing {entry.id} of run {run.run_id} ({run.task.name})")
    data = split_store(places, public_seed=run.choices.public_seed, data=run.choices.data)
    host = EvaluatorHost(bench.sandbox, run.task, run.task.spec.search_split, data)
    assessment = host.assess(entry.candidate.payload, run_id=run.run_id, attempt_id=f"assess-{entry.id}")
    verdicts = _verdicts(bench, run, entry, data, note)
    return replace(found, verdicts=verdicts, assessment=assessment)


def _chosen(run_id: str, journal: Journal, asked: Asked) -> tuple[Entry | None, str]:
    history = read_history(journal)
    if asked.commit is not None:
        return named_entry(history, run_id, asked.commit), BY_ID
    return final_entry(history, asked.choice), (asked.choice or rule_of(history)).value


def _verdicts(
    bench: Bench, run: SearchRun, entry: Entry, data: SplitStore, note: Callable[[str], None]
) -> list[Verdict]:
    """On every split: those that are recorded, and those that are measured now."""
    recorded = {verdict.split: verdict for measured, verdict in read_finals(run.journal) if measured == entry.id}
    found = [entry.verdict]
    for split in final_splits(run.task, data, bench.sandbox, None, note):
        verdict = recorded.get(split)
        if verdict is None:
            host = EvaluatorHost(bench.sandbox, run.task, split, data)
            attempt = f"assess-{split}-{entry.id}"
            verdict = host.evaluate(entry.candidate.payload, run_id=run.run_id, attempt_id=attempt)
        found.append(verdict)
    return found
