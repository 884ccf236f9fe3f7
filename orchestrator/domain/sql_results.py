"""Results of queries as bytes, exact to the last cell, for a run's blobs.

JSON, compressed. A cell that JSON does not know is an object with one member: `{"b": base64}` a blob, `{"t": base64}`
text that is not UTF-8, `{"f": "inf"}` a number that is not finite.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from typing import Any

from orchestrator.domain.sql import Cell, QueryResult, QueryStatus, RawText
from orchestrator.errors import RunStateError

_MAX_BYTES = 1 << 30


def result_bytes(result: QueryResult) -> bytes:
    """All of a result but how long it took, so that equal results have equal bytes."""
    document = {
        "status": result.status.value,
        "message": result.message,
        "columns": list(result.columns),
        "rows": [[_to_json(cell) for cell in row] for row in result.rows],
        "truncated": result.truncated,
        "lossy_text": result.lossy_text,
    }
    return zlib.compress(json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii"), level=1)


def result_from_bytes(content: bytes) -> QueryResult:
    """The inverse of `result_bytes`.

    Raises:
        RunStateError: The bytes hold no result.
    """
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(content, _MAX_BYTES)
        if not unpacker.eof:
            msg = "it is cut off, or too long"
            raise ValueError(msg)  # noqa: TRY301 - told like all that can be wrong with it
        document = json.loads(text)
        return QueryResult(
            status=QueryStatus(document["status"]),
            message=str(document["message"]),
            columns=tuple(map(str, document["columns"])),
            rows=tuple(tuple(map(_from_json, row)) for row in document["rows"]),
            truncated=bool(document["truncated"]),
            lossy_text=bool(document["lossy_text"]),
        )
    except (zlib.error, binascii.Error, ValueError, LookupError, TypeError, RecursionError) as error:
        msg = f"stored content is no result of a query ({type(error).__name__}); restore the run from a copy"
        raise RunStateError(msg) from error


def _to_json(cell: Cell) -> Any:  # noqa: ANN401 - any JSON value
    match cell:
        case float() if not math.isfinite(cell):
            return {"f": repr(cell)}
        case bytes():
            return {"b": base64.b64encode(cell).decode("ascii")}
        case RawText():
            return {"t": base64.b64encode(cell.raw).decode("ascii")}
        case _:
            return cell


def _from_json(value: Any) -> Cell:  # noqa: ANN401 - any JSON value
    match value:
        case {"f": str(text)}:
            return float(text)
        case {"b": str(text)}:
            return base64.b64decode(text, validate=True)
        case {"t": str(text)}:
            return RawText(base64.b64decode(text, validate=True))
        case None | int() | float() | str():
            return value
        case _:
            msg = "a cell is of no known kind"
            raise ValueError(msg)
