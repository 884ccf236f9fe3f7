"""Which hidden column or table a query asks for, so that its refusal can name the rule.

The lock is elsewhere: a hidden column is not in the database that the query runs on. This reading gives the reason, and
it stops what would otherwise pass in silence: the name of a hidden column in double quotes, which SQLite takes for a
string where no such column is; a name that then means a column of the query around; a NATURAL JOIN that loses a column;
a rowid that is a hidden key; a name or a place in the result that `*` has moved. Names are therefore looked up as
SQLite does in the whole database, with one exception: where several tables of one FROM have a column of that name, and
the others hide theirs, the one that is left is meant. `*` is what is left, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from orchestrator.domain.data_access import Access, Hidden
from orchestrator.domain.sql import Schema, Table
from orchestrator.sql.gate import Statement
from orchestrator.sql.quoting import visible
from orchestrator.sql.result_columns import (
    Outputs,
    Source,
    all_of,
    first_of,
    joined,
    listed,
    lost_before,
    lost_name,
    place_of,
)

_ROWID = frozenset({"rowid", "oid", "_rowid_"})
_JSON = ("key", "value", "type", "atom", "id", "parent", "fullkey", "path")
"""Columns of `json_each` and `json_tree`, as `*` gives them."""
_JSON_UNLISTED = ("json", "root")


def refusal(statement: Statement, schema: Schema, access: Access) -> str | None:
    """Why a query may not run; None: it asks for nothing that is hidden.

    Args:
        statement: A query that passed the gate.
        schema: The database before anything was hidden.
        access: What is hidden of it.

    Returns:
        One line that names the column or table and the rule.
    """
    if not access.hidden:
        return None
    reading = _Reading(schema, access)
    reading.query(statement.tree, {}, ())
    return reading.found[0] if reading.found else None


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where names are looked up; behind it come the scopes of the queries around."""

    sources: Sequence[Source]
    aliases: frozenset[str] = frozenset()


_Scopes = tuple[_Scope, ...]
_Ctes = Mapping[str, "_Cte"]


@dataclass(slots=True, kw_only=True)
class _Cte:
    """A common table expression, read when it is first used, as SQLite does; any of one WITH may use any other."""

    body: exp.Expr
    given: Outputs | None
    """The names it gives to its columns; None: those of its body."""
    ctes: _Ctes
    outer: _Scopes
    is_read: bool = False
    outputs: Outputs
    """Of its body; while a recursive one is read, of its first part."""


