# ruff: noqa: S608 - the SQL of these tests is their own
"""What leaves a database before it is read: names that nobody can write, and views that nobody can prepare."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Launch

NAME = "database.sqlite"
TOO_LARGE = "takes too much memory to prepare"
DOUBLING = "CREATE VIEW v{0} AS SELECT x.a FROM v{1} AS x, v{1} AS y"
COUNTING = "CREATE VIEW v{0} AS SELECT (SELECT count(*) FROM v{1}) + (SELECT sum(a) FROM v{1}) AS a"
APPENDING = "CREATE VIEW v{0} AS SELECT a FROM v{1} UNION ALL SELECT a FROM v{1}"
CTES = "c{0} AS (SELECT a FROM c{1} UNION ALL SELECT a FROM c{1})"


@dataclass(frozen=True)
class Derived:
    """What a runner made of a database."""

    path: Path
    surveyed: Mapping[str, list[str]]
    """Table to columns."""
    unnamed_columns: int
    dropped: Mapping[tuple[str, str], str]

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql).fetchall()

    @property
    def names(self) -> set[str]:
        return {name for (name,) in self.ask("SELECT name FROM sqlite_master")}


Derive = Callable[..., Derived]


@pytest.fixture
def derive(launch: Launch, tmp_path: Path) -> Derive:
    """Surveys and derives a database made by a script, with bytes in it replaced by others of the same length."""

    def run(
        script: str, keep: Mapping[str, Sequence[str]] | None = None, replaced: tuple[bytes, bytes] | None = None
    ) -> Derived:
        source, target = tmp_path / "source.sqlite", tmp_path / "target.sqlite"
        source.unlink(missing_ok=True)
        with closing(sqlite3.connect(source, isolation_level=None)) as connection:
            connection.executescript(script)
        content = source.read_bytes()
        if replaced:
            assert replaced[0] in content
            content = content.replace(*replaced)
        runner = launch("sql")
        runner.send({"type": "file", "path": NAME, "offset": 0, "size": len(content)}, content)
        surveyed = runner.ask({"type": "survey"})
        assert surveyed.type == "surveyed", surveyed
        derived = runner.ask({"type": "derive", "keep": keep})
        assert derived.type == "derived", derived
        piece = runner.receive()
        assert piece is not None
        assert len(piece.body) == derived.head["size"]
        assert runner.end() == (0, "")
        target.write_bytes(piece.body)
        tables = {one["name"]: [c["name"] for c in one["columns"]] for one in json.loads(surveyed.body)["tables"]}
        dropped = {(kind, name): reason for kind, name, reason in derived.head["dropped"]}
        return Derived(target, tables, surveyed.head["unnamed_columns"], dropped)

    return run


def chain(form: str, length: int = 30) -> str:
    """Views of which each reads the one before it twice."""
    views = "; ".join(form.format(number, number - 1) for number in range(1, length + 1))
    return f"CREATE TABLE t(a, b); INSERT INTO t VALUES (7, 8); CREATE VIEW v0 AS SELECT a FROM t; {views};"


# Views


@pytest.mark.parametrize("form", [DOUBLING, COUNTING, APPENDING])
@pytest.mark.parametrize("keep", [None, {"t": ["a"], "v0": ["a"], "v1": ["a"], "above": ["b"], "other": ["v25"]}])
def test_views_that_explode_are_left_out_and_the_rest_works(
    derive: Derive, form: str, keep: Mapping[str, Sequence[str]] | None
) -> None:
    more = """
        CREATE VIEW above AS SELECT b.a AS b FROM v25 AS b; CREATE VIEW far AS SELECT * FROM above;
        CREATE VIEW other AS SELECT a AS v25 FROM t; CREATE TRIGGER r INSTEAD OF INSERT ON v30 BEGIN SELECT 1; END;
        CREATE TABLE last(x);
    """
    found = derive(chain(form) + more, keep)
    assert found.ask("SELECT a FROM t") == [(7,)]
    assert found.ask("SELECT DISTINCT a FROM v0") == [(7,)]
    assert len(found.ask("SELECT a FROM v1")) in (1, 2)
    assert found.ask("SELECT v25 FROM other") == [(7,)]
    assert {"t", "v0", "v1", "other", "last"} <= found.surveyed.keys()
    lost = {name: reason for (kind, name), reason in found.dropped.items() if kind == "view"}
    assert {"v29", "v30", "above", "far"} <= lost.keys()
    assert lost["v30"].startswith("needs view v2")
    assert lost["above"] == "needs view v25, which is left out"
    assert lost["far"] == "needs view above, which is left out"
    assert not {"v30", "above", "far", "r"} & (found.names | found.surveyed.keys())
    first = next(name for name in (f"v{number}" for number in range(31)) if name in lost)
    assert lost[first].startswith(("takes ", "does not work: "))


def test_a_view_that_explodes_by_itself_is_left_out(derive: Derive) -> None:
    ctes = ", ".join(CTES.format(number, number - 1) for number in range(1, 31))
    bomb = f"CREATE VIEW bomb AS WITH c0 AS (SELECT 1 AS a), {ctes} SELECT a FROM c30;"
    found = derive(f"CREATE TABLE t(a); {bomb} CREATE VIEW near AS SELECT a FROM t;")
    assert found.dropped[("view", "bomb")].startswith("takes ")
    assert found.surveyed == {"t": ["a"], "near": ["a"]}
    assert found.names == {"t", "near"}


def test_many_views_that_explode_do_not_take_their_time_each(derive: Derive) -> None:
    ctes = ", ".join(CTES.format(number, number - 1) for number in range(1, 31))
    bombs = "".join(
        f"CREATE VIEW bomb{n} AS WITH c0 AS (SELECT {n} AS a), {ctes} SELECT a FROM c30;" for n in range(300)
    )
    found = derive(f"CREATE TABLE t(a); {bombs}")
    assert found.surveyed == {"t": ["a"]}
    reasons = {reason for (kind, _), reason in found.dropped.items() if kind == "view"}
    assert "all views together take over 10 s to prepare" in reasons
    assert found.names == {"t"}


def test_a_view_that_does_not_work_is_left_out_with_what_sqlite_says(derive: Derive) -> None:
    found = derive("CREATE TABLE t(a); CREATE VIEW w AS SELECT x FROM t; CREATE VIEW u AS SELECT * FROM w;")
    assert found.dropped[("view", "w")] == "does not work: no such column: x"
    assert found.dropped[("view", "u")] == "needs view w, which is left out"
    assert found.names == {"t"}


def test_where_nothing_is_to_be_left_out_nothing_is_changed(derive: Derive) -> None:
    found = derive("""
        CREATE TABLE t(a, b); CREATE INDEX i ON t(a); CREATE VIEW w AS SELECT a FROM t;
        CREATE VIEW u AS SELECT w.a FROM w JOIN t USING (a);
        CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END;
    """)
    assert found.dropped == {}
    assert found.names == {"t", "i", "w", "u", "r"}


# Names


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("keep", [None, {"plain": ["a"]}])
@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_has_a_name_that_no_rule_can_name_is_left_out(
    derive: Derive, encoding: str, keep: Mapping[str, Sequence[str]] | None, kind: str
) -> None:
    made = {
        "table": "CREATE TABLE zzzz(a, b); INSERT INTO zzzz VALUES ('canary', 2); CREATE INDEX iq ON zzzz(a);"
        " CREATE TRIGGER rq AFTER INSERT ON zzzz BEGIN SELECT 1; END;",
        "view": "CREATE VIEW zzzz AS SELECT a, a AS b FROM plain;",
    }[kind]
    script = f"PRAGMA encoding = '{encoding}'; CREATE TABLE plain(a); CREATE INDEX ip ON plain(a); {made}"
    script += 'CREATE VIEW window AS SELECT a FROM "zzzz"; CREATE VIEW fine AS SELECT a FROM plain;'
    if encoding == "UTF-8":
        found = derive(script, keep, (b"zzzz", b"zz\xff\xfe"))
        assert found.dropped[(kind, r"zz\\xff\\xfe")] == "it has a name that is no text in UTF-8"
    else:  # SQLite makes text of whatever it reads there, but a name may be too long
        found = derive(script.replace("zzzz", "z" * 1001), keep)
        assert found.dropped[(kind, "z" * 100)] == "it has a name of over 1000 characters"
    assert found.surveyed == {"plain": ["a"], "fine": ["a"]}
    assert ("view", "window") in found.dropped
    assert found.names - {"fine"} == {"plain", "ip"}
    assert b"canary" not in found.path.read_bytes()


def test_a_table_without_a_name_is_left_out(derive: Derive) -> None:
    found = derive('CREATE TABLE t(a); CREATE TABLE ""(a);')
    assert found.dropped[("table", "")] == "it has no name"
    assert found.names == {"t"}


@pytest.mark.parametrize("keep", [{"t": ["a"]}, {"t": ["a"], "v": ["a"]}])
def test_columns_that_no_rule_can_name_are_counted_and_left_out(derive: Derive, keep: Mapping[str, list[str]]) -> None:
    script = "CREATE TABLE t(a, zzzz); INSERT INTO t VALUES (1, 'canary'); CREATE VIEW v AS SELECT a, a AS zzzz FROM t;"
    found = derive(script, keep, (b"zzzz", b"zz\xff\xfe"))
    assert found.surveyed == {"t": ["a"], "v": ["a"]}
    assert found.unnamed_columns == 2
    told = "1 with a name that is no text in UTF-8: left out, since no rule can name them"
    assert found.dropped[("columns", "t")] == told
    assert ("v" in keep) == (("view", "v") in found.dropped)
    assert found.ask("SELECT * FROM t") == [(1,)]
    assert b"canary" not in found.path.read_bytes()
