"""Conversations of the answerer about a made-up database, as RoboPhD holds them, and texts that describe it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, Message, Sampling, UserMessage
from orchestrator.llm.offline.model import OfflineModel
from orchestrator.sql.answers import extract_sql
from orchestrator.sql.quoting import data_block

CREATE = """\
CREATE TABLE observatory (observatory_id INTEGER PRIMARY KEY, name TEXT, country TEXT);
CREATE TABLE telescope (telescope_id INTEGER PRIMARY KEY, label TEXT, kind TEXT, price REAL, observatory_id INTEGER,
  FOREIGN KEY (observatory_id) REFERENCES observatory (observatory_id));
"""
ROWS = """\
INSERT INTO observatory VALUES (1, 'Birch Hill', 'Norway'), (2, 'Grey Rock', 'Chile'), (3, 'Low Fen', 'Norway'),
  (4, 'Birch Hill', 'Peru ');
INSERT INTO telescope VALUES (1, 'Argus', 'optical', 80.0, 1), (2, 'Lynx', 'radio', 10.5, 2), (3, 'Ursa', 'radio', 80.0,
  1), (4, 'Vela', 'radio', 9.0, 4);
"""
_INSERTS = """\
INSERT INTO "observatory" VALUES(1,'Birch Hill','Norway');
INSERT INTO "observatory" VALUES(2,'Grey Rock','Chile');
INSERT INTO telescope (telescope_id, kind) VALUES (1,'optical'),(2,'radio');
"""
TEXTS: Mapping[str, str] = {
    "statements with comments": """\
CREATE TABLE observatory (
  observatory_id INTEGER PRIMARY KEY, -- unique id
  name TEXT, -- e.g. 'Birch Hill'
  country TEXT -- values: 'Norway', 'Chile'
);
CREATE TABLE telescope (
  telescope_id INTEGER PRIMARY KEY,
  label TEXT,
  kind TEXT CHECK (kind IN ('optical', 'radio')),
  price REAL,
  observatory_id INTEGER -- references observatory(observatory_id)
);""",
    "a dump": "\n".join([CREATE, _INSERTS]),
    "statements with sample rows": f"""\
{CREATE}
/*
2 rows from observatory:
*/
## observatory
observatory_id\tname\tcountry
1\tBirch Hill\tNorway
2\tGrey Rock\tChile

Sample rows of telescope:

## telescope
| telescope_id | label | kind | price | observatory_id |
|---|---|---|---|---|
| 1 | Argus | optical | 80.0 | 1 |
| 2 | Lynx | radio | 10.5 | 2 |
""",
    "M-Schema": """\
【DB_ID】 sky
【Schema】
# Table: observatory
[
(observatory_id:INTEGER, Primary Key, Examples: [1, 2]),
(name:TEXT, Examples: ['Birch Hill']),
(country:TEXT, Examples: ['Norway', 'Chile'])
]
# Table: telescope
[
(telescope_id:INTEGER, Primary Key),
(label:TEXT),
(kind:TEXT, Examples: ['optical', 'radio']),
(price:REAL, Examples: [80.0, 10.5]),
(observatory_id:INTEGER)
]
【Foreign keys】
telescope.observatory_id=observatory.observatory_id
""",
    "Markdown tables": """\
# What's in the database

### `observatory` (3 rows)

| # | Column | Type | Key | Examples |
|---|--------|------|-----|----------|
| 1 | observatory_id | INTEGER | PK | 1, 2, 3 |
| 2 | name | TEXT | | 'Birch Hill', 'Grey Rock' |
| 3 | country | TEXT | | Norway (2), Chile (1) |

### `telescope` (3 rows)

| Column | Type | Key | Examples |
|--------|------|-----|----------|
| telescope_id | INTEGER | PK | 1 |
| label | TEXT | | 'Argus' |
| kind | TEXT | | 'optical', 'radio' |
| price | REAL | | 80.0 |
| observatory_id | INTEGER | FK -> observatory.observatory_id | |
""",
    "lists": """\
## Schema

**observatory** (3 rows)
- **observatory_id** (INTEGER, primary key)
- **name** (TEXT): name of the observatory
    - samples: Birch Hill, Grey Rock
- **country** (TEXT)
    - distinct: 2
    - values: Norway, Chile

**telescope** (3 rows)
1. telescope_id — INTEGER — primary key
2. label — TEXT
3. kind — TEXT — values: {optical, radio}
4. price — REAL — min 9.0, max 80.0
5. observatory_id — INTEGER

## Relationships
- telescope.observatory_id -> observatory.observatory_id (many-to-one)
""",
    "prose": """\
The database describes observatories and their telescopes; it's small.

Table observatory (3 rows):
  observatory_id INTEGER, the primary key
  name TEXT, e.g. "Birch Hill", "Grey Rock"
  country TEXT with 2 distinct values: Norway, Chile
Table telescope (3 rows):
  telescope_id INTEGER primary key
  label TEXT
  kind TEXT, one of 'optical', 'radio'
  price REAL ranges from 9.0 to 80.0
  observatory_id INTEGER references observatory(observatory_id)
""",
    "CSV": """\
