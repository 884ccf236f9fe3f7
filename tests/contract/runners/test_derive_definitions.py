# ruff: noqa: S608 - the SQL of these tests is their own
"""What a definition is seen to need is what SQLite makes it need, whatever characters it is written with."""

from __future__ import annotations

import importlib
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

BOM = "\ufeff"
LONG = "z" * 1001
FRAGMENTS = [
    "secret",
    "name",
    "'",
    '"',
    "`",
    "[",
    "]",
    "/*",
    "*/",
    "--",
    "\n",
    "\v",
    " ",
    BOM,
    "||",
    "+",
    "1",
    ".",
    "$",
]
FRAGMENTS += ["(", ")", ",", "\\", "\xa0", "\u200b", "x", "0x", "e", "''", '""', "/", "*", "-", ";", "as", "g"]
CHARACTERS = [*map(chr, range(1, 0x301)), *"\u1680\u180e\u2000\u200b\u2028\u2060\u3000\ufdd0\ufefe\ufeff\ufffd\uffff"]
CHARACTERS += ["\U0001f600", "\U000e0001", "\U0010ffff"]
Rebuild = Callable[[str, Mapping[str, list[str]]], SimpleNamespace]


@pytest.fixture(scope="module")
def runner(assembled: Mapping[str, Path]) -> Iterator[SimpleNamespace]:
    """Modules of the image."""
    sys.path.insert(0, str(assembled["sql"]))
    try:
        names = ("rebuilding", "definitions", "survey", "plans")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(assembled["sql"]))


@pytest.fixture
def rebuild(runner: SimpleNamespace, tmp_path: Path) -> Rebuild:
    """Makes a database by a script; of what is derived: (table, column) names, bytes, (kind, name) to the reason."""
    source, target = tmp_path / "source.sqlite", tmp_path / "target.sqlite"

    def run(script: str, keep: Mapping[str, list[str]]) -> SimpleNamespace:
        for path in (source, target):
            path.unlink(missing_ok=True)
        with closing(sqlite3.connect(source, isolation_level=None)) as connection:
            connection.executescript(script)
        dropped = {(kind, name): reason for kind, name, reason in runner.rebuilding.rebuild(source, target, keep)}
        with closing(sqlite3.connect(target)) as connection:
            rows = connection.execute("SELECT m.name, x.name FROM sqlite_master m, pragma_table_xinfo(m.name) x")
            return SimpleNamespace(names=set(rows), content=target.read_bytes(), dropped=dropped)

    return run


def needs_secret(definition: str) -> bool | None:
    """Whether SQLite computes column `g` from column `secret`; None: it does not take this for a definition."""
    found = []
    for value in ("'canary'", "'other'", "7", "NULL"):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            try:
                connection.execute(f"CREATE TABLE t(id, secret, name, g AS ({definition}))")
                connection.execute(f"INSERT INTO t(id, secret, name) VALUES (1, {value}, 'n')")
                found.append(repr(connection.execute("SELECT g FROM t").fetchall()))
            except sqlite3.Error:
                return None
    return len(set(found)) > 1


