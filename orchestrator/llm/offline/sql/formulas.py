"""The body of a hint's statement: comparisons, columns and formulas, by recursive descent."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.llm.offline.sql.logic import Condition, Item
from orchestrator.llm.offline.sql.scanner import Piece
from orchestrator.llm.offline.sql.schema import Field, SchemaView
from orchestrator.llm.offline.sql.words import name_words
from orchestrator.sql.quoting import text_literal

_OPERATORS = frozenset({"=", "==", "!=", "<>", "<", ">", "<=", ">="})


_AGGREGATES = frozenset({"SUM", "COUNT", "AVG", "MAX", "MIN"})


_ARITHMETIC = {"DIVIDE": "/", "SUBTRACT": "-", "MULTIPLY": "*", "ADD": "+"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One `X refers to Y`."""

    phrase: str
    """X; empty if the statement has none."""
    conditions: tuple[Condition, ...] = ()
    formula: Item | None = None
    columns: tuple[Field, ...] = ()
    """Every column that Y names."""
    extreme: tuple[Item, bool] | None = None
    """Y is MAX(column) or MIN(column): the column and whether descending."""

    @property
    def is_name(self) -> bool:
        """Whether Y says nothing but which column X is."""
        return not self.conditions and self.formula is None and self.extreme is None


class Parser:
    """Reads one body; every method leaves the place behind what it has taken."""

    def __init__(self, pieces: list[Piece], schema: SchemaView) -> None:
        self.pieces = pieces[:300]
        self.schema = schema
        self.place = 0
        self.columns: list[Field] = []

    def statement(self, phrase: str) -> Statement:
        """All conditions of the body, its formula if it is one, and the columns it names."""
        conditions: list[Condition] = []
        formula: Item | None = None
        extreme: tuple[Item, bool] | None = None
        while self.place < len(self.pieces):
            start = self.place
            parts = self.expression(0)
            if parts is None:
                self.place = start + 1
                continue
            item = _item(parts)
            condition = self.comparison(item)
            if condition is not None:
                conditions.append(condition)
            elif (found := _extreme(item)) is not None:
                extreme = extreme or found
            elif (item.aggregate or item.parts) and (item.columns or "COUNT(" in item.parts):
                formula = formula or item
        return Statement(phrase, tuple(conditions), formula, tuple(self.columns), extreme)

    def peek(self, offset: int = 0) -> Piece:
        """The piece here, or an empty mark at the end."""
        at = self.place + offset
        return self.pieces[at] if at < len(self.pieces) else Piece("mark", "")

    def expression(self, depth: int) -> tuple[str | Field, ...] | None:
        """Terms joined by arithmetic; None: there is no expression here."""
        left = self.term(depth)
        while left is not None and self.peek().text in {"+", "-", "*", "/"} and self.peek().kind == "mark":
            operator = self.peek().text
            self.place += 1
            right = self.term(depth)
            if right is None:
                break
            left = (*_as_real(left, operator), f" {operator} ", *right)
        return left

    def term(self, depth: int) -> tuple[str | Field, ...] | None:
        """A function call, a column, or a number."""
        piece = self.peek()
        upper = piece.text.upper()
        if depth > 6:
            return None
        if piece.kind == "word" and self.peek(1).text == "(" and upper in {*_ARITHMETIC, *_AGGREGATES, "CAST"}:
            self.place += 2
            return self.call(upper, depth)
        if piece.kind == "mark" and piece.text == "(":
            self.place += 1
            inner = self.expression(depth + 1)
            self.close()
            return None if inner is None else ("(", *inner, ")")
        if piece.kind == "number":
            self.place += 1
            return (piece.text,)
        column = self.column()
        return None if column is None else (column,)

    def call(self, name: str, depth: int) -> tuple[str | Field, ...] | None:
        """A known function, after the parenthesis."""
        if name == "CAST":
            return self.cast(depth)
        return self.arithmetic(name, depth) if name in _ARITHMETIC else self.aggregate(name, depth)

    def cast(self, depth: int) -> tuple[str | Field, ...] | None:
        """CAST(x AS REAL), after the parenthesis."""
        inner = self.expression(depth + 1)
        self.close()
        return None if inner is None else ("CAST(", *inner, " AS REAL)")

    def arithmetic(self, name: str, depth: int) -> tuple[str | Field, ...] | None:
        """DIVIDE(a, b) and its like, after the parenthesis."""
        left = self.operand(depth)
        if self.peek().text == ",":
            self.place += 1
        right = self.operand(depth)
        self.close()
        if left is None or right is None:
            return None
        operator = _ARITHMETIC[name]
        return ("(", *_as_real(left, operator), f" {operator} ", *right, ")")

    def operand(self, depth: int) -> tuple[str | Field, ...] | None:
        """An expression; a comparison in its place counts the rows for which it holds."""
        parts = self.expression(depth + 1)
        if parts is None:
            return None
        condition = self.comparison(_item(parts))
        return parts if condition is None else ("SUM(", *_case(condition, "1"), ")")

    def aggregate(self, name: str, depth: int) -> tuple[str | Field, ...] | None:
        """SUM(...) and its like, after the parenthesis; a comparison inside becomes a CASE."""
        distinct = self.peek().low == "distinct"
        self.place += distinct
        if self.peek().text == "*":
            self.place += 1
            self.close()
            return (f"{name}(", "*", ")")
        inner = self.expression(depth + 1)
        if inner is None:
            return None
        condition = self.comparison(_item(inner))
        value: tuple[str | Field, ...] = ("1",)
        if condition is None:
            condition = self.where()
            is_row = isinstance(inner[0], Field) and inner[0].is_key
            value = ("1",) if is_row or name == "COUNT" else inner
        self.close()
        if condition is None:
            return (f"{name}(DISTINCT " if distinct else f"{name}(", *inner, ")")
        return (f"{name}(", *_case(condition, *value, default=name == "SUM"), ")")

    def where(self) -> Condition | None:
        """`SUM(x WHERE y = 1)`, `COUNT(id WHEN ...)`: the condition after the word."""
        if self.peek().low not in {"where", "when", "if"}:
            return None
        self.place += 1
        parts = self.expression(3)
        return None if parts is None else self.comparison(_item(parts))

    def close(self) -> None:
        """Go past the closing parenthesis that is next."""
        depth = 0
        while self.place < len(self.pieces):
            text = self.pieces[self.place].text if self.pieces[self.place].kind == "mark" else ""
            self.place += 1
            if text == ")" and depth == 0:
                return
            depth += {"(": 1, ")": -1}.get(text, 0)

    def comparison(self, item: Item) -> Condition | None:
        """What follows an item, if it is an operator and a literal."""
        piece = self.peek()
        low = piece.low
        if piece.kind == "mark" and piece.text in _OPERATORS:
            self.place += 1
            literal = self.literal()
            op = {"==": "=", "<>": "!="}.get(piece.text, piece.text)
            return None if literal is None else Condition(item=item, op=op, literals=(literal,))
        if low == "is":
            negated = self.peek(1).low == "not"
            if self.peek(1 + negated).low == "null":
                self.place += 2 + negated
                return Condition(item=item, op="IS NOT NULL" if negated else "IS NULL")
        if low == "between":
            return self.between(item)
        if low == "like" and self.peek(1).kind == "string":
            self.place += 2
            return Condition(item=item, op="LIKE", literals=(text_literal(self.pieces[self.place - 1].text),))
        return None

    def between(self, item: Item) -> Condition | None:
        """BETWEEN a AND b."""
        self.place += 1
        low = self.literal()
        if self.peek().low == "and":
            self.place += 1
        high = self.literal()
        if low is None or high is None:
            return None
        return Condition(item=item, op="BETWEEN", literals=(low, high))

    def literal(self) -> str | None:
        """Quoted text or a number."""
        piece = self.peek()
        if piece.kind == "string" or (piece.kind == "name" and self.column_named(piece.text) is None):
            self.place += 1
            return text_literal(piece.text)
        negative = piece.text == "-" and self.peek(1).kind == "number"
        if piece.kind == "number" or negative:
            self.place += 1 + negative
            return ("-" if negative else "") + self.pieces[self.place - 1].text
        return None

    def column(self) -> Field | None:
        """`column`, `table.column`, or a column's name in several words."""
        piece = self.peek()
        if not piece.is_name:
            return None
        if self.peek(1).text == "." and self.peek(2).is_name:
            found = self.schema.field(piece.text, self.peek(2).text)
            if found is not None:
                self.place += 3
                return self.noted(found)
        for width in (3, 2, 1):
            span = self.pieces[self.place : self.place + width]
            if len(span) == width and all(part.is_name for part in span):
                found = self.column_named(" ".join(part.text for part in span))
                if found is not None:
                    self.place += width
                    return self.noted(found)
        return None

    def noted(self, column: Field) -> Field:
        """The same, remembered."""
        self.columns.append(column)
        return column

    def column_named(self, name: str) -> Field | None:
        """The column with just this name or these words; of several the first that is no foreign key."""
        low, words = name.lower(), name_words(name)
        found = [
            column
            for column in self.schema.fields()
            if column.name.lower() == low or (" " in name and column.words == words)
        ]
        found.sort(key=lambda column: column.is_key and not column.is_primary)
        return found[0] if found else None


