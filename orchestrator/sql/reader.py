"""sqlglot as a reader of one SQLite query: the grammar without what SQLite lacks, and an end to its work.

sqlglot tries several readings of nested calls that look like types (`date(date(...))`) and of joins that have no
condition, and takes twice as long with every level. SQLite has types only in CAST and nests joins only in parentheses,
so this reader does not try. Words that are keywords elsewhere are names here. Whatever else makes it go back over the
text is bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import ParseError
from sqlglot.parsers.sqlite import SQLiteParser
from sqlglot.tokenizer_core import Token, TokenType

from orchestrator.sql.tokens import KEYWORDS

_STEPS_PER_TOKEN = 16
"""Real queries need at most 1.4."""
_MORE_STEPS = 1000
logging.getLogger("sqlglot").disabled = True  # its warnings would print untrusted text to the terminal
_KEPT = SQLiteParser.TYPE_TOKENS | {
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.HEX_STRING,
    TokenType.TRUE,
    TokenType.FALSE,
}
_TYPE_WORDS = (TokenType.IDENTIFIER, TokenType.STRING)
_ARITHMETIC: dict[TokenType, type[exp.Expr]] = {
    **{token: made for token, made in SQLiteParser.BITWISE.items() if token is not TokenType.CARET},
    **{token: SQLiteParser.TERM[token] for token in (TokenType.PLUS, TokenType.DASH, TokenType.COLLATE)},
    **{token: SQLiteParser.FACTOR[token] for token in (TokenType.STAR, TokenType.SLASH, TokenType.MOD)},
}


def _applied(operator: type[exp.Expr]) -> Callable[[SQLiteParser, exp.Expr | None, exp.Expr | None], exp.Expr]:
    return lambda _, left, right: operator(this=left, expression=right)


class UnaryPlus(exp.Unary):
    """`+a`, which sqlglot reads as `a`; where SQLite takes a bare name for an alias, the two differ."""


class Unreadable(ValueError):
    """A text that is no query as this reader knows them; the message is one line."""


def read(sql: str) -> list[exp.Expr | None]:
    """The syntax tree of every statement in a text.

    Raises:
        Unreadable: It is no SQL, is nested too deeply or takes too long to read.
    """
    dialect = SQLite()
    try:
        tokens = [_as_sqlite_has_it(token) for token in dialect.tokenize(sql)]
        return _Reader(dialect=dialect, steps=_STEPS_PER_TOKEN * len(tokens) + _MORE_STEPS).parse(tokens, sql)
    except Unreadable:
        raise
    except ParseError as error:
        raise Unreadable(_syntax_error(error)) from error
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise Unreadable(msg) from error
    except Exception as error:  # sqlglot fails in many ways on odd input, and none of them is ours
        msg = f"it cannot be read ({type(error).__name__})"
        raise Unreadable(msg) from error


def _as_sqlite_has_it(token: Token) -> Token:
    """A word that is a keyword elsewhere is an ordinary name (`fetch`, `qualify`, `pivot`)."""
    first = token.text.partition(" ")[0].upper()
    if token.token_type not in _KEPT and first.isidentifier() and first not in KEYWORDS:
        token.token_type = TokenType.VAR
    return token


class _Reader(SQLiteParser):
    """Overrides tables and methods of sqlglot 30; tests hold their effects.

    Functions are read alike, whatever their names: their meaning in other dialects (paths, units, formats) is nothing
    that the gate needs, and each reading of it is one more parser that untrusted text would reach.
    """

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CAST": lambda self: self._parse_sqlite_cast()}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SQLiteParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    CONCAT_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        **SQLiteParser.CONCAT_OPERATORS,
        TokenType.ARROW: lambda _, this, path: exp.JSONExtract(this=this, expression=path),
        TokenType.DARROW: lambda _, this, path: exp.JSONExtractScalar(this=this, expression=path),
    }

    _OPERATORS: ClassVar[dict[TokenType, Any]] = {
        **CONCAT_OPERATORS,
        **{token: _applied(operator) for token, operator in _ARITHMETIC.items()},
    }

    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **SQLiteParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: UnaryPlus(this=self._parse_unary()),
    }

    def __init__(self, *, dialect: SQLite, steps: int) -> None:
        super().__init__(dialect=dialect)
        self._steps_left = steps

    def _advance(self, times: int = 1) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            msg = "it takes too long to read"
            raise Unreadable(msg)
        super()._advance(times)

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:  # noqa: ARG002
        return self._parse_atom() or self._parse_column()

    def _parse_primary(self) -> exp.Expr | None:
        # Two strings beside each other are one elsewhere; in SQLite the second is the first one's alias.
        if self._match(TokenType.STRING):
            return exp.Literal.string(self._prev.text)
        return super()._parse_primary()

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        this = super()._parse_range(this, parse_is)
        # What ends by itself (`a IN (1)`, `a ISNULL`) can be what the next operator is applied to.
        while operator := self._operator():
            this = operator(self, this, self._parse_unary())
            if isinstance(this, exp.Collate):
                self._normalize_collate(this)
            this = super()._parse_range(this, parse_is)
        return this

    def _operator(self) -> Callable[..., exp.Expr] | None:
        for sign, shift in ((TokenType.LT, exp.BitwiseLeftShift), (TokenType.GT, exp.BitwiseRightShift)):
            if self._match_pair(sign, sign):
                return _applied(shift)
        return self._OPERATORS[self._prev.token_type] if self._match_set(self._OPERATORS) else None

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if not self._match(TokenType.ESCAPE):
            return this
        return exp.Escape(this=this, expression=self._parse_bitwise())

    def _parse_sqlite_cast(self) -> exp.Expr:
        """After the parenthesis; a type is any number of names and strings, none at all included."""
        this = self._parse_disjunction()
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expected AS after CAST")
        words = []
        while self._curr.token_type in _TYPE_WORDS or self._curr.text[:1].isidentifier():
            words.append(self._curr.text)
            self._advance()
        sizes = []
        if words and self._match(TokenType.L_PAREN):
            sizes = [self._parse_size()]
            if self._match(TokenType.COMMA):
                sizes.append(self._parse_size())
            self._match_r_paren()
        return exp.Cast(this=this, to=exp.DataType(this=exp.DType.USERDEFINED, kind=" ".join(words), expressions=sizes))

    def _parse_size(self) -> exp.Expr | None:
        self._match_set((TokenType.PLUS, TokenType.DASH))
        number = self._parse_number()
        if number is None:
            self.raise_error("Expected a number")
        return number

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        if self._match(TokenType.COMMA, advance=False):
            return super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        index = self._index
        method, side, kind = self._parse_join_parts()
        if not self._match(TokenType.JOIN):
            self._retreat(index)
            return None
        join = exp.Join(this=self._parse_table(alias_tokens=alias_tokens))
        for key, token in (("method", method), ("side", side), ("kind", kind)):
            join.set(key, token.text.upper() if token else None)
        if self._match(TokenType.ON):
            join.set("on", self._parse_disjunction())
        elif self._match(TokenType.USING):
            join.set("using", self._parse_using_identifiers())
        return join

    def _parse_limit(
        self,
        this: exp.Expr | None = None,
        top: bool = False,  # noqa: ARG002 - of other dialects
        skip_limit_token: bool = False,
    ) -> exp.Expr | None:
        # SQLite takes any expression here; elsewhere a `%` after it means a percentage.
        if not (skip_limit_token or self._match(TokenType.LIMIT)):
            return this
        expression, offset = self._parse_disjunction(), None
        if self._match(TokenType.COMMA):
            expression, offset = self._parse_disjunction(), expression
        return exp.Limit(this=this, expression=expression, offset=offset)


def _syntax_error(error: ParseError) -> str:
    details = error.errors[0] if error.errors else {}
    near = str(details.get("highlight") or "")[:60]
    return f"syntax error near {near!r}" if near else "syntax error"