def is_kept(runner: SimpleNamespace, definition: str) -> bool:
    """Whether column `g` is kept where column `secret` is hidden."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.text_factory = bytes
        connection.execute(f"CREATE TABLE t(id, secret, name, g AS ({definition}))")
        tables = runner.survey.read_tables(connection)
    ((made,), _) = runner.plans.plan(tables, {"t": ["id", "name", "g"]})
    return "g" in {column.name for column in made.columns}


@pytest.mark.parametrize("form", ["{}secret", "secret{}", "se{}cret", "name||{}secret", "name {}||{}secret{}"])
def test_every_character_is_read_as_sqlite_reads_it(runner: SimpleNamespace, form: str) -> None:
    taken = 0
    for character in CHARACTERS:
        definition = form.replace("{}", character)
        if needs_secret(definition):
            taken += 1
            assert "secret" in runner.definitions.words_of(definition), f"{character!a}"
            assert not is_kept(runner, definition), f"{character!a}"
    assert (taken >= 4) == (form != "se{}cret")  # white space at least


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([BOM, "secret"])
@example(["name", "||", BOM, BOM, "secret"])
@example([" ", "\v", "secret"])
@example(["1", "||", "/*", BOM, "*/", BOM, "secret"])
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=9))
def test_no_definition_that_sqlite_computes_from_a_hidden_column_is_kept(
    runner: SimpleNamespace, parts: list[str]
) -> None:
    definition = "".join(parts)
    if needs_secret(definition):
        assert not is_kept(runner, definition)


@pytest.mark.parametrize(
    "text",
    [
        f"a AS ({BOM}b)",
        f"a AS (b{BOM})",
        "a AS ($b)",
        "a AS (b) '",
        'a AS (b) "',
        "a [b",
        "1b",
        "1.5.b",
        "1é",
        "\v",
        "\\",
    ],
)
def test_what_could_be_read_in_another_way_is_not_certain(runner: SimpleNamespace, text: str) -> None:
    assert not runner.definitions.is_certain(text)


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE TABLE t(\"{BOM}a\", '{BOM}b', [{BOM}c], `{BOM}` /* {BOM} \\ */) -- {BOM}",
        "CREATE TABLE é(名前 DECIMAL(5, 2) DEFAULT -1.5e+3, b AS (0x1F || .5 || 1. || x'ab' || c ->> '$.d') STORED)",
        "CREATE VIEW v AS SELECT a << 1 <> ~b & 2 != c % 3, d$e /* not closed",
    ],
)
def test_what_only_one_reading_fits_is_certain(runner: SimpleNamespace, text: str) -> None:
    assert runner.definitions.is_certain(text)


@pytest.mark.parametrize("mark", ["'", '"', "`", "["])
def test_a_quote_that_is_not_closed_takes_the_rest(runner: SimpleNamespace, mark: str) -> None:
    found = [token.text for token in runner.definitions.tokens(f"a {mark}b\n({mark * 4}")]
    assert found[:2] == ["a", " "]
    assert all(token[0] == mark for token in found[2:])
    assert not runner.definitions.is_certain(f"a {mark}b\n(")


@pytest.mark.parametrize("written", [BOM + "{}", BOM * 2 + "{}", "name || {}", "/**/{}", f"(\n\v{BOM}{{}})"])
@pytest.mark.parametrize(
    "column", ["g TEXT AS (!)", BOM + "g TEXT AS (!)", "g TEXT AS (!) STORED", "g AS (h), h AS (!)"]
)
def test_values_of_a_hidden_column_do_not_come_out_of_a_generated_one(
    rebuild: Rebuild, written: str, column: str
) -> None:
    computed = column.replace("!", written.format("secret"))
    script = f"CREATE TABLE t(id INTEGER PRIMARY KEY, secret TEXT, name TEXT, {computed});"
    made = rebuild(
        script + "INSERT INTO t(id, secret, name) VALUES (1, 'canary', 'n')", {"t": ["id", "name", "g", "h"]}
    )
    assert made.names == {("t", "id"), ("t", "name")}
    assert made.dropped["column", "t.g"].startswith("needs t.")
    assert b"canary" not in made.content


@pytest.mark.parametrize(
    "join",
    [
        f"a {BOM}NATURAL JOIN b",
        f"a NATURAL JOIN {BOM}b",
        "a NATURAL JOIN 'b'",
        'a NATURAL JOIN "B"',
        "a NATURAL LEFT JOIN [b]",
    ],
)
def test_a_view_with_a_natural_join_goes_however_it_is_written(rebuild: Rebuild, join: str) -> None:
    script = "CREATE TABLE a(id, s); CREATE TABLE b(id, s);"
    made = rebuild(f"{script} CREATE VIEW v AS SELECT id FROM {join}", {"a": ["id", "s"], "b": ["id"], "v": ["id"]})
    assert made.names == {("a", "id"), ("a", "s"), ("b", "id")}
    assert ("view", "v") in made.dropped


@pytest.mark.parametrize(
    ("declared", "fault"),
    [('""', "no name"), (LONG, "a name of over 1000 characters"), (f'"{LONG}"', "a name of over 1000 characters")],
)
def test_values_of_a_column_that_nobody_can_name_do_not_come_out(rebuild: Rebuild, declared: str, fault: str) -> None:
    script = f"""CREATE TABLE t(id, {declared} TEXT, name, g AS ({declared}), h AS (name || {declared.upper()}) STORED,
        i AS (lower(name)), j AS (g));
    INSERT INTO t(id, name, {declared}) VALUES (1, 'N', 'canary');
    CREATE VIEW v AS SELECT {declared} AS a FROM t; CREATE VIEW w AS SELECT id AS a FROM t;"""
    made = rebuild(script, {"t": ["id", "name", "g", "h", "i", "j"], "v": ["a"], "w": ["a"]})
    assert made.names == {("t", "id"), ("t", "name"), ("t", "i"), ("w", "a")}
    assert made.dropped["columns", "t"] == f"1 with {fault}: left out, since no rule can name them"
    assert made.dropped["column", "t.g"] == "needs t.*"
    assert made.dropped["column", "t.j"] == "needs t.g"
    assert ("view", "v") in made.dropped
    assert b"canary" not in made.content


def test_each_reason_why_columns_are_left_out_is_told(rebuild: Rebuild) -> None:
    script = f'CREATE TABLE t(id, "", {LONG}, {LONG}y); CREATE VIEW v AS SELECT id, id AS "" FROM t'
    made = rebuild(script, {"t": ["id"], "v": ["id"]})
    told = "1 with no name, 2 with a name of over 1000 characters: left out, since no rule can name them"
    assert made.dropped["columns", "t"] == told
    assert made.dropped["view", "v"] == "has a column with no name"
