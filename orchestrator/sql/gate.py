"""The first of the two locks before a database: one parsed, read-only query, or a refusal.

Two readers must agree. The first cuts the text into tokens as SQLite does and decides, without any grammar, what kind
of statement SQLite will see, that it is the only one, and which functions it calls; in its grammar a statement that
begins with SELECT, or with WITH and goes on with SELECT, can only be a query. The second, sqlglot, must read it as a
query made of known parts. What is executed is a part of the text as it was given, never regenerated. The second lock is
the engine's authorizer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from orchestrator.sql.functions import CALLABLE
from orchestrator.sql.reader import UnaryPlus, Unreadable, read
from orchestrator.sql.tokens import Kind, NotTokens, Token, tokenise

MAX_CHARACTERS = 20_000
"""The longest of about 11,000 real queries has 1,740."""
MAX_NESTING = 24
"""Parentheses inside each other; sqlglot's recursion ends at about 47. The real queries at hand need 3."""


class Refusal(Exception):
    """A text that is not to be executed."""

    def __init__(self, reason: str) -> None:
        """Keep the reason.

        Args:
            reason: One line that names the thing and the value; may quote the text, escaped and cut.
        """
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One read-only query."""

    text: str
    """As given, without the comments and semicolons before and after it."""
    has_top_level_order: bool
    """Whether the order of its rows is part of what it says; a subquery's ORDER BY does not count."""
    tree: exp.Expr = field(repr=False, compare=False)
    """sqlglot's reading of it, for this package alone, and never changed."""


def check(sql: str) -> Statement:
    """Read a text as one read-only query.

    Args:
        sql: Untrusted; any text at all.

    Raises:
        Refusal: It is anything else, or too long or too deep to tell.
    """
    tokens = _tokens(sql)
    text = sql[tokens[0].start : tokens[-1].end]
    _check_kind(tokens)
    _check_nesting(tokens)
    _check_calls(tokens)
    tree = _tree(tokens)
    _check_tree(tree)
    return Statement(text=text, has_top_level_order=_has_top_level_order(tokens), tree=tree)


def _tokens(sql: str) -> Sequence[Token]:
    """The tokens of the one statement."""
    if len(sql) > MAX_CHARACTERS:
        raise Refusal(f"the query has {len(sql)} characters; {MAX_CHARACTERS} are allowed")
    if "\0" in sql:
        raise Refusal(f"the query holds a NUL at character {sql.index(chr(0)) + 1}")
    if (at := next((n for n, letter in enumerate(sql, 1) if "\ud800" <= letter <= "\udfff"), None)) is not None:
        raise Refusal(f"the query holds half a surrogate pair at character {at}")
    try:
        tokens = tokenise(sql)
    except NotTokens as error:
        raise Refusal(f"syntax error: {error}") from error
    statement = _until_semicolon(tokens)
    if not statement:
        raise Refusal("the query is empty")
    behind = next((token for token in tokens[len(statement) :] if token.text != ";"), None)
    if behind is not None:
        raise Refusal(f"there is more than one statement; the second begins with {_shown(behind.text)}")
    return statement


def _until_semicolon(tokens: Sequence[Token]) -> Sequence[Token]:
    return tokens[: next((n for n, token in enumerate(tokens) if token.text == ";"), len(tokens))]


def _check_kind(tokens: Sequence[Token]) -> None:
    first = tokens[0]
    verb = first
    if first.keyword == "WITH":
        outside = (token for token, depth in _with_depth(tokens) if depth == 0 and token.keyword in _VERBS)
        verb = next(outside, first)
    if verb.keyword != "SELECT":
        raise Refusal(f"only SELECT is allowed, not {_shown(verb.text)}")
    parameter = next((token for token in tokens if token.kind is Kind.PARAMETER), None)
    if parameter is not None:
        raise Refusal(f"the parameter {_shown(parameter.text)} has no value")


_VERBS = {"SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"}
"""What may follow the common table expressions of a WITH; REPLACE as the bare name of one is refused along with it."""


