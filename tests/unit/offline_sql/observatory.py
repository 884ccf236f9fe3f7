"""A made-up database of observatories, its schema section, and requests about it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.conversation import Conversation, Sampling, UserMessage
from orchestrator.llm.offline.sql import respond_sql

SCHEMA = """\
CREATE TABLE observatory (
  observatory_id INTEGER, -- {"examples": ["1", "2", "3"]}
  name TEXT, -- {"examples": ["'Birch Hill'", "'Grey Rock'", "'Low Fen'"]}
  country TEXT, -- {"examples": ["'Norway'", "'Chile'"], "matches": ["'Chile'", "'Norway'"]}
  altitude_m INTEGER, -- {"title": "altitude", "examples": ["2400", "150"]}
  opened_on DATE, -- {"examples": ["'1990-05-01'", "'2011-03-20'"]}
  is_public TEXT, -- {"examples": ["'yes'", "'no'"]}
  PRIMARY KEY (observatory_id)
);

CREATE TABLE telescope (
  telescope_id INTEGER, -- {"examples": ["1", "2"]}
  name TEXT, -- {"examples": ["'Argus'", "'Lynx'"], "matches": ["'Argus'"]}
  kind TEXT, -- {"examples": ["'optical'", "'radio'"], "matches": ["'radio'", "'optical'"]}
  price REAL, -- {"examples": ["10.5", "80.0"]}
  observatory_id INTEGER,
  PRIMARY KEY (telescope_id),
  FOREIGN KEY (observatory_id) REFERENCES observatory (observatory_id)
);

CREATE TABLE astronomer (
  astronomer_id INTEGER,
  full_name TEXT, -- {"examples": ["'Ada Holm'", "'Bo Lind'"]}
  age INTEGER, -- {"examples": ["31", "58"]}
  PRIMARY KEY (astronomer_id)
);

CREATE TABLE observation (
  astronomer_id INTEGER,
  telescope_id INTEGER,
  hours REAL, -- {"examples": ["2.5"]}
  FOREIGN KEY (astronomer_id) REFERENCES astronomer (astronomer_id),
  FOREIGN KEY (telescope_id) REFERENCES telescope (telescope_id)
);"""
ROWS: Mapping[str, Sequence[tuple[Any, ...]]] = {
    "observatory": [
        (1, "Birch Hill", "Norway", 150, "1990-05-01", "yes"),
        (2, "Grey Rock", "Chile", 2400, "2011-03-20", "no"),
        (3, "Low Fen", "Norway", 20, "2015-07-07", "yes"),
    ],
    "telescope": [(1, "Argus", "optical", 80.0, 1), (2, "Lynx", "radio", 10.5, 2), (3, "Ursa", "radio", 40.0, 1)],
    "astronomer": [(1, "Ada Holm", 31), (2, "Bo Lind", 58), (3, "Cy Moe", 44)],
    "observation": [(1, 1, 2.5), (1, 2, 1.0), (2, 2, 4.0)],
}


def database() -> sqlite3.Connection:
    """The database itself, in memory."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for table, rows in ROWS.items():
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608
    return connection


def message(title: str, **sections: str) -> str:
    """A request's user message; sections are in the order given."""
    parts = [f"# {title}"]
    for name, text in sections.items():
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"## {name}\n{fence}\n{text}\n{fence}")
    return "\n\n".join(parts)


def ask(text: str, *, seed: int = 1, temperature: float | None = 0.0) -> str:
    """The engine's reply to a user message."""
    conversation = Conversation(system="", messages=(UserMessage(text=text),))
    return respond_sql(conversation, Sampling(seed=seed, temperature=temperature))


def sql_in(reply: str) -> str:
    """The query of the only SQL block."""
    blocks = re.findall(r"```sql\n(.*?)\n```", reply, re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


def json_in(reply: str) -> Any:
    """The document of the only JSON block."""
    blocks = re.findall(r"```json\n(.*?)\n```", reply, re.DOTALL)
    assert len(blocks) == 1
    return json.loads(blocks[0])


def best(question: str, hint: str = "", schema: str = SCHEMA) -> str:
    """The likeliest query for a question."""
    sections = {"Schema": schema, "Question": question} | ({"Hint": hint} if hint else {})
    return sql_in(ask(message("Write a SQLite query", **sections)))


def answer(question: str, hint: str = "") -> list[tuple[Any, ...]]:
    """The rows of the likeliest query."""
    return database().execute(best(question, hint)).fetchall()


def executed(sql: str) -> dict[str, Any]:
    """A query's execution record, as prompts show it."""
    try:
        cursor = database().execute(sql)
        rows = [list(row) for row in cursor.fetchall()]
    except sqlite3.Error as error:
        return {"status": "error", "error": str(error), "columns": [], "rows": [], "row_count": 0, "truncated": False}
    columns = [column[0] for column in cursor.description]
    return {
        "status": "ok",
        "error": "",
        "columns": columns,
        "rows": rows[:10],
        "row_count": len(rows),
        "truncated": False,
    }


def candidates(*queries: str, critique: Mapping[str, Any] | None = None) -> str:
    """The section of that name; every query with its record, and with the same critique."""
    listed = [
        {"index": n, "sql": sql, "execution": executed(sql)} | ({"critique": critique} if critique else {})
        for n, sql in enumerate(queries, 1)
    ]
    return json.dumps(listed)


def judged(question: str, *queries: str, hint: str = "", summary: str = "", scores: Sequence[str] = ("score",)) -> Any:
    """The critic's answer."""
    sections = {"Schema": SCHEMA, "Question": question} | ({"Hint": hint} if hint else {})
    sections |= {"Candidates": candidates(*queries)} | ({"Summary": summary} if summary else {})
    return json_in(ask(message("Judge SQLite queries", **sections, Scores=json.dumps(list(scores)))))


def improved(question: str, sql: str, critique: Mapping[str, Any] | None, *, seed: int = 1, summary: str = "") -> str:
    """What the generator makes of one earlier attempt, at temperature 0."""
    title = "Improve a SQLite query" + ("" if critique is not None else " without a critic")
    sections = {"Schema": SCHEMA, "Question": question, "Candidates": candidates(sql, critique=critique)}
    return sql_in(ask(message(title, **sections, **({"Summary": summary} if summary else {})), seed=seed))
