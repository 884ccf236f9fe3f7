"""Schema text: what a model reads of a database, in three styles, with everything in it staying data."""

from __future__ import annotations

import json
import re
import sqlite3
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sql import Column, ForeignKey, Schema, Table
from orchestrator.sql.quoting import (
    data_block,
    is_exact,
    text_literal,
)
from orchestrator.sql.schema_text import MIN_CHARACTERS, Style, render
from tests.unit.sql.made import HOSTILE, LINE_ENDS, NASTY, closes, schema_of

SHOP = """
CREATE TABLE City (id INTEGER PRIMARY KEY, name TEXT NOT NULL, "order" INT);
CREATE TABLE person (
  first TEXT, last TEXT, age INT, city INTEGER REFERENCES City, boss_first TEXT, boss_last TEXT,
  PRIMARY KEY (last, first), FOREIGN KEY (boss_last, boss_first) REFERENCES person (last, first)
);
CREATE VIEW adults AS SELECT first, age FROM person WHERE age >= 18;
INSERT INTO City VALUES (1, 'Oslo', 3), (2, 'O''Hara', 4);
INSERT INTO person VALUES ('Ann', 'Lee', 30, 1, NULL, NULL), ('Bob', 'Lee', 30, 2, 'Ann', 'Lee');
"""


@pytest.fixture
def shop() -> Schema:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SHOP)
    return schema_of(connection)


def one_column(**known: object) -> Schema:
    column = Column(**{"name": "c", "type": "TEXT", **known})  # type: ignore[arg-type]
    return Schema(tables=(Table(name="t", kind="table", sql="CREATE TABLE t (c TEXT)", columns=(column,)),))


def notes(text: str) -> list[dict[str, object]]:
    """The JSON object of every line that has one."""
    return [json.loads(line[line.index(" -- {") + 4 :]) for line in text.split("\n") if " -- {" in line]


def test_the_style_with_examples_is_the_contract(shop: Schema) -> None:
    text = render(shop, Style.EXAMPLES, matches={("City", "name"): ["O'Hara"]}, max_characters=5000)
    assert (
        text
        == """\
CREATE TABLE City (
  id INTEGER, -- {"examples": ["1", "2"]}
  name TEXT NOT NULL, -- {"examples": ["'Oslo'", "'O''Hara'"], "matches": ["'O''Hara'"]}
  "order" INT, -- {"examples": ["3", "4"]}
  PRIMARY KEY (id)
);

CREATE TABLE person (
  "first" TEXT, -- {"examples": ["'Ann'", "'Bob'"]}
  "last" TEXT, -- {"examples": ["'Lee'"]}
  age INT, -- {"examples": ["30"]}
  city INTEGER, -- {"examples": ["1", "2"]}
  boss_first TEXT, -- {"examples": ["'Ann'"]}
  boss_last TEXT, -- {"examples": ["'Lee'"]}
  PRIMARY KEY ("last", "first"),
  FOREIGN KEY (city) REFERENCES City,
  FOREIGN KEY (boss_last, boss_first) REFERENCES person ("last", "first")
);

CREATE VIEW adults (
  "first" TEXT, -- {"examples": ["'Ann'", "'Bob'"]}
  age INT -- {"examples": ["30"]}
);"""
    )


def test_the_style_m_schema_is_the_published_form(shop: Schema) -> None:
    text = render(shop, Style.M_SCHEMA, matches={("City", "name"): ["O'Hara"]}, max_characters=5000, database="shop")
    assert (
        text
        == """\
【DB_ID】 shop
【Schema】
# Table: City
[
(id:INTEGER, Primary Key, Examples: [1, 2]),
(name:TEXT, Examples: ['O''Hara', 'Oslo']),
("order":INT, Examples: [3, 4])
]
# Table: person
[
("first":TEXT, Primary Key, Examples: ['Ann', 'Bob']),
("last":TEXT, Primary Key, Examples: ['Lee']),
(age:INT, Examples: [30]),
(city:INTEGER, Examples: [1, 2]),
(boss_first:TEXT, Examples: ['Ann']),
(boss_last:TEXT, Examples: ['Lee'])
]
# Table: adults
[
("first":TEXT, Examples: ['Ann', 'Bob']),
(age:INT, Examples: [30])
]
【Foreign keys】
person.city=City.id
person.boss_last=person."last"
person.boss_first=person."first\""""
    )


def test_the_style_ddl_is_what_is_stored(shop: Schema) -> None:
    assert render(shop, Style.DDL, max_characters=5000) == "\n\n".join(table.sql + ";" for table in shop.tables)


def test_a_title_is_left_out_where_it_says_nothing_new() -> None:
    same = one_column(name="full_name", title="Full Name", not_null=True)
    assert notes(render(same, Style.EXAMPLES, max_characters=500)) == []
    other = one_column(title="code", description="d", value_description="1: x\n2: y")
    text = render(other, Style.EXAMPLES, max_characters=500)
    assert notes(text) == [{"title": "code", "description": "d", "values": "1: x\n2: y"}]
    assert "(c:TEXT, code; d; 1: x 2: y)" in render(other, Style.M_SCHEMA, max_characters=500)


