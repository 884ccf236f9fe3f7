"""What a query does, read from its text: enough to compare it with a question, whoever wrote it.

No parser of SQL: a scan that follows parentheses and keywords. What it does not understand it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from orchestrator.llm.offline.sql.scanner import Piece, scan
from orchestrator.llm.offline.sql.schema import Field, SchemaView

_CLAUSES = frozenset({"select", "from", "where", "group", "having", "order", "limit"})
_OPERATIONS = frozenset({"intersect", "except", "union"})
_AGGREGATES = frozenset({"count", "sum", "avg", "max", "min"})


@dataclass(frozen=True, slots=True)
class Output:
    """One item of the outermost SELECT."""

    column: Field | None
    aggregate: str
    """Lower case; empty if there is none."""
    distinct: bool
    is_expression: bool
    """More than a column or an aggregate of one."""


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison with literals somewhere in the query."""

    column: Field | None
    op: str
    literals: tuple[str, ...]
    """Without quotes."""
    depth: int


@dataclass(slots=True)
class Profile:
    """Facts of one query."""

    outputs: list[Output] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    """In FROM clauses, each as often as it is there."""
    unknown: list[str] = field(default_factory=list)
    """Names that the schema does not have."""
    columns: set[Field] = field(default_factory=set)
    """Everywhere in the query, but for what only joins tables."""
    tests: list[Test] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    """Keywords and functions, lower case."""
    group: list[Field] = field(default_factory=list)
    order: list[Field] = field(default_factory=list)
    counts_in_order: bool = False
    descending: bool = False
    limit: int | None = None
    distinct: bool = False
    joins: set[frozenset[Field]] = field(default_factory=set)
    depth: int = 0
    """How deeply subqueries are nested."""

    @property
    def literals(self) -> set[str]:
        """All literals that are compared with."""
        return {literal for test in self.tests for literal in test.literals}

    @property
    def denies(self) -> bool:
        """Whether something is excluded."""
        return "except" in self.words or "not" in self.words or any(test.op in {"!=", "<>"} for test in self.tests)


@lru_cache(maxsize=4096)
def profile_of(sql: str, schema: SchemaView) -> Profile:
    """The facts of a query, not to be changed; unknown names are noted, and nothing raises."""
    pieces = tuple(piece for piece in scan(sql) if piece.kind != "comment")
    found = Profile()
    scopes = _scopes(pieces)
    aliases = _tables(pieces, scopes, schema, found)
    depths = _depths(pieces)
    found.depth = max(depths, default=0)
    clauses = _clauses(pieces)
    resolved = [_column_at(pieces, place, schema, aliases, scopes[place], found) for place in range(len(pieces))]
    found.words = {piece.low for piece in pieces if piece.low}
    _read_outputs(pieces, depths, resolved, found)
    _read_tests(pieces, depths, clauses, resolved, found)
    _read_rest(pieces, depths, resolved, found)
    found.columns = {c for place, c in enumerate(resolved) if c is not None and clauses[place] != "from"}
    return found


def _depths(pieces: tuple[Piece, ...]) -> list[int]:
    """How many SELECTs in parentheses each piece is inside of."""
    depths: list[int] = []
    stack: list[bool] = []
    for place, piece in enumerate(pieces):
        if piece.kind == "mark" and piece.text == "(":
            stack.append(place + 1 < len(pieces) and pieces[place + 1].low in {"select", "with"})
        depths.append(sum(stack))
        if piece.kind == "mark" and piece.text == ")" and stack:
            stack.pop()
    return depths


def _clauses(pieces: tuple[Piece, ...]) -> list[str]:
    """The clause each piece belongs to; a subquery begins its own and gives the outer one back."""
    labels: list[str] = []
    stack: list[str] = []
    label = ""
    for piece in pieces:
        if piece.kind == "mark" and piece.text == "(":
            stack.append(label)
        elif piece.kind == "mark" and piece.text == ")" and stack:
            label = stack.pop()
        elif piece.low in _CLAUSES:
            label = piece.low
        labels.append(label)
    return labels


def _scopes(pieces: tuple[Piece, ...]) -> list[tuple[int, ...]]:
    """For each piece the numbers of the SELECTs it is inside of, the innermost last."""
    scopes: list[tuple[int, ...]] = []
    stack: list[tuple[int, ...]] = []
    scope: tuple[int, ...] = (0,)
    number = 0
    for place, piece in enumerate(pieces):
        if piece.kind == "mark" and piece.text == "(":
            stack.append(scope)
            if place + 1 < len(pieces) and pieces[place + 1].low in {"select", "with"}:
                number += 1
                scope = (*scope, number)
        elif piece.kind == "mark" and piece.text == ")" and stack:
            scope = stack.pop()
        elif piece.low in _OPERATIONS:
            number += 1
            scope = (*scope[:-1], number)
        scopes.append(scope)
    return scopes


def _tables(
    pieces: tuple[Piece, ...], scopes: list[tuple[int, ...]], schema: SchemaView, found: Profile
) -> dict[int, dict[str, str]]:
    """For each SELECT the aliases and names of the tables in its FROM, to tables of the schema."""
    aliases: dict[int, dict[str, str]] = {}
    for place, piece in enumerate(pieces[:-1]):
        if piece.low not in {"from", "join"} or not pieces[place + 1].is_name:
            continue
        name = pieces[place + 1].text
        table = schema.table(name)
        if table is None:
            found.unknown.append(name)
            continue
        found.tables.append(table)
        here = aliases.setdefault(scopes[place][-1], {})
        here[name.lower()] = table
        after = place + 2
        if after < len(pieces) and pieces[after].low == "as":
            after += 1
        if (
            after < len(pieces)
            and pieces[after].is_name
            and pieces[after].low
            not in _CLAUSES | _OPERATIONS | {"join", "on", "inner", "left", "cross", "natural", "using", "as"}
        ):
            here[pieces[after].text.lower()] = table
    return aliases


