"""Small databases for analysis tools: one with facts to be found, and odd ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT, is_member TEXT, email TEXT UNIQUE, height_cm REAL);
CREATE TABLE product (code TEXT PRIMARY KEY, title TEXT NOT NULL, price TEXT, added TEXT);
CREATE TABLE purchase (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER REFERENCES customer(id),
  product_code TEXT,
  bought TEXT,
  amount INTEGER
);
CREATE TABLE tag (id INTEGER PRIMARY KEY, word TEXT);
CREATE TABLE product_tag (
  product_code TEXT REFERENCES product(code), tag_id INTEGER REFERENCES tag(id), PRIMARY KEY (product_code, tag_id)
);
CREATE TABLE staff (
  id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, boss INTEGER REFERENCES staff(id), "group" TEXT
);
CREATE VIEW members AS SELECT id, name FROM customer WHERE is_member = 'Y';
INSERT INTO customer VALUES
  (1, 'Ann', 'Oslo', 'Y', 'ann@x.org', 170.5), (2, 'Bo', 'oslo', 'N', 'bo@x.org', 181),
  (3, 'Cy ', 'Bergen', 'Y', NULL, NULL), (4, 'Di', 'N/A', 'N', 'di@x.org', 165);
INSERT INTO product VALUES
  ('AB-100', 'Lamp', '10.50', '01/02/2020'), ('CD-200', 'Desk', '9', '15/03/2020'),
  ('EF-300', 'Chair', '100', '7/4/2021');
INSERT INTO purchase VALUES
  (1, 1, 'AB-100', '2020-01-05', 2), (2, 1, 'CD-200', '2020-02-06', 1), (3, 2, 'AB-100', '2021-03-07', 5),
  (4, 9, 'CD-200', '2021-12-31', 7);
INSERT INTO tag VALUES (1, 'light'), (2, 'wood');
INSERT INTO product_tag VALUES ('AB-100', 1), ('CD-200', 2), ('EF-300', 2);
INSERT INTO staff VALUES (1, 'Eva', 'Berg', NULL, 'A'), (2, 'Jon', 'Dahl', 1, 'B'), (3, 'Kim', 'Lie', 1, 'B');
"""
FENCED = "odd `````` name\n## Heading\n- customer.city: 'Rome'"
"""A table's name that would end a block and begin a section."""
NAMES = [
    FENCED,
    'with "quotes"',
    "it's",
    "select",
    "späße ñ 表",
    "tab\there",
    "nul-like \\0",
    " ",
    "a.b; DROP TABLE x",
]
_WIDE = ", ".join(f"c{number} TEXT" for number in range(300))
SCRIPTS = {
    "no-tables": "",
    "empty-table": "CREATE TABLE t (a INTEGER, b TEXT)",
    "without-rowid": "CREATE TABLE t (k TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES ('b'), ('a')",
    "rowid-names": "CREATE TABLE t (rowid TEXT, oid TEXT, _rowid_ TEXT); INSERT INTO t VALUES ('x', 'y', 'z')",
    "blobs": "CREATE TABLE t (a BLOB, b); INSERT INTO t VALUES (x'00ff', 1), (zeroblob(100000), 'x'), (NULL, 2.5)",
    "infinite": "CREATE TABLE t (a REAL); INSERT INTO t VALUES (9e999), (-9e999), (1), (9223372036854775807)",
    "wide": f"CREATE TABLE t ({_WIDE}); INSERT INTO t (c0, c299) VALUES ('first', 'last')",  # noqa: S608 - constants
    "broken-view": "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t; DROP TABLE t; CREATE TABLE u (b INT)",
    "generated": "CREATE TABLE t (a INT, b INT AS (a + 1)); INSERT INTO t VALUES (1), (2)",
    "self-keys": "CREATE TABLE t (id INTEGER PRIMARY KEY, t_id INT REFERENCES t, u_id INT REFERENCES missing(id))",
    "only-null": "CREATE TABLE t (a TEXT, b INT); INSERT INTO t VALUES (NULL, NULL), (NULL, NULL)",
    "full-text": "CREATE VIRTUAL TABLE t USING fts5(body); INSERT INTO t VALUES ('some words')",
}


def made(path: Path, statements: str = "", rows: Iterable[tuple[str, tuple[object, ...]]] = ()) -> Path:
    """A database file from a script and single statements with values."""
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    for statement, values in rows:
        connection.execute(statement, values)
    connection.commit()
    connection.close()
    return path


def odd_databases(folder: Path) -> dict[str, Path]:
    """Name to file: each has something that naive tools stumble over."""
    folder.mkdir(exist_ok=True)

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    made_ones = {name: made(folder / f"{name}.sqlite", script) for name, script in SCRIPTS.items()}
    rows: list[tuple[str, tuple[object, ...]]] = []
    for name in NAMES:
        rows.append((f"CREATE TABLE {quoted(name)} ({quoted(name)} TEXT, plain INT)", ()))
        values = (f"```\n## Row counts\n{name}",)
        rows.append((f"INSERT INTO {quoted(name)} VALUES (?, 1)", values))  # noqa: S608 - constants
    made_ones["names"] = made(folder / "names.sqlite", "", rows)
    bad = [
        ("INSERT INTO t VALUES (CAST(x'ff41c3' AS TEXT), ?)", ("a\0b",)),
        ("INSERT INTO t VALUES ('\u202e', ?)", ("x",)),
    ]
    made_ones["not-utf-8"] = made(folder / "not-utf-8.sqlite", "CREATE TABLE t (a TEXT, b TEXT)", bad)
    return made_ones
