"""What the layouts of BIRD and Spider share: a list of questions, a folder of databases, a list of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets.dataset import Dataset, Descriptions, check_ids, folded, listed
from orchestrator.sql.datasets.descriptions import merged, read_descriptions, read_tables
from orchestrator.sql.datasets.folder import DataFolder, check_name, entries, is_name

SUFFIXES = (".sqlite", ".db", ".sqlite3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where things are below the root; of several names the first that is there counts."""

    name: str
    questions: tuple[str, ...]
    databases: tuple[str, ...]
    tables: tuple[str, ...]


def question_file(folder: DataFolder, layout: Layout, asked: str | None) -> Path:
    """The list of questions, by the name that was asked for or one of the layout's.

    Raises:
        InputError: There is none.
    """
    names = layout.questions if asked is None else (asked,)
    found = _first(folder, names)
    if found is None:
        msg = (
            f"{str(folder.root)!r} holds no {' or '.join(names)}; give the folder that holds it ({layout.name} layout)"
        )
        raise InputError(msg)
    return found


def assemble(folder: DataFolder, layout: Layout, source: Path, questions: Sequence[Question]) -> Dataset:
    """A data set around its questions.

    Raises:
        InputError: An id occurs twice or is no plain name, no database is there, or a description cannot be read.
    """
    check_ids([question.id for question in questions], source)
    place = _first(folder, layout.databases)
    if place is None:
        msg = f"{str(folder.root)!r} holds no folder {' or '.join(layout.databases)}; put the databases there"
        raise InputError(msg)
    asked = dict.fromkeys(check_name(question.database, str(source)) for question in questions)
    found = {name: path for name in asked if (path := _database(folder, place, name)) is not None}
    if not found:
        name = next(iter(asked))
        msg = f"{str(place)!r} holds none of the databases; the first is expected at {name}/{name}{SUFFIXES[0]} in it"
        raise InputError(msg)
    databases = {path.parent.name: path for path in found.values()}
    descriptions, orphans = _descriptions(folder, layout, databases)
    unasked = [entry.name for entry in entries(place) if entry.is_dir() and entry.name not in databases]
    lost = [question.database for question in questions if question.database not in found]
    return Dataset(
        name=layout.name,
        digest=folder.digest(),
        questions=tuple(
            replace(question, database=found[question.database].parent.name)
            for question in questions
            if question.database in found
        ),
        databases=databases,
        descriptions=descriptions,
        orphans=(
            *listed(f"{len(lost)} questions are left out, whose databases are missing", list(dict.fromkeys(lost))),
            *listed("databases without a question", unasked),
            *orphans,
        ),
    )


def _descriptions(
    folder: DataFolder, layout: Layout, databases: Mapping[str, Path]
) -> tuple[dict[str, Descriptions], list[str]]:
    """What the files say of each database, those of its own folder first; and what belongs to nothing."""
    tables = _first(folder, layout.tables)
    titles = {} if tables is None else read_tables(folder, tables)
    described: dict[str, Descriptions] = {}
    orphans: list[str] = []
    for name, path in databases.items():
        own = folder.find(*path.parent.relative_to(folder.root).parts, "database_description")
        texts, nothing = ({}, []) if own is None else read_descriptions(folder, own)
        described[name] = merged(texts, titles.get(folded(name), {}))
        orphans += nothing
    return described, orphans


def _first(folder: DataFolder, names: Sequence[str]) -> Path | None:
    return next((path for name in names if (path := folder.find(name)) is not None), None)


def _database(folder: DataFolder, place: Path, name: str) -> Path | None:
    names = filter(is_name, (name + suffix for suffix in SUFFIXES))  # a suffix can make it too long
    found = (folder.find(place.name, name, file) for file in names)
    return next((path for path in found if path is not None and path.is_file()), None)
