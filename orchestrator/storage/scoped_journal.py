"""A part of a journal that looks like a whole one, so that a run can hold several measurements of the same kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.ports import Journal
from orchestrator.storage.journal import check_key


class ScopedJournal:
    """Implements `ports.Journal` on the keys of another one that begin with a scope; blobs are shared by all scopes.

    Thread-safe as the other journal is.
    """

    def __init__(self, journal: Journal, scope: str) -> None:
        """Write nothing yet.

        Args:
            journal: Holds all records; its owner closes it.
            scope: Before every key, for instance `d1/`; empty: the whole journal.
        """
        self._journal = journal
        self._scope = scope

    def get(self, key: str) -> Mapping[str, Any] | None:
        """See `ports.Journal`."""
        return self._journal.get(self._scope + key)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """See `ports.Journal`.

        Raises:
            ValueError: The key is malformed, or the record is not JSON.
        """
        check_key(key)
        self._journal.put(self._scope + key, record)

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `ports.Journal`; only those of the scope, without it."""
        for key, record in self._journal.records(self._scope + prefix):
            yield key.removeprefix(self._scope), record

    def put_blob(self, content: bytes) -> str:
        """See `ports.Journal`."""
        return self._journal.put_blob(content)

    def get_blob(self, digest: str) -> bytes:
        """See `ports.Journal`."""
        return self._journal.get_blob(digest)