@given(HOSTILE.filter(bool), HOSTILE, HOSTILE, HOSTILE)
def test_hostile_text_stays_data_in_every_style(name: str, declared: str, description: str, value: str) -> None:
    columns = (
        Column(name=name, type=declared, title=description, examples=(value, text_literal(value)), primary_key=1),
        Column(name="second", type="INT", description=description, value_description=value),
    )
    key = ForeignKey(columns=(name,), table=name, references=())
    schema = Schema(tables=(Table(name=name, kind="table", sql="", columns=columns, foreign_keys=(key,)),))
    found = {(name, name): [value]}
    text = render(schema, Style.EXAMPLES, matches=found, max_characters=100_000)
    assert [line[:2] for line in text.split("\n")] == ["CR", "  ", "  ", "  ", "  ", ");"]
    first = notes(text.split("\n", 1)[1])[0]
    assert first["matches"] == [text_literal(value)]
    assert first.get("name", name) == name
    m_schema = render(schema, Style.M_SCHEMA, matches=found, max_characters=100_000, database=name)
    assert len(m_schema.split("\n")) == 9
    for style, written in product(Style, (text, m_schema)):
        assert not LINE_ENDS.search(written.replace("\n", "")), style
        assert closes(data_block(written))


@given(
    st.lists(st.sampled_from(NASTY).filter(is_exact), min_size=2, max_size=6, unique_by=str.casefold),
    st.sampled_from(["INT", "", "CHECK", "varchar ( 20 )", "decimal(10,2)", 'x "y', "a -- b"]),
)
def test_sqlite_reads_the_style_with_examples_as_the_schema_it_was(names: list[str], declared: str) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    name, other = quoted[:2]
    kind = '"' + declared.replace('"', '""') + '"' if declared else ""
    first, again = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    first.execute(
        f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column in quoted)}, PRIMARY KEY ({other}, {name}), "
        f"FOREIGN KEY ({name}) REFERENCES {other} ({other})) WITHOUT ROWID"
    )
    (table,) = schema_of(first).tables
    again.executescript(render(Schema(tables=(table,)), Style.EXAMPLES, max_characters=100_000))
    (same,) = schema_of(again).tables
    assert [essence(column) for column in same.columns] == [essence(column) for column in table.columns]
    assert same.foreign_keys == table.foreign_keys


def essence(column: Column) -> tuple[str, str, int]:
    return column.name, column.type.replace(" ", ""), column.primary_key


def test_odd_tables_do_not_break_any_style() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in (
        "CREATE TABLE empty (x BLOB)",
        "CREATE TABLE part (a INT, b GENERATED ALWAYS AS (a * 2) STORED, c BLOB, PRIMARY KEY (a)) WITHOUT ROWID",
        "INSERT INTO part (a, c) VALUES (1, X'00ff')",
        "CREATE TABLE lost (x REFERENCES nowhere, y REFERENCES nowhere (z))",
        f"CREATE TABLE wide ({', '.join(f'c{n} REAL' for n in range(1500))})",
        "CREATE VIEW seen AS SELECT c FROM part",
    ):
        connection.execute(statement)
    schema = schema_of(connection)
    for style in Style:
        text = render(schema, style, max_characters=200_000)
        assert "c1499" in text
        assert "left out" not in text
    assert "lost.x=nowhere\nlost.y=nowhere.z" in render(schema, Style.M_SCHEMA, max_characters=200_000)
    empty_view = Table(name="v", kind="view", sql="", columns=())
    assert render(Schema(tables=(empty_view,)), Style.DDL, max_characters=500) == "CREATE VIEW v (\n);"


def big(tables: int) -> Schema:
    columns = tuple(
        Column(name=f"column_{n}", type="TEXT", examples=("'an example'", "'another'"), description="What it is. " * 3)
        for n in range(8)
    )
    names = [f"table_{n}" for n in range(tables)]
    return Schema(tables=tuple(Table(name=n, kind="table", sql="CREATE TABLE x (y)", columns=columns) for n in names))


def test_examples_go_first_then_descriptions_then_comments_then_tables() -> None:
    schema, seen = big(3), []
    found = {("table_2", "column_1"): ["here"]}
    for characters in range(5_000, MIN_CHARACTERS, -20):
        text = render(schema, Style.EXAMPLES, matches=found, max_characters=characters)
        assert len(text) <= characters
        stage = ("another" in text, "an example" in text, "What it is" in text, "here" in text, "left out" not in text)
        if stage not in seen:
            seen.append(stage)
    assert seen == [
        (True, True, True, True, True),
        (False, True, True, True, True),
        (False, False, True, True, True),
        (False, False, False, True, True),
        (False, False, False, False, True),
        (False, False, False, False, False),
    ]


def test_tables_with_matches_are_kept_and_the_rest_is_counted() -> None:
    text = render(big(50), Style.EXAMPLES, matches={("table_44", "column_1"): ["here"]}, max_characters=400)
    assert re.findall(r"CREATE TABLE (\w+)", text) == ["table_0", "table_44"]
    assert text.endswith("\n\n-- 48 of 50 tables are left out")


@given(st.sampled_from(Style), st.integers(MIN_CHARACTERS, 20_000), st.integers(0, 30))
def test_no_text_is_longer_than_its_bound(style: Style, characters: int, tables: int) -> None:
    schema = big(tables)
    text = render(schema, style, max_characters=characters)
    assert len(text) <= characters
    assert text == render(schema, style, max_characters=characters)


def test_a_schema_with_one_endless_name_is_only_counted() -> None:
    schema = one_column(name="x" * 100_000)
    assert render(schema, Style.EXAMPLES, max_characters=1000) == "-- 1 of 1 tables are left out"
    with pytest.raises(ValueError, match="at least 200 characters"):
        render(schema, Style.EXAMPLES, max_characters=199)
