"""Groups of runs that may be compared: their ids by what people type, and the conditions that have to be the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.runs import find_run
from orchestrator.errors import InputError, RunStateError
from orchestrator.runtime.strict_yaml import shown
from orchestrator.runtime.user_files import read_file
from orchestrator.storage.runs import RunStore

_LIST_BYTES = 1 << 20
BUDGETS = (
    "islands", "commits_per_island", "requests_per_island", "analyses_per_commit", "budget_usd", "budget_tokens",
)  # fmt: skip
"""Conditions that say how much a run may spend."""
_TASK_PARTS = {"evaluator": "evaluator", "search_split": "split that guides the search", "quality": "quality"}
_NOT_CONDITIONS = frozenset({"seed", "analysis", "migration_wait_seconds", "stop_seconds"})
"""Settings that make no other experiment of a run, or that the method's name says."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Under which a run was made and measured."""

    run_id: str
    header: Mapping[str, Any]
    """The record `run`."""
    data: Mapping[str, str]
    """By split, what identifies the data that its programs were measured on."""

    @property
    def task(self) -> str:
        """Name of it."""
        return str(self.header["task"]["name"])

    def named(self) -> dict[str, object]:
        """All that may differ between runs that are compared, by name; what does not apply to the run is left out."""
        header, settings = self.header, dict(self.header["settings"])
        if not settings.get("analysis", True):
            settings.pop("analyses_per_commit", None)
        choices = dict(header.get("choices", {}))
        return {
            "method": header["method"],
            "model": header["model"],
            **{name: value for name, value in settings.items() if name not in _NOT_CONDITIONS},
            "budget_usd": choices.get("budget_usd"),
            "budget_tokens": choices.get("budget_tokens"),
            "policy": dict(header.get("policy", {})).get("name"),
            "policy_digest": dict(header.get("policy", {})).get("digest"),
            "initial_program": header["task"].get("initial"),
            "public_files": header["task"].get("public"),
        }


def named_runs(store: RunStore, names: Sequence[str]) -> list[str]:
    """Ids of runs from what people type, in its order: ids, beginnings of ids, `latest`, `previous`, or files of them.

    Args:
        store: Holds the runs.
        names: A name that is no run's is a file: a name on each line; empty lines and what follows a `#` do not count.

    Raises:
        RunStateError: A name is neither a run's nor a file's, or begins several ids.
        InputError: A file cannot be read or names no run, or a run is named twice.
    """
    found = [run_id for name in names for run_id in _runs_of(store, name)]
    twice = sorted(run_id for run_id, count in Counter(found).items() if count > 1)
    if twice:
        msg = f"run {twice[0]} is named twice in one group, where it would count as two runs; name it once"
        raise InputError(msg)
    return found


def _runs_of(store: RunStore, name: str) -> list[str]:
    try:
        return [find_run(store, name)]
    except RunStateError:
        path = Path(name)
        if path.name != name:
            if not path.exists():
                msg = f"there is no file {shown(name)}; give ids of runs, or a file with one on each line"
                raise InputError(msg) from None
        elif not name or not path.is_file():
            raise
    try:
        text = read_file(path, _LIST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        msg = f"cannot read {shown(name)}: {reason}; a file of runs has an id on each line"
        raise InputError(msg) from error
    lines = {number: line.partition("#")[0].strip() for number, line in enumerate(text.splitlines(), 1)}
    listed = []
    known: dict[str, str] = {}
    for number, line in lines.items():
        if line:
            try:
                listed.append(known.setdefault(line, known.get(line) or find_run(store, line)))
            except RunStateError as error:
                msg = f"{shown(name)}, line {number}: {error}"
                raise RunStateError(msg) from error
    if not listed:
        msg = f"{shown(name)} names no run; put an id on each line"
        raise InputError(msg)
    return listed


def require_comparable(first: Sequence[Conditions], other: Sequence[Conditions], *, different_data: bool) -> list[str]:
    """Refuse runs whose qualities do not mean the same.

    Args:
        first: Of one group.
        other: Of the other one.
        different_data: Accept programs that were measured on other data.

    Returns:
        What was accepted, in sentences.

    Raises:
        InputError: A run is in both groups; tasks, their evaluators or, unless accepted, data differ.
    """
    both = sorted({run.run_id for run in first} & {run.run_id for run in other})
    if both:
        msg = f"run {both[0]} is in both groups; a run cannot be compared with itself"
        raise InputError(msg)
    runs = [*first, *other]
    tasks = by_value({run.run_id: run.task for run in runs})
    if len(tasks) > 1:
        msg = f"runs of different tasks cannot be compared: {_listed(tasks)}; compare the runs of one task"
        raise InputError(msg)
    for part, words in _TASK_PARTS.items():
        values = by_value({run.run_id: str(run.header["task"].get(part)) for run in runs})
        if len(values) > 1:
            msg = (
                f"task {runs[0].task!r} was another when some of the runs were made, its {words} differs: "
                f"{_listed(values)}; compare runs of the same version"
            )
            raise InputError(msg)
    other_data = _other_data(runs)
    if other_data and not different_data:
        msg = (
            f"{other_data[0]}; compare runs of one home, make them with --public-seed and the same --data, or accept "
            "it with --allow-different-data"
        )
        raise InputError(msg)
    return other_data


def _other_data(runs: Sequence[Conditions]) -> list[str]:
    """What to say of each split whose data are not the same in all runs."""
    said = []
    for split in dict.fromkeys(split for run in runs for split in run.data):
        values = by_value({run.run_id: run.data[split] for run in runs if split in run.data})
        if len(values) > 1:
            said.append(f"programs were measured on other data of split {split!r}: {_listed(values)}")
    return said


def differences(first: Sequence[Conditions], other: Sequence[Conditions]) -> dict[str, tuple[list[str], list[str]]]:
    """What is not the same in all runs, by name, with the values in each group, in the order of the runs."""
    groups = ([run.named() for run in first], [run.named() for run in other])
    names = dict.fromkeys(name for group in groups for run in group for name in run)
    values = {name: (_values(groups[0], name), _values(groups[1], name)) for name in names}
    return {name: (one, two) for name, (one, two) in values.items() if len({*one, *two}) > 1}


def by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    """Ids of runs by the value they have."""
    grouped: dict[str, list[str]] = {}
    for run_id, value in values.items():
        grouped.setdefault(value, []).append(run_id)
    return grouped


def _values(runs: Sequence[Mapping[str, object]], name: str) -> list[str]:
    return list(dict.fromkeys("none" if run[name] is None else str(run[name]) for run in runs if name in run))


def _listed(values: Mapping[str, Sequence[str]]) -> str:
    """Each value with its runs; at most a few of either."""
    parts = [f"{shown(value)} in {_few(runs)}" for value, runs in list(values.items())[:4]]
    return "; ".join(parts) + ("; ..." if len(values) > 4 else "")


def _few(runs: Sequence[str]) -> str:
    return ", ".join(runs[:4]) + (f" and {len(runs) - 4} more" if len(runs) > 4 else "")