class _Reading:
    """One pass over one query."""

    def __init__(self, schema: Schema, access: Access) -> None:
        self._schema = schema
        self._hidden = {(one.table.casefold(), one.column.casefold()): one for one in access.hidden}
        self._passed_over: set[int] = set()  # ids of nodes that are read elsewhere
        self.found: list[str] = []

    def query(self, node: exp.Expr, ctes: _Ctes, outer: _Scopes, recursive: _Cte | None = None) -> Outputs:
        """Read a query and all in it; what it gives."""
        while isinstance(node, exp.Subquery):
            node = node.this
        ctes = self._with(node, ctes, outer)
        if isinstance(node, exp.SetOperation):
            return self._compound(node, ctes, outer, recursive)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        for row in node.expressions:  # VALUES
            self._expressions(row, ctes, outer)
        width = len(node.expressions[0].expressions) if node.expressions else 0
        return _visible([f"column{n}" for n in range(1, width + 1)])

    def _with(self, node: exp.Expr, ctes: _Ctes, outer: _Scopes) -> _Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        inside = dict(ctes)
        for cte in clause.expressions:
            columns = [name.name.casefold() for name in cte.args["alias"].columns]
            given = _visible(columns) if columns else None
            one = _Cte(body=cte.this, given=given, ctes=inside, outer=outer, outputs=Outputs())
            inside[cte.alias.casefold()] = one
        return inside

    def _cte(self, cte: _Cte) -> Outputs:
        if not cte.is_read:
            cte.is_read = True
            outputs = self.query(cte.body, cte.ctes, cte.outer, recursive=cte)
            cte.outputs = cte.given or outputs
        return cte.given or cte.outputs

    def _compound(self, node: exp.SetOperation, ctes: _Ctes, outer: _Scopes, recursive: _Cte | None) -> Outputs:
        parts: list[exp.Expr] = []
        rest: exp.Expr = node
        while isinstance(rest, exp.SetOperation):
            parts.append(rest.expression)
            rest = rest.this
        given = [self.query(rest, ctes, outer)]
        if recursive is not None:
            recursive.outputs = given[0]
        given += [self.query(part, ctes, outer) for part in reversed(parts)]
        for ordered in node.args["order"].expressions if node.args.get("order") else ():
            if (place := place_of(ordered.this)) is not None:
                self._find(lost_before(place, part) for part in given)
        scope = _Scope([Source("", first_of(given))])
        for key in ("order", "limit", "offset"):
            self._expressions(node.args.get(key), ctes, (scope, *outer))
        return given[0]

    def _select(self, node: exp.Select, ctes: _Ctes, outer: _Scopes) -> Outputs:
        from_ = node.args.get("from_")
        sources = self._item(from_.this, ctes, outer) if from_ else []
        sources = self._joined(sources, node.args.get("joins"), ctes, outer)
        aliases = frozenset(one.alias.casefold() for one in node.expressions if isinstance(one, exp.Alias))
        given = first_of(listed(node.expressions, sources))
        self._terms(node, sources, aliases, given)
        for key, value in node.args.items():
            if key != "with_":
                # An alias is a name everywhere but in the list that gives it.
                scope = _Scope(sources, frozenset() if key == "expressions" else aliases)
                for part in value if isinstance(value, list) else [value]:
                    self._expressions(part, ctes, (scope, *outer))
        return given

    def _terms(self, node: exp.Select, sources: list[Source], aliases: frozenset[str], given: Outputs) -> None:
        """A term of ORDER BY that is the name of a result means it, even before a column of that name.

        Parentheses and COLLATE around the name change nothing; in any other expression, as in an order inside one, a
        column comes first. A term of ORDER BY or GROUP BY that is a number means a place in the result.
        """
        order, group = ([*clause.expressions] if (clause := node.args.get(key)) else [] for key in ("order", "group"))
        for term in (*(ordered.this for ordered in order), *group):
            if (place := place_of(term)) is not None:
                self._find([lost_before(place, given)])
        for ordered in order:
            term = ordered.this
            while isinstance(term, exp.Paren | exp.Collate):
                term = term.this
            if isinstance(term, exp.Column) and not term.table and (name := term.name.casefold()) in aliases:
                self._passed_over.add(id(term))
                self._find([lost_name(name, node.expressions, sources)])

    def _item(self, item: exp.Expr, ctes: _Ctes, outer: _Scopes) -> list[Source]:
        """The sources of one item of a FROM clause; several where it is a join in parentheses."""
        name = item.alias.casefold()
        if isinstance(item, exp.Table):
            first = Source(name or item.name.casefold(), self._table(item, ctes))
            return self._joined([first], item.args.get("joins"), ctes, outer)
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table | exp.Subquery):
            inside = self._joined(self._item(item.this, ctes, outer), item.args.get("joins"), ctes, outer)
            return [Source(name, all_of(inside))] if name else inside
        query = item.this if isinstance(item, exp.Subquery) else item
        self._passed_over.add(id(query))
        first = Source(name, self.query(query, ctes, outer))
        return self._joined([first], item.args.get("joins"), ctes, outer)

    def _joined(
        self, sources: list[Source], joins: Sequence[exp.Join] | None, ctes: _Ctes, outer: _Scopes
    ) -> list[Source]:
        for join in joins or ():
            right = self._item(join.this, ctes, outer)
            for name in join.args.get("using") or ():
                self._using(name.name.casefold(), sources)
                self._using(name.name.casefold(), right)
            if join.args.get("method") == "NATURAL":
                self._natural(sources, right)
                self._natural(right, sources)
            sources = joined(sources, right, join)
        return sources

    def _using(self, name: str, side: Sequence[Source]) -> None:
        if not any(name in source.outputs.visible for source in side):
            self._find(source.outputs.hidden.get(name) for source in side)

    def _natural(self, side: Sequence[Source], other: Sequence[Source]) -> None:
        """A column that one side hides and the other has would no longer be joined on."""
        names = {name for source in other for name in (*source.outputs.visible, *source.outputs.hidden)}
        self._find(hidden for source in side for name, hidden in source.outputs.hidden.items() if name in names)

    def _table(self, item: exp.Table, ctes: _Ctes) -> Outputs:
        if isinstance(item.this, exp.Anonymous):
            return replace(_visible(_JSON), visible=frozenset([*_JSON, *_JSON_UNLISTED]))
        if not item.db and (cte := ctes.get(item.name.casefold())) is not None:
            return self._cte(cte)
        table = self._schema.table(item.name)
        return self._of_schema(table) if table else Outputs()

    def _of_schema(self, table: Table) -> Outputs:
        names = dict.fromkeys(column.name.casefold() for column in table.columns)
        keys = {name: (table.name.casefold(), name) for name in names}
        hidden = {name: self._hidden[key] for name, key in keys.items() if key in self._hidden}
        if hidden and len(hidden) == len(names):
            self.found.append(f"table {visible(table.name)} may not be read: {next(iter(hidden.values())).rule}")
        return Outputs(
            visible=frozenset(names) - hidden.keys(),
            hidden=hidden,
            rowid=_hidden_rowid(table, hidden),
            places=tuple((name, hidden.get(name)) for name in names),
        )

    def _expressions(self, root: object, ctes: _Ctes, scopes: _Scopes) -> None:
        """Look up the names in an expression, and read the queries in it."""
        if not isinstance(root, exp.Expr):
            return
        for node in root.walk(prune=_is_query):
            if id(node) in self._passed_over:
                continue
            if _is_query(node):
                self.query(node, ctes, scopes)
            elif isinstance(node, exp.In) and isinstance(node.args.get("field"), exp.Column):
                self._operand(node.args["field"], ctes)
            elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                self._look_up(node.name.casefold(), node.table.casefold(), scopes)

    def _operand(self, name: exp.Column, ctes: _Ctes) -> None:
        """`x IN name` names a table."""
        self._passed_over.add(id(name))
        self._table(exp.Table(this=name.this, db=name.args.get("table")), ctes)

    def _look_up(self, name: str, qualifier: str, scopes: _Scopes) -> None:
        """The innermost scope that knows a name decides; there, columns come before aliases."""
        for scope in scopes:
            sources = [source.outputs for source in scope.sources if qualifier in ("", source.name)]
            if any(name in outputs.visible for outputs in sources):
                return
            hidden = [outputs.hidden[name] for outputs in sources if name in outputs.hidden]
            if name in _ROWID and len(sources) == 1 and sources[0].rowid:
                hidden.append(sources[0].rowid)
            if hidden:
                self._find(hidden)
                return
            if not qualifier and name in scope.aliases:
                return

    def _find(self, hidden: Iterable[Hidden | None]) -> None:
        one = next((h for h in hidden if h is not None), None)
        if one is not None:
            self.found.append(f"column {visible(f'{one.table}.{one.column}')} may not be read: {one.rule}")


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select | exp.SetOperation | exp.Values)


def _visible(names: Sequence[str]) -> Outputs:
    return Outputs(visible=frozenset(names), places=tuple((name, None) for name in names))


def _hidden_rowid(table: Table, hidden: Mapping[str, Hidden]) -> Hidden | None:
    """The hidden column that is the table's rowid: its one primary key, if declared INTEGER."""
    keys = [column for column in table.columns if column.primary_key]
    if len(keys) != 1 or keys[0].type.casefold() != "integer":
        return None
    return hidden.get(keys[0].name.casefold())