def _column_at(
    pieces: tuple[Piece, ...],
    place: int,
    schema: SchemaView,
    aliases: dict[int, dict[str, str]],
    scope: tuple[int, ...],
    found: Profile,
) -> Field | None:
    """The column whose name ends at a place; inner SELECTs see the tables of outer ones."""
    piece = pieces[place]
    following = pieces[place + 1].text if place + 1 < len(pieces) else ""
    if not piece.is_name or following in {"(", "."}:
        return None
    if place >= 2 and pieces[place - 1].text == ".":
        alias = pieces[place - 2].text.lower()
        table = next((t for s in reversed(scope) if (t := aliases.get(s, {}).get(alias)) is not None), None)
        column = schema.field(table, piece.text) if table is not None else None
        if table is not None and column is None:
            found.unknown.append(f"{pieces[place - 2].text}.{piece.text}")
        return column
    before = pieces[place - 1].low if place else ""
    if before in {"from", "join", "as"}:
        return None
    near = [table for s in reversed(scope) for table in aliases.get(s, {}).values()]
    return next((c for table in near if (c := schema.field(table, piece.text)) is not None), None)


def _read_outputs(pieces: tuple[Piece, ...], depths: list[int], resolved: list[Field | None], found: Profile) -> None:
    for span in _items(pieces, depths, "select"):
        inside = [pieces[place] for place in span]
        functions = [piece.low for piece in inside if piece.low in _AGGREGATES]
        columns = [c for place in span if (c := resolved[place]) is not None]
        plain = {piece.low for piece in inside} <= {
            "distinct",
            "select",
            *_AGGREGATES,
            "as",
            "all",
            *(p.low for p in inside if p.is_name),
        }
        marks = {piece.text for piece in inside if piece.kind == "mark"}
        found.outputs.append(
            Output(
                columns[0] if columns else None,
                functions[0] if functions else "",
                any(piece.low == "distinct" for piece in inside) and bool(functions),
                len(columns) > 1 or not plain or bool(marks & {"+", "-", "/", "||"}),
            )
        )
        if inside and inside[0].low == "distinct":
            found.distinct = True


def _items(pieces: tuple[Piece, ...], depths: list[int], clause: str) -> Iterator[list[int]]:
    """The places of each item between the commas of the first clause of that name at the outermost level."""
    span: list[int] = []
    parentheses = 0
    begun = False
    for place, piece in enumerate(pieces):
        if depths[place] == 0 and piece.low == clause and not begun:
            begun = True
            continue
        if not begun:
            continue
        if depths[place] == 0 and (piece.low in _CLAUSES | _OPERATIONS) and parentheses == 0:
            break
        if piece.kind == "mark":
            parentheses += {"(": 1, ")": -1}.get(piece.text, 0)
        if piece.kind == "mark" and piece.text == "," and parentheses == 0:
            yield span
            span = []
        elif not (piece.low == "by" and not span):
            span.append(place)
    if span:
        yield span


def _read_tests(
    pieces: tuple[Piece, ...], depths: list[int], clauses: list[str], resolved: list[Field | None], found: Profile
) -> None:
    """Comparisons with literals, and the equalities that join."""
    subject: Field | None = None
    op = ""
    for place, piece in enumerate(pieces):
        column = resolved[place]
        if column is not None:
            if op == "=" and subject is not None and clauses[place] == "from":
                found.joins.add(frozenset((subject, column)))
            subject, op = column, ""
        elif piece.kind == "mark" and piece.text in {"=", "==", "!=", "<>", "<", ">", "<=", ">="}:
            op = {"==": "=", "<>": "!="}.get(piece.text, piece.text)
        elif piece.low in {"like", "in", "between", "not", "is"}:
            op = piece.low if op != "not" else f"not {piece.low}"
        elif piece.low in {"count", "sum", "avg", "min", "max"}:
            subject = None
        elif (
            piece.kind in {"string", "number"} and op and clauses[place] in {"where", "having", "from", "select"}
        ) or (piece.kind == "name" and column is None and op and clauses[place] in {"where", "having"}):
            found.tests.append(Test(subject, op, (piece.text,), depths[place]))
        elif piece.low in {"and", "or", "where", "on", "when"} and op != "between":
            op = ""


def _read_rest(pieces: tuple[Piece, ...], depths: list[int], resolved: list[Field | None], found: Profile) -> None:
    for span in _items(pieces, depths, "group"):
        found.group.extend(c for place in span if (c := resolved[place]) is not None)
    for span in _items(pieces, depths, "order"):
        words = {pieces[place].low for place in span}
        found.order.extend(c for place in span if (c := resolved[place]) is not None)
        found.counts_in_order = found.counts_in_order or "count" in words
        found.descending = found.descending or "desc" in words
    for place, piece in enumerate(pieces[:-1]):
        if piece.low == "limit" and depths[place] == 0 and pieces[place + 1].text.isdigit():
            found.limit = int(pieces[place + 1].text)
