"""The records of islands in a run's journal, and the calls among them whose outcome nobody knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.domain.conversation import Usage
from orchestrator.domain.records import from_record
from orchestrator.methods.agentic_evolve.history_records import checked_usage, record_of
from orchestrator.ports import Journal

_STEP_KEY = re.compile(r"i(?P<island>\d+)/(?P<kind>request|analysis|commit|migration|stop)(?:/(?P<name>.+))?")
_MARK = re.compile(r"(?P<number>\d+)(?:/(?P<attempt>\d+))?/(?P<kind>sent|void)")


def island_records(journal: Journal) -> Iterator[tuple[int, str, str, Mapping[str, Any]]]:
    """(island, kind, name, record) of every island's records; what announces or retracts requests is among them."""
    for key, record in journal.records("i"):
        if match := _STEP_KEY.fullmatch(key):
            yield int(match["island"]), match["kind"], match["name"] or "", record


def key_of(island: int, kind: str, name: str) -> str:
    """The key of an island's record; the name may be empty."""
    return f"i{island}/{kind}/{name}" if name else f"i{island}/{kind}"


def lost_calls(journal: Journal) -> Iterator[tuple[int, Usage]]:
    """(island, reservation) of every announced request that was neither answered nor retracted.

    Raises:
        RunStateError: A record is damaged.
    """
    announced: dict[tuple[int, int], dict[int, Usage]] = {}
    ended: set[tuple[int, int]] = set()
    for island, kind, name, record in island_records(journal):
        if kind != "request":
            continue
        with record_of(key_of(island, kind, name)):
            match = _MARK.fullmatch(name)
            if match is None:
                ended.add((island, int(name)))
                continue
            attempts = announced.setdefault((island, int(match["number"])), {})
            is_sent = match["kind"] == "sent"
            reserved = checked_usage(from_record(Usage, record["reserved"])) if is_sent else Usage()
            attempts[int(match["attempt"] or 1)] = reserved  # what is retracted comes to nothing
    for (island, number), attempts in announced.items():
        unknown = [attempts[attempt] for attempt in sorted(attempts)]
        for usage in unknown[:-1] if (island, number) in ended else unknown:
            if usage != Usage():  # nothing could be lost: of a repeatable model, or retracted
                yield island, usage
