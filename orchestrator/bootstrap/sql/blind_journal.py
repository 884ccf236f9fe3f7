"""A run's journal as methods get it: without the gold results and without what was right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.errors import RunStateError
from orchestrator.evaluation.sql_judge import GOLD
from orchestrator.ports import Journal


class BlindJournal:
    """Implements `ports.Journal`; what the judge keeps is not there. Thread-safe as the other journal is."""

    def __init__(self, journal: Journal, record: str) -> None:
        """Write nothing yet.

        Args:
            journal: Of the run, or of one of its scopes.
            record: End of the keys under which outcomes stand.
        """
        self._journal = journal
        self._hidden = (GOLD, record)

    def get(self, key: str) -> Mapping[str, Any] | None:
        """See `ports.Journal`."""
        return None if key.endswith(self._hidden) else self._journal.get(key)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """See `ports.Journal`.

        Raises:
            RunStateError: The key is the judge's.
        """
        if key.endswith(self._hidden):
            msg = f"step {key!r} is the judge's to write, and no method's; name the step otherwise"
            raise RunStateError(msg)
        self._journal.put(key, record)

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `ports.Journal`."""
        return ((key, record) for key, record in self._journal.records(prefix) if not key.endswith(self._hidden))

    def put_blob(self, content: bytes) -> str:
        """See `ports.Journal`."""
        return self._journal.put_blob(content)

    def get_blob(self, digest: str) -> bytes:
        """See `ports.Journal`; a digest tells nothing to whoever does not know the content."""
        return self._journal.get_blob(digest)