def _check_nesting(tokens: Sequence[Token]) -> None:
    depths = [depth for _, depth in _with_depth(tokens)]
    if min(depths) < 0:
        raise Refusal("a parenthesis is closed that was not opened")
    if max(depths) > MAX_NESTING:
        raise Refusal(f"the query is nested {max(depths)} deep; {MAX_NESTING} are allowed")


def _with_depth(tokens: Iterable[Token]) -> Iterator[tuple[Token, int]]:
    """Every token with the number of parentheses it is in; a parenthesis is outside itself."""
    depth = 0
    for token in tokens:
        depth -= token.text == ")"
        yield token, depth
        depth += token.text == "("


def _check_calls(tokens: Sequence[Token]) -> None:
    for n in range(1, len(tokens)):
        called = tokens[n - 1]
        if tokens[n].text == "(" and _is_call(tokens, n - 1) and called.name.lower() not in CALLABLE:
            raise Refusal(f"there is no function {_shown(called.name)} that a query may call")


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name before a parenthesis calls a function.

    It does not in a type, whose words follow AS or each other (`CAST(a AS double precision(9))`), nor where a common
    table expression is named (`WITH a(b) AS (`).
    """
    if not tokens[at].name:
        return False
    before = tokens[at - 1] if at else None
    if before is not None and (before.keyword == "AS" or before.name or before.kind is Kind.STRING):
        return False
    depths = _with_depth(itertools.islice(tokens, at + 1, None))
    close = next(
        (n for n, (token, depth) in enumerate(depths, at + 1) if token.text == ")" and depth == 0), len(tokens)
    )
    after = [token.keyword or token.text for token in tokens[close + 1 : close + 5]]
    body = [word for word in after[1:] if word not in {"NOT", "MATERIALIZED"}]
    return not (after[:1] == ["AS"] and body[:1] == ["("])


def _tree(tokens: Sequence[Token]) -> exp.Expr:
    try:
        trees = read(" ".join(token.text for token in tokens))  # no comments: sqlglot has no place for some
    except Unreadable as error:
        raise Refusal(str(error)) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise Refusal(f"only SELECT is allowed; the query reads as {type(tree).__name__}")
    return tree


def _check_tree(tree: exp.Expr) -> None:
    for node in tree.walk():
        if type(node) not in _PARTS:
            raise Refusal(f"a query has no place for {type(node).__name__}: {_shown(node.name or node.key)}")
        table = node.args.get("field") if isinstance(node, exp.In) else node if isinstance(node, exp.Table) else None
        if table is not None and table.name.lower().startswith(_INTERNAL):
            raise Refusal(f"the table {_shown(table.name)} is internal to SQLite")


_INTERNAL = ("sqlite_", "pragma_", "dbstat")

_PARTS = {
    *(exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.Values, exp.With, exp.CTE),
    *(exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered),
    *(exp.Limit, exp.Offset, exp.Distinct, exp.Window, exp.WindowSpec, exp.Filter, exp.Alias, exp.Star),
    *(exp.Column, exp.Identifier, exp.Literal, exp.HexString, exp.Null, exp.Boolean, exp.Paren, exp.Tuple),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.Neg, UnaryPlus, exp.Collate, exp.Case, exp.If),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ),
    *(exp.NullSafeNEQ, exp.Between, exp.In, exp.Exists, exp.Like, exp.Escape, exp.Glob, exp.Match, exp.RegexpLike),
    *(exp.Anonymous, exp.JSONExtract, exp.JSONExtractScalar, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp),
    *(exp.Cast, exp.DataType, exp.DataTypeParam, exp.Var),
}
"""All a query may be made of; functions are `Anonymous`, and their names are checked apart."""


def _has_top_level_order(tokens: Sequence[Token]) -> bool:
    """Common table expressions, subqueries, windows and aggregates are in parentheses, so that theirs do not count."""
    return any(token.keyword == "ORDER" and depth == 0 for token, depth in _with_depth(tokens))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
