"""Doubts whether something else is meant, and the repairs that lead to it; on a made-up database of a river fleet."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.sql.demands import Demand
from orchestrator.llm.offline.sql.edits import repairs_of
from orchestrator.llm.offline.sql.expectations import expectations
from orchestrator.llm.offline.sql.logic import Condition, Item, Query
from orchestrator.llm.offline.sql.profile import profile_of
from orchestrator.llm.offline.sql.reading import Reading, read
from orchestrator.llm.offline.sql.rendering import render
from orchestrator.llm.offline.sql.rivals import rivals
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.llm.offline.sql.schema_reader import read_schema
from tests.unit.offline_sql.observatory import judged

SCHEMA = """\
CREATE TABLE captain (
  captain_id INTEGER,
  name TEXT, -- {"examples": ["'Ina Roth'", "'Per Dahl'"]}
  age INTEGER, -- {"examples": ["41", "60"]}
  verse_name TEXT, -- {"examples": ["'Low Tide'"]}
  region TEXT, -- {"examples": ["'Delta'", "'Fjord'"]}
  average REAL, -- {"examples": ["3.5", "4.0"]}
  salary REAL, -- {"examples": ["100.0"]}
  PRIMARY KEY (captain_id)
);

CREATE TABLE barge (
  barge_id INTEGER,
  barge_age INTEGER, -- {"examples": ["4", "9"]}
  barge_type TEXT, -- {"examples": ["'tug'", "'ferry'"], "matches": ["'tug'"]}
  captain_id INTEGER,
  PRIMARY KEY (barge_id),
  FOREIGN KEY (captain_id) REFERENCES captain (captain_id)
);

CREATE TABLE medal (
  medal_id INTEGER,
  captain_id INTEGER,
  year_awarded INTEGER, -- {"examples": ["2001", "2012"]}
  PRIMARY KEY (medal_id),
  FOREIGN KEY (captain_id) REFERENCES captain (captain_id)
);

CREATE TABLE cargo (
  cargo_id INTEGER,
  label TEXT, -- {"examples": ["'salt'", "'timber'"]}
  PRIMARY KEY (cargo_id)
);

CREATE TABLE rumour (
  captain_id INTEGER,
  cargo_id INTEGER,
  FOREIGN KEY (captain_id) REFERENCES captain (captain_id),
  FOREIGN KEY (cargo_id) REFERENCES cargo (cargo_id)
);

CREATE TABLE voyage (
  voyage_id INTEGER,
  captain_id INTEGER,
  PRIMARY KEY (voyage_id),
  FOREIGN KEY (captain_id) REFERENCES captain (captain_id)
);