table,column,type,key,examples
observatory,observatory_id,INTEGER,PK,"1, 2"
observatory,name,TEXT,,"'Birch Hill', 'Grey Rock'"
observatory,country,TEXT,,"'Norway', 'Chile'"
telescope,telescope_id,INTEGER,PK,1
telescope,label,TEXT,,Argus
telescope,kind,TEXT,,"optical, radio"
telescope,price,REAL,,80.0
telescope,observatory_id,INTEGER,observatory(observatory_id),
""",
    "one JSON document": json.dumps(
        {
            "tables": [
                {
                    "name": "observatory",
                    "row_count": 3,
                    "columns": [
                        {"name": "observatory_id", "type": "INTEGER", "primary_key": True},
                        {"name": "name", "type": "TEXT", "sample_values": ["Birch Hill"]},
                        {"name": "country", "type": "TEXT", "values": {"Norway": 2, "Chile": 1}},
                    ],
                },
                {
                    "name": "telescope",
                    "primary_key": ["telescope_id"],
                    "columns": {
                        "telescope_id": "INTEGER",
                        "label": "TEXT",
                        "kind": {"type": "TEXT", "top_values": [["optical", 1], ["radio", 2]]},
                        "price": "REAL",
                        "observatory_id": "INTEGER",
                    },
                    "foreign_keys": [
                        {"column": "observatory_id", "ref_table": "observatory", "ref_column": "observatory_id"}
                    ],
                },
            ]
        },
        indent=2,
    ),
    "JSON by lines": "\n".join(
        json.dumps(record)
        for record in (
            {"table": "observatory", "column": "observatory_id", "type": "INTEGER", "pk": True},
            {"table": "observatory", "column": "name", "type": "TEXT", "samples": ["Birch Hill"]},
            {"table": "observatory", "column": "country", "type": "TEXT", "values": ["Norway", "Chile"]},
            {"table": "telescope", "column": "telescope_id", "type": "INTEGER", "pk": True},
            {"table": "telescope", "column": "label", "type": "TEXT"},
            {"table": "telescope", "column": "kind", "type": "TEXT", "values": ["optical", "radio"]},
            {"table": "telescope", "column": "price", "type": "REAL"},
            {
                "table": "telescope",
                "column": "observatory_id",
                "type": "INTEGER",
                "references": "observatory.observatory_id",
            },
        )
    ),
    "indented text": """\
observatory:
  rows: 3
  columns:
    observatory_id: INTEGER PRIMARY KEY
    name: TEXT
    country: TEXT  # values: 'Norway', 'Chile'
telescope:
  rows: 3
  columns:
    telescope_id: INTEGER PRIMARY KEY
    label: TEXT
    kind: TEXT  # values: 'optical', 'radio'
    price: REAL
    observatory_id: INTEGER -> observatory.observatory_id
""",
    "statements, and lines about columns": f"""\
{CREATE}
Some facts that help:
observatory.country: 2 distinct values: 'Norway', 'Chile'
- telescope.kind has the values 'optical', 'radio'
""",
}
"""What is described to texts that say the same of it."""
BARE = CREATE
"""The statements alone."""
RICH = CREATE + "\n## Table: observatory\n- country: distinct values: 'Norway', 'Chile', 'Peru '\n"


def database() -> sqlite3.Connection:
    """The database itself, in memory."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(CREATE + ROWS)
    return connection


def rows_of(sql: str) -> list[tuple[Any, ...]]:
    """What a query gives."""
    return database().execute(sql).fetchall()


def shown(sql: str, connection: sqlite3.Connection | None = None) -> dict[str, Any]:
    """A query's result as verifiers see it."""
    try:
        cursor = (connection or database()).execute(sql)
    except sqlite3.Error as error:
        return {"status": "error", "error": str(error), "columns": [], "rows": [], "row_count": 0, "truncated": False}
    rows = [list(row) for row in cursor.fetchall()]
    columns = [column[0] for column in cursor.description or ()]
    counted = {"rows": rows[:10], "row_count": len(rows), "truncated": False}
    return {"status": "ok", "error": "", "columns": columns, **counted}


def section(name: str, text: str, info: str = "") -> str:
    """A heading and its block."""
    return f"## {name}\n{data_block(text, info)}"


def begin(question: str, analysis: str, instructions: str = "", evidence: str = "") -> Conversation:
    """A conversation that asks for a query."""
    system = "\n\n".join(
        ["You answer questions.", section("Database analysis", analysis), section("Instructions", instructions)]
    )
    parts = ["# Answer with a SQLite query", section("Question", question)]
    parts += [section("Evidence", evidence)] if evidence else []
    return Conversation(system=system, messages=(UserMessage(text="\n\n".join(parts)),))


def verify(sql: str) -> UserMessage:
    """A request to look at what a query gave."""
    parts = ["# Verify the result of a SQLite query", section("Query", sql, "sql")]
    return UserMessage(text="\n\n".join([*parts, section("Result", json.dumps(shown(sql)), "json")]))


def repair(sql: str, failure: str = "It returned no rows.") -> UserMessage:
    """A request to put a query right."""
    parts = ["# Repair a SQLite query", section("Failure", failure), section("Query", sql, "sql")]
    return UserMessage(text="\n\n".join([*parts, section("Result", json.dumps(shown(sql)), "json")]))


def reply(
    conversation: Conversation, *more: Message, seed: int = 0, temperature: float | None = 0.0, effort: float = 1.0
) -> str:
    """The engine's answer after some more messages."""
    sampling = Sampling(seed=seed, temperature=temperature)
    return OfflineModel(effort=effort).complete(conversation.plus(*more), (), sampling).message.text


def said(text: str) -> AssistantMessage:
    """The engine's own message, for a conversation to go on with."""
    return AssistantMessage(text=text)


def query(question: str, analysis: str = RICH, instructions: str = "", evidence: str = "", effort: float = 1.0) -> str:
    """The likeliest query."""
    return extract_sql(reply(begin(question, analysis, instructions, evidence), effort=effort))
