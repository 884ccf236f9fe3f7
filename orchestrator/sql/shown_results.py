"""A query's result as language models and people are shown it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.sql import Cell, QueryResult, RawText

_MESSAGE_CHARACTERS = 500
_NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBounds:
    """How much of a result is shown."""

    rows: int = 10
    cell_characters: int = 200
    """Where a cell is cut."""
    characters: int = 8_000
    """Of the rows together; rows over it are not shown, but for the first."""


def shown_result(result: QueryResult, bounds: ShownBounds) -> dict[str, Any]:
    """What models see of a result, in JSON: bounded in rows, cells and characters, and always at least one row."""
    rows: list[list[Any]] = []
    room = bounds.characters
    for row in result.rows[: bounds.rows]:
        cells = [shown_cell(cell, bounds.cell_characters) for cell in row]
        room -= sum(len(str(cell)) + 2 for cell in cells)
        if rows and room < 0:
            break
        rows.append(cells)
    return {
        "status": result.status.value,
        "error": _cut(result.message, _MESSAGE_CHARACTERS),
        "columns": [_cut(name, _NAME_CHARACTERS) for name in result.columns],
        "rows": rows,
        "row_count": len(result.rows),
        "truncated": result.truncated,
    }


def shown_cell(cell: Cell, characters: int) -> int | float | str | None:
    """A cell as JSON: long texts cut, blobs as SQLite literals, numbers that are not finite as words."""
    match cell:
        case float() if not math.isfinite(cell):
            return str(cell)
        case bytes():
            return _cut(f"x'{cell[: characters // 2 + 1].hex()}'", characters)
        case RawText():
            return _cut(str(cell), characters)
        case str():
            return _cut(cell, characters)
        case _:
            return cell


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"
