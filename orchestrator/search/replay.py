"""Durable steps: what costs something, or may differ when repeated, is performed once and recorded before it is used.

`resume` runs a method from its beginning over the recorded steps and goes on where they end; `replay` is the same with
performing forbidden. See "Durable steps" and "Journal keys" in `docs/architecture.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from orchestrator.errors import RunStateError
from orchestrator.ports import Journal

Record = Mapping[str, Any]


class Mode(StrEnum):
    """What happens at a step without a record."""

    PERFORM = "perform"
    REPLAY = "replay"
    """It is an error."""


class Steps:
    """The steps of one run. Thread-safe as its journal is, as long as no two threads ask for the same key at once."""

    def __init__(self, journal: Journal, mode: Mode = Mode.PERFORM) -> None:
        self._journal = journal
        self._mode = mode

    @property
    def journal(self) -> Journal:
        """Where the records are."""
        return self._journal

    def recorded(self, key: str) -> Record | None:
        """The record of a step; None: it has not been performed to its end."""
        return self._journal.get(key)

    def once(
        self,
        key: str,
        perform: Callable[[], Record],
        *,
        identity: Record | None = None,
        announce: Callable[[], Record] | None = None,
    ) -> Record:
        """The step's record: from the journal if it is there, otherwise performed and recorded first.

        Args:
            key: Follows from the run's own logic, for instance `i1/commit/c07`; other steps never write it.
            perform: Gives the record; when it raises, nothing is recorded, and the step can be repeated.
            identity: Fields that say what is asked; they become part of the record, and one in the journal must agree.
            announce: For steps that may cost something even when they are cut off. Called right before `perform`;
                what it gives is recorded under `<key>/sent`, a repetition's under `<key>/2/sent` and so on.

        Returns:
            The record as the journal holds it, the same on every later call.

        Raises:
            RunStateError: The journal holds a step of another identity, the step would have to be performed in
                `replay`, or it cannot be recorded.
        """
        wanted = dict(identity or {})
        known = self._journal.get(key)
        if known is not None:
            return _agreeing(key, known, wanted)
        if self._mode is Mode.REPLAY:
            msg = f"step {key!r} is not in the journal, and a replay performs nothing; `evolvarium resume` continues"
            raise RunStateError(msg)
        if announce is not None:
            self._journal.put(_announcement_key(key, len(self._announcements(key)) + 1), announce())
        self._journal.put(key, {**perform(), **wanted})
        written = self._journal.get(key)
        if written is None:
            msg = f"step {key!r} was recorded but cannot be read back; check the journal's disk"
            raise RunStateError(msg)
        return written

    def lost(self, key: str) -> tuple[Record, ...]:
        """Announcements of this step whose outcome nobody knows, in order.

        Asked before `once` as well as after it, by every process, this gives each loss once: the last announcement of
        a step that has its record is the one that led to it.
        """
        announcements = self._announcements(key)
        return announcements if self._journal.get(key) is None else announcements[:-1]

    def _announcements(self, key: str) -> tuple[Record, ...]:
        found: list[Record] = []
        while (record := self._journal.get(_announcement_key(key, len(found) + 1))) is not None:
            found.append(record)
        return tuple(found)


def _announcement_key(key: str, attempt: int) -> str:
    return f"{key}/sent" if attempt == 1 else f"{key}/{attempt}/sent"


def _agreeing(key: str, record: Record, wanted: Record) -> Record:
    for name, value in wanted.items():
        if record.get(name) != value:
            msg = (
                f"step {key!r} was recorded with {name} {record.get(name)!r}, but now has {value!r}: the run was made "
                "with other settings or by another version; use those, or start a new run"
            )
            raise RunStateError(msg)
    return record
