"""Finished runs on symbolic regression and batches of them, recorded without engine, container or model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from orchestrator.bootstrap.batch_records import BatchHeader
from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.header import policy_record, run_header
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.domain.candidates import Candidate, FileTree
from orchestrator.domain.records import to_record
from orchestrator.domain.verdicts import Verdict
from orchestrator.evaluation.tasks import load_task
from orchestrator.llm.offline import OfflineModel
from orchestrator.methods.agentic_evolve.entries import INITIAL, Entry, commit_id, commit_key, entry_record, stop_key
from orchestrator.storage.runs import RunStore
from tests.recorded_runs import DIGEST, OUTCOME

FAMILY = "symbolic_regression"
Point = tuple[float, int]
"""Error and nodes of a commit."""
ROUND_OFF: Sequence[Point] = ((2.5e-1, 20), (2.126e-15, 10), (2.123e-15, 16), (1e-4, 12))
"""The third has the highest fitness and score; the second is the smallest of all and at round-off."""


def verdict_on(split: str, point: Point) -> Verdict:
    """A verdict with this error and size."""
    error, nodes = point
    metrics = {"fitness": -error, "nmse": error, "nodes": nodes / 30, "constants": 0.1}
    return Verdict(split=split, metrics=metrics, failure=None, secret=False, outcome=OUTCOME)


def record_run(
    home: Path,
    member: str,
    points: Sequence[Point] = ROUND_OFF,
    *,
    batch: str | None = None,
    has_ended: bool = True,
    stop: str = "commits",
    final: str | None = None,
) -> str:
    """A run on `symbolic_regression/<member>` with these commits of one island; its id.

    Args:
        home: Holds the runs.
        member: Of the family.
        points: One for each commit.
        batch: Id of the batch that it is a member of.
        has_ended: Whether island and search have ended.
        stop: Why the island stopped.
        final: Id of a commit that was measured on the split `in_domain`.
    """
    places = find_places(home, None)
    task = load_task(places.task(f"{FAMILY}/{member}"))
    settings = method_settings(task.spec, islands=1, commits_per_island=len(points))
    run_id, journal = RunStore(home).create()
    with journal:
        in_force = policy_record(find_policy(places, "default"), lambda _: DIGEST)
        choices = Choices(task=f"{FAMILY}/{member}", batch=batch)
        journal.put("run", run_header(settings, task, OfflineModel(), choices, in_force))
        initial = Candidate(id=INITIAL, payload=task.initial)
        first = Entry(candidate=initial, verdict=verdict_on("train", (0.9, 17)), island=None, number=0)
        journal.put(INITIAL, entry_record(first, journal))
        for number, point in enumerate(points, 1):
            payload = FileTree({"program.py": f"# {number}\n".encode()})
            candidate = Candidate(id=commit_id(0, number), payload=payload, parents=(INITIAL,))
            entry = replace(first, candidate=candidate, verdict=verdict_on("train", point), island=0, number=number)
            journal.put(commit_key(0, number), entry_record(entry, journal))
        if has_ended:
            journal.put(stop_key(0), {"reason": stop})
            journal.put("run/end", {"best": None})
        if final is not None:
            verdict = verdict_on("in_domain", (3e-15, 10))
            journal.put(f"final/in_domain/{final}", {"payload": DIGEST, "verdict": to_record(verdict)})
    return run_id


def record_batch(
    home: Path, members: Sequence[str], begun: int, *, budget_usd: str | None = None
) -> tuple[str, list[str]]:
    """A batch with its first `begun` members ended; its id, and theirs."""
    batch_id, journal = RunStore(home).create()
    with journal:
        usd = None if budget_usd is None else Decimal(budget_usd)
        tasks = tuple(f"{FAMILY}/{member}" for member in members)
        header = BatchHeader(family=FAMILY, members=tasks, choices=Choices(task=FAMILY, budget_usd=usd), settings={})
        journal.put("run", header.model_dump(mode="json"))
        runs = []
        for number, member in enumerate(members[:begun], 1):
            run_id = record_run(home, member, batch=batch_id, final="i0-c02")
            journal.put(f"m{number:02d}/begun/0001", {"run": run_id})
            journal.put(f"m{number:02d}/end", {"state": "done"})
            runs.append(run_id)
        if begun == len(members):
            journal.put("run/end", {})
    return batch_id, runs
