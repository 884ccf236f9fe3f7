"""`ports.Database` on a SQLite here and now, behind the real gate: for tests of what stands above the sandbox."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence

from orchestrator.domain.data_access import Access
from orchestrator.domain.sql import Description, QueryResult, QueryStatus, Schema
from orchestrator.sql.gate import Refusal, check


class PlainDatabase:
    """Refuses what mentions the table `secret`, and lets what mentions `slow` run out of time. Thread-safe."""

    suspicions: tuple[str, ...] = ()
    description = Description(schema=Schema(tables=()), values={}, sqlite_version=sqlite3.sqlite_version)

    def __init__(
        self, connection: sqlite3.Connection, name: str, *, digest: str = "sha256:" + "1" * 64, max_rows: int = 1000
    ) -> None:
        """Use a connection that may be used by any thread."""
        self.name = name
        self.digest = digest
        self.access = Access(rule=1, hidden=(), max_rows=max_rows, max_bytes=1 << 20, query_seconds=1.0)
        self.asked: list[str] = []
        self._connection = connection
        self._lock = threading.Lock()  # a connection serves one thread at a time

    def close(self) -> None:
        self._connection.close()

    def query_all(self, queries: Sequence[str], *, attempt_id: str) -> list[QueryResult]:
        return [self.query(sql, attempt_id=attempt_id) for sql in queries]

    def query(self, sql: str, *, attempt_id: str, reverse: bool = False) -> QueryResult:
        assert attempt_id
        with self._lock:
            self.asked.append(sql)
            return self._answer(sql, reverse=reverse)

    def _answer(self, sql: str, *, reverse: bool) -> QueryResult:
        try:
            text = check(sql).text
        except Refusal as refused:
            return QueryResult(status=QueryStatus.REFUSED, message=refused.reason)
        if "secret" in sql:
            return QueryResult(status=QueryStatus.REFUSED, message="secret may not be read: data rule 1, deny secret")
        if "slow" in sql:
            return QueryResult(status=QueryStatus.TIMEOUT, message="it took too long")
        self._connection.execute(f"PRAGMA reverse_unordered_selects = {int(reverse)}")
        try:
            cursor = self._connection.execute(text)
            rows = tuple(cursor.fetchall())
        except sqlite3.Error as error:
            return QueryResult(status=QueryStatus.ERROR, message=str(error))
        kept = rows[: self.access.max_rows]
        columns = tuple(column[0] for column in cursor.description)
        return QueryResult(status=QueryStatus.OK, columns=columns, rows=kept, truncated=kept != rows)
