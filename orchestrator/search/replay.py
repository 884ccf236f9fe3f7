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

    def known(self, key: str, *, identity: Record) -> Record | None:
        """The record of a step, which must be of this identity; None: it has not been performed to its end.

        Raises:
            RunStateError: The journal holds a step of another identity.
        """
        record = self._journal.get(key)
        return None if record is None else _agreeing(key, record, identity)

    def once(self, key: str, perform: Callable[[], Record], *, identity: Record | None = None) -> Record:
        """The step's record: from the journal if it is there, otherwise performed and recorded first.

        Args:
            key: Follows from the run's own logic, for instance `i1/commit/c07`; other steps never write it.
            perform: Gives the record; when it raises, nothing is recorded, and the step can be repeated.
            identity: Fields that say what is asked; they become part of the record, and one in the journal must agree.

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
        self._require_performing(key)
        self._journal.put(key, {**perform(), **wanted})
        written = self._journal.get(key)
        if written is None:
            msg = f"step {key!r} was recorded but cannot be read back; check the journal's disk"
            raise RunStateError(msg)
        return written

    def begin(self, key: str, announcement: Record | None = None) -> None:
        """Say that a step is about to be performed that may cost something even when it is cut off.

        Args:
            key: Of the step, which has no record yet.
            announcement: Recorded under `<key>/sent`, a repetition's under `<key>/2/sent` and so on; None: there is
                nothing to announce.

        Raises:
            RunStateError: The step would have to be performed in `replay`, or it cannot be recorded.
        """
        self._require_performing(key)
        if announcement is not None:
            self._journal.put(_mark(key, len(self._announcements(key)) + 1, "sent"), announcement)

    def retract(self, key: str) -> None:
        """Say that the last announcement of a step, which has no record, led to nothing and cost nothing.

        Raises:
            RunStateError: It cannot be recorded, or was said before.
        """
        self._journal.put(_mark(key, len(self._announcements(key)), "void"), {})

    def lost(self, key: str) -> tuple[Record, ...]:
        """Announcements of this step whose outcome nobody knows, in order.

        Asked before the step is performed as well as after it, by every process, this gives each loss once: the last
        announcement of a step that has its record is the one that led to it. What was retracted has cost nothing.
        """
        announcements = self._announcements(key)
        unknown = announcements if self._journal.get(key) is None else announcements[:-1]
        return tuple(
            record for number, record in enumerate(unknown, 1) if self._journal.get(_mark(key, number, "void")) is None
        )

    def announced(self, key: str) -> Record | None:
        """The last announcement of a step: where it has a record, the one that led to it; None: there is none."""
        return next(reversed(self._announcements(key)), None)

    def _announcements(self, key: str) -> tuple[Record, ...]:
        found: list[Record] = []
        while (record := self._journal.get(_mark(key, len(found) + 1, "sent"))) is not None:
            found.append(record)
        return tuple(found)

    def _require_performing(self, key: str) -> None:
        if self._mode is Mode.REPLAY:
            msg = f"step {key!r} is not in the journal, and a replay performs nothing; `evolvarium resume` continues"
            raise RunStateError(msg)


def _mark(key: str, attempt: int, kind: str) -> str:
    """The key of what is recorded beside a step about one attempt at it, for instance `i1/request/0042/2/sent`."""
    return f"{key}/{kind}" if attempt == 1 else f"{key}/{attempt}/{kind}"


def _agreeing(key: str, record: Record, wanted: Record) -> Record:
    for name, value in wanted.items():
        if record.get(name) != value:
            msg = (
                f"step {key!r} was recorded with {name} {record.get(name)!r}, but now has {value!r}: the run was made "
                "with other settings or by another version; use those, or start a new run"
            )
            raise RunStateError(msg)
    return record
