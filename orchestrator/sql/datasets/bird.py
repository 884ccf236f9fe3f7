"""BIRD (Li et al. 2023, arXiv:2305.03111): its folder layout, its predictions and its gold lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets.dataset import Dataset
from orchestrator.sql.datasets.fields import Id, Text
from orchestrator.sql.datasets.folder import DataFolder, entry_list, parse_json, shown, validated
from orchestrator.sql.datasets.layout import Layout, assemble, question_file

LAYOUT = Layout(
    name="bird",
    questions=("dev.json", "mini_dev_sqlite.json", "train.json"),
    databases=("dev_databases", "train_databases", "databases", "database"),
    tables=("dev_tables.json", "train_tables.json", "tables.json"),
)
_MARK = "\t----- bird -----\t"


class _Entry(BaseModel):
    """A question as BIRD writes it; other fields are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    db_id: Annotated[str, Field(max_length=1000)]
    question: Text
    evidence: Text | None = None
    sql: Annotated[Text | None, Field(alias="SQL")] = None
    difficulty: Text | None = None
    question_id: Id | None = None
    """Missing in the training set; the place in the list then counts."""


def load_bird(root: Path, questions: str | None = None) -> Dataset:
    """A data set in BIRD's layout.

    Args:
        root: The folder that holds the list of questions and the folder of databases.
        questions: Name of the list; None: `dev.json`, or else `mini_dev_sqlite.json` or `train.json`.

    Raises:
        InputError: Something that is needed is missing or malformed; the message names file, entry and way out.
    """
    folder = DataFolder(root)
    source = question_file(folder, LAYOUT, questions)
    listed = entry_list(folder.read_json(source), source)
    found = [validated(_Entry, entry, f"{source}: entry {at}") for at, entry in enumerate(listed, 1)]
    has_ids = all(entry.question_id is not None for entry in found)
    asked = [
        Question(
            id=str(entry.question_id if has_ids else at),
            database=entry.db_id,
            text=entry.question,
            evidence=entry.evidence or "",
            difficulty=entry.difficulty or "",
            gold=entry.sql,
        )
        for at, entry in enumerate(found)
    ]
    return assemble(folder, LAYOUT, source, asked)


def write_predictions(predictions: Iterable[tuple[str, str]]) -> dict[str, str]:
    """BIRD's predictions document of (SQL, database) in the order of the questions."""
    return {str(at): f"{sql}{_MARK}{database}" for at, (sql, database) in enumerate(predictions)}


def read_predictions(text: str, source: str) -> Mapping[int, tuple[str, str]]:
    """The (SQL, database) of each place in the list of questions.

    Raises:
        InputError: The text is no predictions document; the message names the key.
    """
    document = parse_json(text, source)
    if not isinstance(document, dict):
        msg = f"{source}: predictions are an object of index and SQL, not {shown(document)}; is this the right file?"
        raise InputError(msg)
    read: dict[int, tuple[str, str]] = {}
    for key, value in document.items():
        if not (key.isascii() and key.isdigit() and len(key) <= 9 and isinstance(value, str)):
            msg = f"{source}: {shown(key)} is {shown(value)}; a key is the question's place, its value a text"
            raise InputError(msg)
        sql, mark, database = value.rpartition(_MARK)
        if not mark:
            msg = f"{source}: prediction {key} does not end with '\\t----- bird -----\\t' and a database; add them"
            raise InputError(msg)
        read[int(key)] = (sql, database.strip())
    return read


def write_gold_lines(golds: Iterable[tuple[str, str]]) -> str:
    """Lines `SQL<TAB>database`.

    Raises:
        InputError: A query has several lines; joining them could change it.
    """
    lines = []
    for at, (sql, database) in enumerate(golds, 1):
        if len(sql.splitlines()) > 1:
            msg = f"gold query {at} has several lines, which this format cannot hold; write JSON lines instead"
            raise InputError(msg)
        lines.append(f"{sql.strip()}\t{database}\n")
    return "".join(lines)


def read_gold_lines(text: str, source: str) -> tuple[tuple[str, str], ...]:
    """The (SQL, database) of each line; the SQL may hold tabs.

    Raises:
        InputError: A line has no tab.
    """
    read: list[tuple[str, str]] = []
    for at, line in enumerate(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), 1):
        if not line.strip():
            continue
        sql, tab, database = line.rpartition("\t")
        if not tab:
            msg = f"{source}: line {at} is {shown(line)}; a tab and the database must follow the SQL"
            raise InputError(msg)
        read.append((sql.strip(), database.strip()))
    return tuple(read)
