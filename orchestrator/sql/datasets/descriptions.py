"""What data sets say of columns: BIRD's CSV files and the `tables.json` that both layouts know."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from orchestrator.sql.datasets.dataset import ColumnText, Descriptions, folded
from orchestrator.sql.datasets.folder import MAX_TEXT_BYTES, DataFolder, entries, entry_list, validated

_NAME_FIELD = "original_column_name"


class _TablesEntry(BaseModel):
    """One database in `tables.json`; what we do not need is not looked at."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    db_id: str
    table_names_original: tuple[str, ...] = ()
    column_names_original: tuple[tuple[int, str], ...] = ()
    """Number of the table (-1: of none) and name."""
    column_names: tuple[tuple[int, str], ...] = ()
    """The same columns in words."""


def read_tables(folder: DataFolder, path: Path) -> dict[str, Descriptions]:
    """Titles of columns by database, its id as `folded` gives it.

    Raises:
        InputError: The file or one of its entries is malformed.
    """
    listed = entry_list(folder.read_json(path), path)
    found = [validated(_TablesEntry, entry, f"{path}: entry {at}") for at, entry in enumerate(listed, 1)]
    return {folded(entry.db_id): dict(_titles(entry)) for entry in found}


def read_descriptions(folder: DataFolder, path: Path) -> tuple[Descriptions, list[str]]:
    """What the CSV files of a folder say, one file a table, and which of them say nothing.

    Raises:
        InputError: A file cannot be read.
    """
    described: dict[tuple[str, str], ColumnText] = {}
    orphans: list[str] = []
    for file in entries(path):
        if file.suffix.casefold() != ".csv":
            continue
        try:
            rows = list(_rows(folder.read(file, MAX_TEXT_BYTES)))
        except csv.Error as error:
            orphans.append(f"description {file.name!r} in {path.parent.name!r} is no CSV file ({error})")
            continue
        if not rows:
            orphans.append(f"description {file.name!r} in {path.parent.name!r} names no column")
        for name, text in rows:
            described.setdefault((folded(file.stem), folded(name)), text)
    return described, orphans


def merged(first: Descriptions, second: Descriptions) -> Descriptions:
    """Both; where both say something of one field, the first."""
    return {key: _merged(first.get(key), second.get(key)) for key in {**first, **second}}


def _merged(first: ColumnText | None, second: ColumnText | None) -> ColumnText:
    mine, other = first or ColumnText(), second or ColumnText()
    return ColumnText(
        title=mine.title or other.title,
        description=mine.description or other.description,
        value_description=mine.value_description or other.value_description,
    )


def _titles(entry: _TablesEntry) -> Iterator[tuple[tuple[str, str], ColumnText]]:
    if len(entry.column_names) != len(entry.column_names_original):
        return
    for (table, name), (_, title) in zip(entry.column_names_original, entry.column_names, strict=True):
        if 0 <= table < len(entry.table_names_original) and title.strip():
            yield (folded(entry.table_names_original[table]), folded(name)), ColumnText(title=title.strip())


def _rows(text: str) -> Iterator[tuple[str, ColumnText]]:
    """Columns of one table; fields without a name, which some editors add, are passed over."""
    rows = csv.reader(io.StringIO(text, newline=""))
    header = [folded(field) for field in next(rows, [])]
    if _NAME_FIELD not in header:
        return
    for row in rows:
        fields = {name: value.strip() for name, value in zip(header, row, strict=False) if name}
        if fields.get(_NAME_FIELD):
            yield (
                fields[_NAME_FIELD],
                ColumnText(
                    title=fields.get("column_name", ""),
                    description=fields.get("column_description", ""),
                    value_description=fields.get("value_description", ""),
                ),
            )
