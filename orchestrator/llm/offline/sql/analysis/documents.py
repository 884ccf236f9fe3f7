"""JSON in a text: whole documents, fenced ones, and one object to a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.llm.offline.sql.analysis.facts import NAME, add_facts, bare, values_in
from orchestrator.llm.offline.sql.analysis.notes import ColumnNote, Firmness, Notes, TableNote

_BEGIN = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)
_MAX_DOCUMENTS = 5_000
_MAX_FAILURES = 40
_MAX_DEPTH = 12
_MAX_NODES = 200_000
_COLUMNS = ("columns", "fields", "attributes", "cols")
_TABLE_NAME = ("table", "table_name", "name", "tablename")
_COLUMN_NAME = ("column", "column_name", "name", "field", "columnname")
_TYPE = ("type", "data_type", "dtype", "datatype", "column_type", "declared_type")
_VALUES = frozenset([
    "examples", "example", "sample_values", "samples", "sample", "values", "distinct_values", "enum", "top_values",
    "unique_values", "example_values", "most_common", "common_values", "frequent_values", "categories",
])  # fmt: skip
_PRIMARY = ("primary_key", "pk", "is_primary", "is_primary_key", "primary")
_TARGET = ("references", "foreign_key", "fk", "ref", "references_to")
_KEYS = ("foreign_keys", "foreignkeys", "relationships", "relations", "joins", "fks", "keys")
_TITLE = ("title", "meaning", "full_name", "label")
_TEXT = ("description", "comment", "notes", "note")
_CONTAINERS = frozenset(["tables", "schema", "database", "databases", "db", "data", "analysis", "result", "views"])
_PATH = re.compile(rf"(?P<table>{NAME}) ?(?:\. ?(?P<column>{NAME})|\( ?(?P<inner>{NAME}) ?\))")
_ROWS = ("rows", "sample_rows", "example_rows", "data")


def read_documents(text: str, notes: Notes) -> list[tuple[int, int]]:
    """Note the tables of every document; where those documents are that speak of some."""
    spans: list[tuple[int, int]] = []
    failures = 0
    decoder = json.JSONDecoder()
    reached = 0
    for number, found in enumerate(_BEGIN.finditer(text)):
        if found.start() < reached or number >= _MAX_DOCUMENTS or failures >= _MAX_FAILURES:
            continue
        start = found.end() - 1
        try:
            document, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            failures += 1
            continue
        reached = end
        if isinstance(document, dict | list):
            _Walk(notes).node(document, "", 0)
            spans.append((start, end))
    return spans


class _Walk:
    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.left = _MAX_NODES

    def node(self, node: object, hint: str, depth: int) -> None:
        """Any part of a document; `hint` is the name under which it stands."""
        self.left -= 1
        if depth > _MAX_DEPTH or self.left < 0:
            return
        if isinstance(node, list):
            self._list(node, hint, depth)
        elif isinstance(node, dict):
            low = {str(key).lower(): value for key, value in node.items()}
            if not (self._spider(low) or self._table(low, hint) or self._column_record(low)):
                self._other(node, hint, depth)
            for name in _KEYS:
                self._keys(low.get(name), hint if not _is_container(hint) else "")

    def _list(self, node: list[Any], hint: str, depth: int) -> None:
        if hint and not _is_container(hint) and node and all(isinstance(item, str) for item in node):
            self._declare(hint, node)
            return
        for item in node:
            self.node(item, hint, depth + 1)

    def _other(self, node: Mapping[str, Any], hint: str, depth: int) -> None:
        texts = [value for value in node.values() if isinstance(value, str)]
        if hint and not _is_container(hint) and texts and len(texts) == len(node):
            self._declare(hint, node)
            return
        for key, value in node.items():
            if isinstance(value, dict | list) and str(key).lower() not in _KEYS:
                self.node(value, hint if _is_container(str(key)) and hint else str(key), depth + 1)

    def _table(self, low: Mapping[str, Any], hint: str) -> bool:
        columns = next((low[name] for name in _COLUMNS if isinstance(low.get(name), dict | list)), None)
        name = _text(low, _TABLE_NAME) or ("" if _is_container(hint) else hint)
        if columns is None or not name:
            return False
        table = self._declare(name, columns)
        if table is not None:
            self._primary(table, low)
            for key in _KEYS:
                self._keys(low.get(key), table.name)
            for key in _ROWS:
                self._rows(table, low.get(key))
        return True

    def _primary(self, table: TableNote, low: Mapping[str, Any]) -> None:
        named = next((low[name] for name in (*_PRIMARY, "primary_keys") if name in low), None)
        for name in named if isinstance(named, list) else [named]:
            column = table.column(name) if isinstance(name, str) else None
            if column is not None:
                column.is_primary = True

    def _rows(self, table: TableNote, rows: object) -> None:
        names = list(table.columns.values())
        for row in rows[:1_000] if isinstance(rows, list) else []:
            pairs: Iterator[tuple[ColumnNote | None, Any]] = iter(())
            if isinstance(row, dict):
                pairs = ((table.column(str(name)), cell) for name, cell in row.items())
            elif isinstance(row, list):
                pairs = iter(zip(names, row, strict=False))
            for column, cell in pairs:
                if column is not None:
                    self.notes.add_values(column, _scalars([cell]))

    def _declare(self, name: str, columns: object) -> TableNote | None:
        table = self.notes.table(name, Firmness.DECLARED)
        if table is None:
            return None
        pairs: list[tuple[str, Any]] = []
        if isinstance(columns, dict):
            pairs = [(str(key), value) for key, value in columns.items()]
        elif isinstance(columns, list):
            for item in columns:
                if isinstance(item, str):
                    pairs.append((item, None))
                elif isinstance(item, dict):
                    pairs.append((_text({str(k).lower(): v for k, v in item.items()}, _COLUMN_NAME), item))
                elif isinstance(item, list) and item and isinstance(item[0], str):
                    pairs.append((item[0], {"type": item[1] if len(item) > 1 else ""}))
        for column_name, known in pairs:
            column = self.notes.column(table, column_name)
            if column is not None:
                self._facts(table, column, known)
        return table

    def _facts(self, table: TableNote, column: ColumnNote, known: object) -> None:
        if isinstance(known, str):
            add_facts(known, table, column, self.notes)
        elif isinstance(known, list):
            self.notes.add_values(column, _scalars(known))
        if not isinstance(known, dict):
            return
        low = {str(key).lower(): value for key, value in known.items()}
        column.type = column.type or _text(low, _TYPE)[:60]
        column.title = column.title or _text(low, _TITLE)[:200]
        described = _text(low, _TEXT)
        if described:
            add_facts(described, table, column, self.notes, is_typed=True)
        column.is_primary = column.is_primary or any(low.get(name) in (True, "yes", "true") for name in _PRIMARY)
        for name, value in low.items():
            if name in _VALUES:
                self.notes.add_values(column, _scalars(value))
        bounds = tuple(_scalars([low.get("min"), low.get("max")]))
        column.bounds = column.bounds or (bounds if len(bounds) == 2 else ())
        for name in _TARGET:
            self._keys([low[name]] if name in low else None, table.name, column.name)

    def _column_record(self, low: Mapping[str, Any]) -> bool:
        """`{"table": "singer", "column": "name", ...}`."""
        if not (isinstance(low.get("table"), str) or isinstance(low.get("table_name"), str)):
            return False
        name = _text(low, ("column", "column_name", "field"))
        if not name:
            return False
        self._declare(_text(low, ("table", "table_name")), [{**low, "column": name}])
        return True

    def _spider(self, low: Mapping[str, Any]) -> bool:
        """Spider's `tables.json`: parallel lists with indices."""
        tables, columns = low.get("table_names_original"), low.get("column_names_original")
        if not (isinstance(tables, list) and isinstance(columns, list)):
            return False
        types = low.get("column_types")
        places: list[tuple[str, str] | None] = []
        for at, pair in enumerate(columns):
            fits = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], int) and isinstance(pair[1], str)
            if not fits or not 0 <= pair[0] < len(tables):
                places.append(None)
                continue
            table = str(tables[pair[0]])
            kind = types[at] if isinstance(types, list) and at < len(types) else ""
            self._declare(table, [{"name": pair[1], "type": kind if isinstance(kind, str) else ""}])
            places.append((table, pair[1]))
        self._spider_keys(low, places)
        return True

    def _spider_keys(self, low: Mapping[str, Any], places: list[tuple[str, str] | None]) -> None:
        def place(index: object) -> tuple[str, str] | None:
            return places[index] if isinstance(index, int) and 0 <= index < len(places) else None

        for index in low.get("primary_keys") or []:
            found = place(index)
            table = self.notes.find(found[0]) if found is not None else None
            column = table.column(found[1]) if table is not None and found is not None else None
            if column is not None:
                column.is_primary = True
        for pair in low.get("foreign_keys") or []:
            left, right = (
                (place(pair[0]), place(pair[1])) if isinstance(pair, list) and len(pair) == 2 else (None, None)
            )
            if left is not None and right is not None:
                self.notes.add_key(left[0], (left[1],), right[0], (right[1],))

    def _keys(self, listed: object, table: str, column: str = "") -> None:
        """Foreign keys as texts `a.b -> c.d` or objects; `table` and `column` are where they stand."""
        for item in listed[:2_000] if isinstance(listed, list) else [listed]:
            if isinstance(item, str):
                found = [(bare(m["table"]), bare(m["column"] or m["inner"] or "")) for m in _PATH.finditer(item[:500])]
                if len(found) >= 2:
                    self.notes.add_key(found[0][0], (found[0][1],), found[1][0], (found[1][1],))
                elif found and table:
                    own = column or re.split(r"\W+", item.strip())[0]
                    self.notes.add_key(table, (own,), found[0][0], (found[0][1],))
            elif isinstance(item, dict):
                self._key_object({str(key).lower(): value for key, value in item.items()}, table, column)

    def _key_object(self, low: Mapping[str, Any], table: str, column: str) -> None:
        ends = _text(low, ("from", "source", "left")), _text(low, ("to", "target", "right"))
        if all("." in end for end in ends):
            self._keys([" -> ".join(ends)], "")
            return
        own_table = _text(low, ("from_table", "source_table", "child_table")) or table
        own = column or _text(low, ("from_column", "column", "source_column", "from", "child_column", "columns"))
        target = _text(low, ("to_table", "ref_table", "referenced_table", "references_table", "target_table",
                             "parent_table", "foreign_table", "references", "table"))  # fmt: skip
        end = _text(low, ("to_column", "ref_column", "referenced_column", "references_column", "target_column",
                          "parent_column", "foreign_column", "to", "column"))  # fmt: skip
        if own and target:
            if "." in target:
                target, _, end = target.partition(".")
            self.notes.add_key(own_table, (own,), target, (end,) if end else ())


def _is_container(name: str) -> bool:
    return name.lower() in _CONTAINERS or name.lower() in _KEYS


def _text(low: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of some members that is a text; of a list with one text that text; empty: none is."""
    for name in names:
        value = low.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _scalars(value: object) -> Iterator[str]:
    """Values however they are listed: plain, with counts, or as a text."""
    if isinstance(value, str):
        found = list(values_in(f"values: {value}"))
        yield from found or [value]
    elif isinstance(value, dict):
        yield from (str(key) for key in value)
    elif isinstance(value, list):
        for item in value:
            inner = item
            if isinstance(item, list) and item:
                inner = item[0]
            elif isinstance(item, dict):
                inner = item.get("value", item.get("v"))
            if isinstance(inner, str):
                yield inner
            elif isinstance(inner, int | float) and not isinstance(inner, bool):
                yield str(inner)
