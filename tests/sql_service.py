"""The answering service of the `sql` image as the trusted side speaks to it, whatever carries its frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.frames import Frame
from orchestrator.domain.sql import Cell, QueryStatus
from orchestrator.evaluation.cells import decode_rows

LIMITS: Mapping[str, Any] = {
    "query_seconds": 10.0,
    "max_rows": 1000,
    "max_bytes": 4 << 20,
    "heap_bytes": 128 << 20,
    "length_bytes": None,
    "address_bytes": 512 << 20,
}
"""The shipped ones, with lower caps on rows and bytes."""


@dataclass(frozen=True)
class Answered:
    """One result."""

    id: int | str
    status: QueryStatus
    message: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool
    wall_seconds: float

    @property
    def value(self) -> Cell:
        """The only cell of the only row."""
        assert self.status is QueryStatus.OK, self.message
        ((cell,),) = self.rows
        return cell


class SqlService:
    """One container or local runner that answers queries."""

    def __init__(self, send: Callable[[Frame], None], receive: Callable[[], Frame | None]) -> None:
        self._send = send
        self._receive = receive

    def open(self, readable: Mapping[str, Sequence[str]] | None = None, **limits: Any) -> Mapping[str, Any]:
        """The head of `opened`."""
        self._send(Frame({"type": "open", "readable": readable, "limits": {**LIMITS, **limits}}))
        return self._take("opened").head

    def query(self, sql: str | bytes, *, reverse: bool = False) -> Answered:
        self.send(sql, reverse=reverse)
        return self.take()

    def send(self, sql: str | bytes, *, identity: int | str = 1, reverse: bool = False) -> None:
        body = sql.encode() if isinstance(sql, str) else sql
        self._send(Frame({"type": "query", "id": identity, "reverse": reverse}, body))

    def take(self) -> Answered:
        frame = self._take("result")
        head = dict(frame.head)
        del head["type"]
        columns = tuple(head.pop("columns"))
        rows = decode_rows(frame.body, rows=head.pop("rows"), columns=len(columns))
        return Answered(status=QueryStatus(head.pop("status")), columns=columns, rows=rows, **head)

    def describe(self, *, examples: int = 3, values: int = 100) -> Mapping[str, Any]:
        """The body of `described`."""
        self._send(Frame({"type": "describe", "examples": examples, "values": values}))
        frame = self._take("described")
        assert frame.head["status"] == "ok", frame.head
        assert len(frame.body) < 8 << 20
        described: Mapping[str, Any] = json.loads(frame.body)
        return described

    def digest(self) -> str:
        """Of the file, in hex."""
        self._send(Frame({"type": "digest"}))
        return str(self._take("digest").head["sha256"])

    def _take(self, kind: str) -> Frame:
        frame = self._receive()
        assert frame is not None
        assert frame.type == kind, frame.head
        return frame
