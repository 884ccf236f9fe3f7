"""Four small collections with questions: enough databases for an evolution of packages, which deals them out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets.jsonl import write_jsonl

COLLECTIONS = {"garden": "plants", "harbor": "boats", "museum": "paintings", "theatre": "plays"}
"""Database to its table."""
_ASKED = {
    "How many $T are there?": "SELECT count(*) FROM $T",
    "List the names of all $T.": "SELECT name FROM $T",
    "What is the highest price of the $T?": "SELECT max(price) FROM $T",
    "List the names of $T whose color is red.": "SELECT name FROM $T WHERE color = 'red'",
    "How many $T have a price over 30?": "SELECT count(*) FROM $T WHERE price > 30",
    "Who keeps the first of the $T?": "SELECT k.name FROM $T AS t JOIN keepers AS k ON t.keeper_id = k.id LIMIT 1",
}
_TABLES = """
CREATE TABLE keepers (id INTEGER PRIMARY KEY, name TEXT, phone TEXT);
CREATE TABLE $T (
  id INTEGER PRIMARY KEY, name TEXT, color TEXT, price INTEGER, keeper_id INTEGER REFERENCES keepers(id)
);
"""
_COLORS = ("red", "green", "blue")
_ROWS = 6


def write_collections(folder: Path) -> Path:
    """Write four databases and `questions.jsonl` into a folder, which is made; the same content every time.

    Returns:
        The list of questions.

    Raises:
        InputError: One of the files is there already, or cannot be written.
    """
    path = folder / "questions.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in (path, *(folder / f"{name}.sqlite" for name in COLLECTIONS)):
            file.touch(exist_ok=False)  # never through a link, never over what is there
        for name in COLLECTIONS:
            write_collection(folder / f"{name}.sqlite", name)
        path.write_text(write_jsonl([one for name in COLLECTIONS for one in questions_on(name)]), encoding="utf-8")
    except (OSError, sqlite3.OperationalError) as error:
        msg = f"cannot write the collections into {str(folder)!r}: {error}; choose a new folder"
        raise InputError(msg) from error
    return path


def questions_on(name: str) -> list[Question]:
    """The questions on one of the databases.

    Args:
        name: From `COLLECTIONS`.
    """
    thing = COLLECTIONS[name]
    return [
        Question(id=f"{name}-{place}", database=name, text=text.replace("$T", thing), gold=gold.replace("$T", thing))
        for place, (text, gold) in enumerate(_ASKED.items())
    ]


def write_collection(path: Path, name: str) -> None:
    """Write one of the databases into an empty file, or one that is not there.

    Args:
        path: Where to.
        name: From `COLLECTIONS`.
    """
    thing, number = COLLECTIONS[name], list(COLLECTIONS).index(name)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES.replace("$T", thing))
        keepers = [(key, f"keeper {number}.{key}", f"555-{number}{key}") for key in (1, 2)]
        connection.executemany("INSERT INTO keepers VALUES (?, ?, ?)", keepers)
        rows = [
            (key, f"{thing} {number}.{key}", _COLORS[key % 3], 10 * key + number, 1 + key % 2)
            for key in range(1, _ROWS + 1)
        ]
        connection.executemany("INSERT INTO $T VALUES (?, ?, ?, ?, ?)".replace("$T", thing), rows)
        connection.commit()
