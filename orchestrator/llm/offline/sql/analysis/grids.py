"""Tables in a text: Markdown and CSV, of columns (one to a row) or of rows of the database."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from orchestrator.llm.offline.sql.analysis.facts import NAME, add_facts, bare, values_in
from orchestrator.llm.offline.sql.analysis.notes import ColumnNote, Firmness, Notes, TableNote

_ROLES: Mapping[str, str] = {
    **dict.fromkeys(("column", "column name", "columnname", "field", "field name", "attribute", "name"), "column"),
    **dict.fromkeys(("table", "table name", "tablename", "relation"), "table"),
    **dict.fromkeys(("type", "data type", "datatype", "dtype", "declared type", "sql type"), "type"),
    **dict.fromkeys(("columns", "fields"), "columns"),
    **dict.fromkeys(("key", "keys", "pk", "constraint", "constraints", "primary key"), "key"),
    **dict.fromkeys(("fk", "foreign key", "references"), "target"),
    **dict.fromkeys(("description", "meaning", "comment", "notes", "note", "title", "remarks", "details"), "text"),
    **dict.fromkeys(("example", "examples", "sample", "samples", "values", "value", "sample values", "example values",
                     "distinct values", "top values", "common values", "frequent values", "unique values", "enum",
                     "most common", "example value", "sample value", "sample data"), "values"),
    **dict.fromkeys(("min", "minimum", "lowest"), "min"),
    **dict.fromkeys(("max", "maximum", "highest"), "max"),
}  # fmt: skip
_TARGET = re.compile(rf"({NAME}) ?[.(] ?({NAME}) ?\)?")
_YES = frozenset(["pk", "yes", "true", "1", "x", "✓", "primary", "pri"])
_RULE = re.compile(r"[\s|:+=-]+")
_DELIMITERS = ("|", "\t", ";", ",")
_MAX_CELLS = 700
_MAX_ROWS = 2_000
_PLAIN_COUNT = re.compile(r"[\d,.% ]*")


class Grids:
    """Recognises a header and reads the rows below it."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._delimiter = ""
        self._roles: list[str] = []
        self._columns: list[ColumnNote | None] = []
        self._table: TableNote | None = None
        self._rows = 0

    def end(self) -> None:
        """The grid, if there was one, is over."""
        self._delimiter, self._roles, self._columns, self._rows = "", [], [], 0

    def line(self, line: str, table: TableNote | None) -> bool:
        """Whether a line is part of a grid; what it says is noted. `table` is the one that is spoken of."""
        if self._delimiter:
            if _RULE.fullmatch(line):
                return True
            cells = _cells(line, self._delimiter)
            width = len(self._roles or self._columns)
            if len(cells) == width or (self._delimiter == "|" and len(cells) > 1):
                self._row(cells)
                return True
            self.end()
        return any(delimiter in line and self._header(line, delimiter, table) for delimiter in _DELIMITERS)

    def _header(self, line: str, delimiter: str, table: TableNote | None) -> bool:
        cells = _cells(line, delimiter)
        if not 2 <= len(cells) <= _MAX_CELLS:
            return False
        roles = [_ROLES.get(cell.lower().replace("_", " ").strip(" #*"), "") for cell in cells]
        named = [table.column(bare(cell)) if table is not None else None for cell in cells]
        if table is not None and sum(column is not None for column in named) >= max(2, round(0.6 * len(cells))):
            self._delimiter, self._columns, self._roles = delimiter, named, []
        elif ("column" in roles or "columns" in roles) and ("table" in roles or sum(map(bool, roles)) > 1):
            self._delimiter, self._roles, self._columns = delimiter, roles, []
            if "columns" in roles and "column" in roles:  # | Name | Columns |
                self._roles = ["table" if role == "column" else role for role in roles]
        else:
            return False
        self._table, self._rows = table, 0
        return True

    def _row(self, cells: Sequence[str]) -> None:
        self._rows += 1
        if self._rows > _MAX_ROWS:
            return
        if self._columns:
            self._sample(cells)
            return
        said: dict[str, list[str]] = {}
        for role, cell in zip(self._roles, cells, strict=False):
            if role and cell:
                said.setdefault(role, []).append(cell)
        table = self._owner(said)
        if table is not None and "column" in said:
            self._column(table, said)
        elif table is not None and "columns" in said and table.firmness is not Firmness.DECLARED:
            for name in re.split(r"\s*[,;]\s*", said["columns"][0]):
                if not name.isdigit():
                    self._notes.column(table, bare(name.split(" ")[0]))

    def _sample(self, cells: Sequence[str]) -> None:
        """A row of the database."""
        for column, cell in zip(self._columns, cells, strict=False):
            if column is not None and cell.upper() not in {"NULL", "NONE", "NAN"}:
                self._notes.add_values(column, [bare(cell) if cell[:1] in {'"', "`"} else cell.strip("'")])

    def _owner(self, said: Mapping[str, Sequence[str]]) -> TableNote | None:
        if "table" not in said:
            return self._table
        name = bare(said["table"][0])
        known = self._notes.find(name)
        declared = any(table.firmness is Firmness.DECLARED for table in self._notes.tables.values())
        return known if known is not None or declared else self._notes.table(name, Firmness.NAMED)

    def _column(self, table: TableNote, said: Mapping[str, Sequence[str]]) -> None:
        name = bare(said["column"][0].strip("`* "))
        if "." in name and table.column(name) is None:
            name = bare(name.rpartition(".")[2])
        column = table.column(name)
        if column is None and table.firmness is not Firmness.DECLARED:
            column = self._notes.column(table, name)
        if column is None:
            return
        if not column.type and "type" in said:
            column.type = said["type"][0].split("(")[0].strip(" `")[:40]
        self._keys(table, column, said)
        for text in said.get("text", ()):
            add_facts(text, table, column, self._notes, is_typed=True)
        for text in said.get("values", ()):
            if _PLAIN_COUNT.fullmatch(text) is None or "," in text or not column.values:
                self._notes.add_values(column, values_in(f"values: {text}"))
        bounds = (*said.get("min", ())[:1], *said.get("max", ())[:1])
        if len(bounds) == 2 and not column.bounds:
            column.bounds = tuple(bound.strip("'\"` ") for bound in bounds)

    def _keys(self, table: TableNote, column: ColumnNote, said: Mapping[str, Sequence[str]]) -> None:
        """`PK`, `yes`, `FK -> singer.id`, `singer(id)`."""
        for text in (*said.get("key", ()), *said.get("target", ())):
            target = _TARGET.fullmatch(text)
            if target is not None:
                self._notes.add_key(table.name, (column.name,), bare(target[1]), (bare(target[2]),))
            elif text.lower() not in _YES:
                add_facts(text, table, column, self._notes, is_typed=True)
            elif text in said.get("key", ()):
                column.is_primary = True


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == "|":
        inner = line.strip().removeprefix("|").removesuffix("|").replace("\\|", "\0")
        return [cell.replace("\0", "|").strip() for cell in inner.split("|")]
    try:
        row = next(csv.reader([line.strip("\r\n")], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in row]