def _item(parts: tuple[str | Field, ...]) -> Item:
    """The simplest form of an expression."""
    if len(parts) == 1 and isinstance(parts[0], Field):
        return Item(column=parts[0])
    if len(parts) == 3 and isinstance(parts[0], str) and isinstance(parts[1], Field) and parts[2] == ")":
        name = parts[0].rstrip("(")
        if name in _AGGREGATES:
            return Item(column=parts[1], aggregate=name)
    return Item(parts=parts)


def _extreme(item: Item) -> tuple[Item, bool] | None:
    """MAX or MIN of a column, or of a number of rows: what is extreme, and whether descending."""
    if item.aggregate in {"MAX", "MIN"} and item.column is not None:
        return Item(column=item.column), item.aggregate == "MAX"
    if len(item.parts) > 2 and item.parts[0] in {"MAX(", "MIN("} and item.parts[1] == "COUNT(":
        counted = item.parts[2] if isinstance(item.parts[2], Field) else None
        return Item(column=counted, aggregate="COUNT"), item.parts[0] == "MAX("
    return None


def _case(condition: Condition, *value: str | Field, default: bool = True) -> tuple[str | Field, ...]:
    left: tuple[str | Field, ...] = condition.item.parts or (condition.item.column or "*",)
    right = " AND ".join(condition.literals) if condition.op == "BETWEEN" else " ".join(condition.literals)
    ending = " ELSE 0 END" if default else " END"
    return ("CASE WHEN ", *left, f" {condition.op} {right}", " THEN ", *value, ending)


def _as_real(parts: tuple[str | Field, ...], operator: str) -> tuple[str | Field, ...]:
    return ("CAST(", *parts, " AS REAL)") if operator == "/" else parts
