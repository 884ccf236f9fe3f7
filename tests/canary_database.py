"""A database with a canary wherever SQLite can keep a copy of a column's values, for tests that hide the column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

CANARY = "canary-7f3a9c"
"""Occurs in `person.email`, in what is made from it, and in places that only name it."""
DENY = ("person.email", "orders.by_mail", "vault", "keyed.code", "docs*")
VISIBLE = {
    "person": ("id", "name", "born", "initial"),
    "orders": ("id", "person_id", "total"),
    "keyed": ("note",),
    "v_names": ("name", "born"),
    "v_totals": ("name", "total"),
}
"""What is left of tables and views when `DENY` is denied."""

_SCHEMA = """
CREATE TABLE person(  -- $CANARY
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL COLLATE NOCASE DEFAULT 'nobody' /* $CANARY */,
  email TEXT UNIQUE DEFAULT '$CANARY' CHECK (email <> 'not $CANARY'),
  born DATE CHECK (born <> '$CANARY'),
  initial TEXT AS (substr(name, 1, 1)) STORED,
  domain TEXT AS (substr(email, 3)) STORED,
  again TEXT AS (domain || '!'),
  UNIQUE (name, email)
);
CREATE TABLE orders(id INTEGER PRIMARY KEY, person_id INT REFERENCES person(id), total REAL,
  by_mail TEXT REFERENCES person(email));
CREATE TABLE vault(secret TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE keyed(code TEXT, note TEXT, PRIMARY KEY (code DESC)) WITHOUT ROWID;
CREATE INDEX by_email ON person(email);
CREATE INDEX by_part_of_email ON person(lower(email));
CREATE INDEX by_some ON person(born) WHERE email = '$CANARY0@example.org';
CREATE INDEX by_born ON person(born);
CREATE VIEW v_mail AS SELECT "email" AS contact FROM person;
CREATE VIEW v_all AS SELECT * FROM person;
CREATE VIEW v_above AS SELECT contact FROM v_mail;
CREATE VIEW v_constant AS SELECT name FROM person WHERE email = '$CANARY';
CREATE VIEW v_names AS SELECT name, born /* $CANARY */ FROM person;
CREATE VIEW v_totals AS SELECT v_names.name, total FROM v_names JOIN person USING (name)
  JOIN orders ON person_id = person.id;
CREATE TRIGGER remember AFTER DELETE ON person BEGIN INSERT INTO vault VALUES ('$CANARY' || old.id); END;
CREATE VIRTUAL TABLE docs USING fts5(name, email);
CREATE VIRTUAL TABLE docs4 USING fts4(email);
"""


def make_database(path: Path, *, people: int = 300) -> sqlite3.Connection:
    """The database in WAL mode, its last changes in the write-ahead log alone as long as the connection is open.

    Args:
        path: Where to.
        people: Rows of `person`; every third is deleted again, and its pages are free.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA secure_delete = OFF", "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0"):
        connection.execute(statement).fetchall()
    connection.executescript(_SCHEMA.replace("$CANARY", CANARY))
    connection.execute("BEGIN")
    for n in range(people):
        email = f"{CANARY}{n * 7919 % people}@example.org"
        connection.execute(
            "INSERT INTO person(name, email, born) VALUES (?, ?, ?)", (f"n{n % 50}", email, f"19{n % 90:02d}")
        )
        connection.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", (n, n + 1, n / 4, email))
        connection.execute("INSERT INTO keyed VALUES (?, ?)", (f"{CANARY}{n * 31 % people:05d}", f"note {n}"))
        connection.execute("INSERT INTO docs VALUES (?, ?)", (f"n{n}", email))
        connection.execute("INSERT INTO docs4 VALUES (?)", (email,))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute("DELETE FROM person WHERE id % 3 = 0")
    connection.execute("ANALYZE")
    connection.execute("INSERT INTO person(id, name, email) VALUES (100000, 'late', ?)", (f"{CANARY}-late",))
    return connection


def is_clean(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with a database."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