CREATE TABLE voyage_load (
  voyage_id INTEGER,
  cargo_id INTEGER,
  FOREIGN KEY (voyage_id) REFERENCES voyage (voyage_id),
  FOREIGN KEY (cargo_id) REFERENCES cargo (cargo_id)
);"""
VIEW = read_schema(SCHEMA)
OVER_RUMOURS = (
    "SELECT T1.label FROM cargo AS T1 JOIN rumour AS T2 ON T1.cargo_id = T2.cargo_id "
    "JOIN captain AS T3 ON T2.captain_id = T3.captain_id WHERE T3.region = 'Delta'"
)
NOT_IN = "SELECT region FROM captain WHERE captain_id NOT IN (SELECT captain_id FROM barge WHERE barge_type = 'tug')"
CASES = [
    (
        "Show the name and the year of the verse by the youngest captain.",
        "SELECT name FROM captain ORDER BY age LIMIT 1",
        "Return the column captain.verse_name.",
    ),
    (
        "What is the average age for each type of barge?",
        (
            "SELECT T2.barge_type, AVG(T1.age) FROM captain AS T1 JOIN barge AS T2 ON T1.captain_id = T2.captain_id "
            "GROUP BY T2.barge_type"
        ),
        "Use the column barge.barge_age.",
    ),
    (
        "What is the name of the captain with the highest average score?",
        "SELECT name FROM captain GROUP BY name ORDER BY AVG(salary) DESC LIMIT 1",
        "Order the rows by captain.average.",
    ),
    (
        "Which captain received the most awarded medals?",
        (
            "SELECT T1.name FROM captain AS T1 JOIN medal AS T2 ON T1.captain_id = T2.captain_id "
            "ORDER BY T2.year_awarded DESC LIMIT 1"
        ),
        "Order the groups by their number of rows.",
    ),
    ("Which regions do not have a captain of a tug?", NOT_IN, "Exclude values of the result, with EXCEPT."),
    (
        "What are the labels of cargo on voyages of captains of the region Delta?",
        OVER_RUMOURS,
        "Do not join the table rumour.",
    ),
]
UNDOUBTED = [
    ("What are the names of captains?", "SELECT name FROM captain"),
    (
        "Show the name of the captain and the name of the verse by the youngest captain.",
        "SELECT name, verse_name FROM captain ORDER BY age LIMIT 1",
    ),
    (
        "What is the average age of captains for each type of barge?",
        (
            "SELECT T2.barge_type, AVG(T1.age) FROM captain AS T1 JOIN barge AS T2 ON T1.captain_id = T2.captain_id "
            "GROUP BY T2.barge_type"
        ),
    ),
    ("What are the average and maximum age of captains?", "SELECT AVG(age), MAX(age) FROM captain"),
    ("What are the regions of the captains that do not have a tug?", NOT_IN),
    ("What are the labels of cargo that captains of the region Delta have a rumour about?", OVER_RUMOURS),
]


def column(table: str, name: str) -> Field:
    found = VIEW.field(table, name)
    assert found is not None
    return found


def reading_of(question: str) -> Reading:
    return read(SCHEMA, question, "")


def repaired(query: Query, demand: Demand) -> list[str]:
    return [render(changed, VIEW) for changed in repairs_of(query, demand, VIEW)]


@pytest.mark.parametrize(("question", "sql", "repair"), CASES)
def test_a_rival_is_named_with_its_repair_and_costs_little(question: str, sql: str, repair: str) -> None:
    reading = reading_of(question)
    found = list(rivals(reading, profile_of(sql, reading.schema)))
    assert repair in [str(doubt.demands[0]) for doubt in found]
    assert all(doubt.weight <= 2 for doubt in found)


@pytest.mark.parametrize(("question", "sql"), UNDOUBTED)
def test_what_the_question_says_is_not_doubted(question: str, sql: str) -> None:
    reading = reading_of(question)
    assert list(rivals(reading, profile_of(sql, reading.schema))) == []


def test_the_fuller_name_takes_the_place_of_the_shorter_one_and_stands_beside_it_in_no_way() -> None:
    query = Query(items=(Item(column=column("captain", "name")), Item(column=column("captain", "age"))))
    ways = repaired(query, Demand("output", column("captain", "verse_name")))
    assert ways == ["SELECT verse_name, age FROM captain"]


def test_a_column_is_replaced_everywhere_and_its_table_is_left_out() -> None:
    age, kind = column("captain", "age"), column("barge", "barge_type")
    items = tuple(Item(column=age, aggregate=name) for name in ("AVG", "MAX"))
    query = Query(items=(Item(column=kind), *items), group=(kind,), joined=("captain",))
    ways = repaired(query, Demand("use", column("barge", "barge_age")))
    assert "SELECT barge_type, AVG(barge_age), MAX(barge_age) FROM barge GROUP BY barge_type" in ways


def test_rows_are_grouped_by_a_column_that_is_to_be_used() -> None:
    key = column("captain", "captain_id")
    many = Condition(item=Item(aggregate="COUNT"), op=">", literals=("2",))
    ways = repaired(
        Query(items=(Item(column=key),), group=(key,), having=(many,)), Demand("use", column("captain", "region"))
    )
    assert "SELECT captain_id FROM captain GROUP BY region HAVING COUNT(*) > 2" in ways


def test_counting_keeps_the_table_whose_rows_are_counted() -> None:
    order = ((Item(column=column("medal", "year_awarded")), True),)
    ways = repaired(Query(items=(Item(column=column("captain", "name")),), order=order, limit=1), Demand("count-order"))
    assert ways == [
        (
            "SELECT T1.name FROM captain AS T1 JOIN medal AS T2 ON T1.captain_id = T2.captain_id "
            "GROUP BY T1.name ORDER BY COUNT(*) DESC LIMIT 1"
        )
    ]


def test_except_takes_away_what_the_denied_rows_give() -> None:
    tug = Condition(item=Item(column=column("barge", "barge_type")), op="=", literals=("'tug'",))
    inner = Query(items=(Item(column=column("barge", "captain_id")),), where=(tug,))
    denied = Condition(item=Item(column=column("captain", "captain_id")), op="NOT IN", query=inner)
    ways = repaired(Query(items=(Item(column=column("captain", "region")),), where=(denied,)), Demand("except"))
    assert ways == [
        (
            "SELECT region FROM captain EXCEPT SELECT T1.region FROM captain AS T1 "
            "JOIN barge AS T2 ON T1.captain_id = T2.captain_id WHERE T2.barge_type = 'tug'"
        )
    ]


def test_a_denied_value_of_the_same_table_is_taken_away_too() -> None:
    other = Condition(item=Item(column=column("barge", "barge_type")), op="!=", literals=("'tug'",))
    ways = repaired(Query(items=(Item(column=column("barge", "barge_age")),), where=(other,)), Demand("except"))
    assert ways == ["SELECT barge_age FROM barge EXCEPT SELECT barge_age FROM barge WHERE barge_type = 'tug'"]


def test_rows_without_a_group_can_be_left_out() -> None:
    region = column("captain", "region")
    query = Query(items=(Item(column=region), Item(aggregate="COUNT")), group=(region,))
    assert repaired(query, Demand("exclude")) == [
        "SELECT region, COUNT(*) FROM captain WHERE region IS NOT NULL GROUP BY region"
    ]


def test_a_table_that_only_connects_is_gone_round() -> None:
    delta = Condition(item=Item(column=column("captain", "region")), op="=", literals=("'Delta'",))
    query = Query(items=(Item(column=column("cargo", "label")),), where=(delta,))
    assert render(query, VIEW) == OVER_RUMOURS
    ways = repaired(query, Demand("no-join", table="rumour"))
    assert ways[0].count("JOIN") == 3
    assert "rumour" not in ways[0]
    assert "JOIN voyage_load" in ways[0]


@pytest.mark.parametrize(
    ("question", "width"),
    [
        ("What is the minimum and maximum age of captains?", "2"),
        ("What is the average, minimum, and maximum age of captains?", "3"),
        ("Give the age of the barge of the barge type tug.", "1"),
    ],
)
def test_no_more_columns_are_expected_than_are_asked_for(question: str, width: str) -> None:
    allowed = {d.text for e in expectations(reading_of(question)) for d in e.demands if d.kind == "columns"}
    assert width in allowed


def test_a_repair_names_the_column_that_needs_no_further_table() -> None:
    issues = judged("What is the name of the radio telescope?", "SELECT price FROM telescope WHERE kind = 'radio'")
    repairs = [issue["repair"] for issue in issues["evaluations"][0]["issues"]]
    assert "Use the column telescope.name." in repairs
