"""The schema section, read: `CREATE TABLE` statements with a JSON comment behind each column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from orchestrator.llm.offline.sql.scanner import Piece, scan
from orchestrator.llm.offline.sql.schema import Edge, Field, SchemaView
from orchestrator.llm.offline.sql.words import name_words

MAX_SCHEMA_CHARACTERS = 400_000


_MAX_TABLES = 200


_MAX_COLUMNS = 600

Keys = list[tuple[str, tuple[str, ...], str, tuple[str, ...]]]
"""(table, its columns, the other table, that one's columns or none for its primary key) of foreign keys."""


_CONSTRAINTS = frozenset({"primary", "foreign", "unique", "check", "constraint"})


@lru_cache(maxsize=64)
def read_schema(text: str) -> SchemaView:
    """The tables of a schema section; what cannot be understood is left out."""
    tables: dict[str, tuple[Field, ...]] = {}
    keys: Keys = []
    pieces = scan(text, MAX_SCHEMA_CHARACTERS)
    place = 0
    while place < len(pieces) and len(tables) < _MAX_TABLES:
        if pieces[place].low == "create":
            place, name, body = statement_at(pieces, place)
            if name and name not in tables:
                columns = columns_of(name, lines_of(body), keys)
                if columns:
                    tables[name] = columns
        else:
            place += 1
    return connected(tables, keys)


def statement_at(pieces: list[Piece], place: int) -> tuple[int, str, list[Piece]]:
    """Past a CREATE statement: where to go on, the table's name, and what is between its parentheses."""
    place += 1
    while place < len(pieces) and pieces[place].low in {"table", "view", "virtual", "temp", "if", "not", "exists"}:
        place += 1
    if place >= len(pieces) or not pieces[place].is_name:
        return place, "", []
    name = pieces[place].text
    while place < len(pieces) and pieces[place].text != "(":
        if pieces[place].low == "create" and pieces[place].kind == "word":
            return place, "", []
        place += 1
    start, depth = place + 1, 0
    while place < len(pieces):
        if pieces[place].kind == "mark":
            depth += {"(": 1, ")": -1}.get(pieces[place].text, 0)
            if depth == 0:
                break
        place += 1
    return place + 1, name, pieces[start:place]


def columns_of(table: str, lines: Iterable[tuple[list[Piece], str]], keys: Keys) -> tuple[Field, ...]:
    """The columns among the definitions, each with its comment; foreign keys are added to `keys`."""
    columns: list[Field] = []
    primary: set[str] = set()
    for line, comment in lines:
        first = line[0]
        if (
            first.kind == "word"
            and first.low in _CONSTRAINTS
            and (len(line) < 2 or line[1].kind != "word" or line[1].low == "key" or first.low != "primary")
        ):
            lists = _name_lists(line)
            if any(piece.low == "primary" for piece in line) and lists:
                primary |= {name.lower() for name in lists[0]}
            elif any(piece.low == "foreign" for piece in line) and lists:
                target = next((line[i + 1].text for i, p in enumerate(line[:-1]) if p.low == "references"), "")
                keys.append((table, lists[0], target, lists[1] if len(lists) > 1 else ()))
            continue
        if not first.is_name or len(columns) >= _MAX_COLUMNS:
            continue
        declared = " ".join(piece.text for piece in line[1:] if piece.kind in {"word", "name"})
        kind = declared.split(" ")[0] if declared else ""
        column = Field(table=table, name=first.text, type=kind, is_primary="primary key" in declared.lower())
        columns.append(_with_comment(column, comment))
        target = next((line[i + 1].text for i, p in enumerate(line[:-1]) if p.low == "references"), "")
        if target:
            lists = _name_lists(line)
            keys.append((table, (first.text,), target, lists[-1] if lists else ()))
    return tuple(replace(c, is_primary=c.is_primary or c.name.lower() in primary) for c in columns)


def lines_of(body: list[Piece]) -> Iterator[tuple[list[Piece], str]]:
    """Definitions between commas with the comment that belongs to each (it may follow the comma)."""
    line: list[Piece] = []
    waiting: list[Piece] = []
    depth = 0
    for piece in body:
        if piece.kind == "comment":
            if line or waiting:
                yield (waiting or line), piece.text
                if not waiting:
                    line = []
                waiting = []
            continue
        if piece.kind == "mark" and piece.text == "," and depth == 0:
            if waiting:
                yield waiting, ""
            waiting, line = line, []
            continue
        if piece.kind == "mark":
            depth += {"(": 1, ")": -1}.get(piece.text, 0)
        line.append(piece)
    if waiting:
        yield waiting, ""
    if line:
        yield line, ""


def _name_lists(line: list[Piece]) -> list[tuple[str, ...]]:
    """The names inside each pair of parentheses."""
    lists: list[tuple[str, ...]] = []
    current: list[str] | None = None
    for piece in line:
        if piece.kind == "mark" and piece.text == "(":
            current = []
        elif piece.kind == "mark" and piece.text == ")" and current is not None:
            lists.append(tuple(current))
            current = None
        elif current is not None and piece.is_name:
            current.append(piece.text)
    return lists


def _with_comment(column: Field, comment: str) -> Field:
    try:
        known: Any = json.loads(comment.removeprefix("--").strip())
    except (ValueError, RecursionError):
        return column
    if not isinstance(known, dict):
        return column
    return replace(
        column,
        title=str(known.get("title", ""))[:200],
        description=(str(known.get("description", "")) + " " + str(known.get("values", ""))).strip()[:600],
        examples=_literals(known.get("examples")),
        matches=_literals(known.get("matches")),
    )


def _literals(listed: object) -> tuple[str, ...]:
    """SQLite literals without their quotes."""
    if not isinstance(listed, list):
        return ()
    texts = []
    for item in listed[:20]:
        pieces = scan(str(item), 500)
        if pieces and pieces[0].kind == "string":
            texts.append(pieces[0].text)
        elif pieces and str(item).strip().upper() != "NULL":
            texts.append(str(item).strip()[:100])
    return tuple(texts)


def connected(tables: dict[str, tuple[Field, ...]], keys: Keys) -> SchemaView:
    """The schema with its edges: declared keys, then equal names where two tables have no key between them."""
    bare = SchemaView(tables)
    edges: list[Edge] = []
    for table, names, target, references in keys:
        other = bare.table(target)
        if other is None:
            continue
        key = bare.key(other)
        ends = references or ((key.name,) if key is not None else ())
        for name, end in zip(names, ends, strict=False):
            left, right = bare.field(table, name), bare.field(other, end)
            if left is not None and right is not None:
                edges.append(Edge(left, right))
    edges.extend(_guessed(bare, {frozenset((edge.left.table, edge.right.table)) for edge in edges}))
    ends_of_keys = {(column.table, column.name) for edge in edges for column in (edge.left, edge.right)}
    marked = {
        name: tuple(replace(c, is_key=c.is_primary or (c.table, c.name) in ends_of_keys) for c in columns)
        for name, columns in tables.items()
    }
    view = SchemaView(marked)
    return SchemaView(marked, tuple(_renewed(view, edge) for edge in edges))


def _renewed(view: SchemaView, edge: Edge) -> Edge:
    left, right = view.field(edge.left.table, edge.left.name), view.field(edge.right.table, edge.right.name)
    return Edge(left or edge.left, right or edge.right, edge.weight)


def _guessed(schema: SchemaView, known: set[frozenset[str]]) -> Iterator[Edge]:
    """Edges that nobody declared: a key column and a column of the same name, or named after the other table."""
    names = list(schema.tables)[:60]
    for table in names:
        key = schema.key(table)
        if key is None:
            continue
        for other in names:
            if other == table or frozenset((table, other)) in known:
                continue
            for column in schema.tables[other]:
                same = column.name.lower() == key.name.lower() and len(column.words) > 1
                named = schema.key(other) != column and column.words and _is_named_after(column, table)
                if same or (named and _fits(column, key)):
                    yield Edge(column, key, 1.4 if same else 2.0)
                    break


def _is_named_after(column: Field, table: str) -> bool:
    own = name_words(table)
    return column.words in {own, (*own, "id")}


def _fits(column: Field, key: Field) -> bool:
    return column.is_number == key.is_number
