"""What a branch takes over from the run it comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from orchestrator.bootstrap.robophd.choices import Branch
from orchestrator.errors import RunStateError
from orchestrator.ports import Journal
from orchestrator.storage.runs import RunStore

COPIED = "run/copied"
"""Key of what says that a branch has everything it takes over."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ITERATION = re.compile(r"it/(?P<number>\d+)/")
_CACHED = re.compile(r"(?P<base>(?:tool|hybrid|answer)(?::[^/]+)?/[^/]+/[^/]+)(?:/.*)?")


def copy_until(source: Journal, target: Journal, iteration: int) -> None:
    """Copy everything that was known when an iteration began: records in their order, and the blobs they name.

    Gold results, runs of tools, analyses and answers are copied whatever iteration they were made in: they depend on
    nothing but their package. What was not recorded to its end is left behind. A copy that was cut off goes on where it
    was.

    Args:
        source: Of the other run.
        target: Of the branch.
        iteration: The first one that is made anew.

    Raises:
        RunStateError: A record cannot be read or written.
    """
    for key, record in source.records():
        if _is_taken(key, record, source, iteration) and target.get(key) is None:
            for digest in _digests(record):
                with suppress(RunStateError):  # a digest of something that is no blob, for instance of a volume
                    target.put_blob(source.get_blob(digest))
            target.put(key, record)
    target.put(COPIED, {"until": iteration})


def complete_copy(store: RunStore, branch: Branch | None, journal: Journal) -> None:
    """Copy what a branch lacks, where its process was killed before it had everything.

    Args:
        store: Holds both runs.
        branch: Of the run's record; None: it is no branch.
        journal: Of the branch.

    Raises:
        RunStateError: The other run is gone, or as `copy_until`.
    """
    if branch is None or journal.get(COPIED) is not None:
        return
    with store.open(branch.run, read_only=True) as source:
        copy_until(source, journal, branch.from_iteration)


def _is_taken(key: str, record: Mapping[str, Any], source: Journal, iteration: int) -> bool:
    if key.startswith("q/"):
        return True
    if key.startswith("package/"):
        return int(record["iteration"]) < iteration
    if (numbered := _ITERATION.match(key)) is not None:
        return int(numbered["number"]) < iteration
    cached = _CACHED.fullmatch(key)
    return cached is not None and source.get(cached["base"]) is not None


def _digests(record: Mapping[str, Any]) -> Iterator[str]:
    return iter(dict.fromkeys(_DIGEST.findall(json.dumps(record))))
