"""What a `result` frame says, checked; the container that sent it ran untrusted SQL."""

from __future__ import annotations

import math

from orchestrator.domain.frames import Frame
from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.errors import ProtocolError
from orchestrator.evaluation.cells import decode_rows, holds_raw_text

MAX_COLUMNS = 500
_MESSAGE_CHARACTERS = 500


def result_of(frame: Frame, number: int, *, max_rows: int, max_bytes: int) -> QueryResult:
    """The result of one query.

    Args:
        frame: Untrusted.
        number: Of the query it must belong to.
        max_rows: As the container was told.
        max_bytes: Likewise, of the body.

    Raises:
        ProtocolError: It is not a well-formed result of this query within its caps.
    """
    head = frame.head
    if frame.type != "result" or head.get("id") != number or type(head.get("id")) is not int:
        msg = f"a frame {frame.type!r:.40} with id {head.get('id')!r:.40} came where the result of {number} was due"
        raise ProtocolError(msg)
    status = _status(head.get("status"))
    columns, rows, truncated = _names(head.get("columns")), head.get("rows"), head.get("truncated")
    if (
        type(rows) is not int
        or not 0 <= rows <= max_rows
        or not isinstance(truncated, bool)
        or len(frame.body) > max_bytes
        or (status is not QueryStatus.OK and (rows or frame.body))
    ):
        msg = f"a result of {rows!r:.40} rows and {len(frame.body)} bytes with status {status.value!r} is malformed"
        raise ProtocolError(msg)
    cells = decode_rows(frame.body, rows=rows, columns=len(columns))
    return QueryResult(
        status=status,
        message=" ".join(str(head.get("message", "")).split())[:_MESSAGE_CHARACTERS],
        columns=columns,
        rows=cells,
        truncated=truncated,
        lossy_text=holds_raw_text(cells),
        wall_seconds=_seconds(head.get("wall_seconds")),
    )


def _status(value: object) -> QueryStatus:
    try:
        return QueryStatus(str(value))
    except ValueError as error:
        msg = f"a result has the unknown status {value!r:.40}"
        raise ProtocolError(msg) from error


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_COLUMNS or not all(isinstance(name, str) for name in value):
        msg = f"the columns of a result are not at most {MAX_COLUMNS} names: {value!r:.80}"
        raise ProtocolError(msg)
    return tuple(value)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        msg = f"a result took {value!r:.40} seconds"
        raise ProtocolError(msg)
    return float(value)
