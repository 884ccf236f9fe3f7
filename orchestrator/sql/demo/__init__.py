"""A small web shop with questions: to try the commands on, and with a trap for every rule that guards a database."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets.jsonl import write_jsonl
from orchestrator.sql.demo.questions import QUESTIONS
from orchestrator.sql.demo.rows import NOT_UTF8, make_rows
from orchestrator.sql.demo.tables import TABLES, VIEWS

SEED = 2024
"""The questions' answers were checked on the rows of this seed."""
DATABASE = "web_shop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """Where the demo was written."""

    database: Path
    questions: Path


def write_demo(folder: Path) -> Demo:
    """Write `web_shop.sqlite` and `questions.jsonl` into a folder, which is made; the same content every time.

    Raises:
        InputError: One of the files is there already, or cannot be written.
    """
    demo = Demo(database=folder / f"{DATABASE}.sqlite", questions=folder / "questions.jsonl")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in (demo.database, demo.questions):
            path.touch(exist_ok=False)  # never through a link, never over what is there
        _write_database(demo.database)
        demo.questions.write_text(write_jsonl(_questions()), encoding="utf-8")
    except (OSError, sqlite3.OperationalError) as error:
        msg = f"cannot write the demo into {str(folder)!r}: {error}; choose a new folder"
        raise InputError(msg) from error
    return demo


def _write_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.executescript(f"BEGIN; {TABLES} {VIEWS}")
        for table, (columns, rows) in make_rows(SEED).items():
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', rows)  # noqa: S608 - ours
        connection.execute("UPDATE reviews SET body = CAST(body AS TEXT) WHERE body = ?", [NOT_UTF8])
        connection.commit()
    finally:
        connection.close()


def _questions() -> list[Question]:
    return [
        Question(
            id=f"shop-{number:02}",
            database=DATABASE,
            text=asked.text,
            evidence=asked.evidence,
            difficulty=asked.difficulty,
            gold=asked.gold,
        )
        for number, asked in enumerate(QUESTIONS, 1)
    ]
