"""Questions as JSON lines, for data of one's own: each names its database as a file beside the list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets.dataset import Dataset, check_ids, listed
from orchestrator.sql.datasets.fields import Id, Text
from orchestrator.sql.datasets.folder import MAX_LIST_BYTES, DataFolder, is_name, parse_json, shown, validated
from orchestrator.sql.datasets.layout import SUFFIXES

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class _Entry(BaseModel):
    """One line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id | None = None
    """None: the number of the line, from 1."""
    database: Annotated[str, Field(min_length=1, max_length=1000)]
    """Path from the list's folder, with or without suffix; or an id: `ID.sqlite` or `ID/ID.sqlite` there."""
    question: Annotated[Text, Field(min_length=1)]
    evidence: Text = ""
    gold: Text | None = None
    difficulty: Annotated[Text, Field(max_length=100)] = ""


def load_jsonl(path: Path) -> Dataset:
    """A list of questions, one JSON object a line: `database`, `question`, and `id`, `evidence`, `gold`, `difficulty`.

    The id of a database is its file's name without suffix, or its path without suffix where two have the same name.

    Args:
        path: The list; databases lie in its folder or below.

    Raises:
        InputError: The list is missing or malformed, or no database is there; the message names line and way out.
    """
    folder = DataFolder(path.parent)
    found = [
        (at, validated(_Entry, parse_json(line, str(path), line=at), f"{path}: line {at}"))
        for at, line in enumerate(_lines(folder.read(path, MAX_LIST_BYTES)), 1)
        if line.strip()
    ]
    if not found:
        msg = f"{str(path)!r} holds no question; write one JSON object a line"
        raise InputError(msg)
    check_ids([_id(at, entry) for at, entry in found], path, [at for at, _ in found])
    files: dict[str, Path | None] = {}
    for at, entry in found:
        if entry.database not in files:
            files[entry.database] = _database(folder, entry.database, f"{path}: line {at}")
    ids = _ids(folder, {name: file for name, file in files.items() if file is not None})
    if not ids:
        msg = f"{path}: none of its databases is there; the first is expected at {found[0][1].database!r} beside it"
        raise InputError(msg)
    lost = [entry.database for _, entry in found if entry.database not in ids]
    return Dataset(
        name="jsonl",
        digest=folder.digest(),
        questions=tuple(_question(at, entry, ids[entry.database]) for at, entry in found if entry.database in ids),
        databases={ids[name]: file for name, file in files.items() if file is not None},
        descriptions={},
        orphans=listed(f"{len(lost)} questions are left out, whose databases are missing", list(dict.fromkeys(lost))),
    )


def write_jsonl(questions: Iterable[Question]) -> str:
    """The list that `load_jsonl` reads, databases by id; fields that say nothing are left out."""
    lines = []
    for question in questions:
        fields = {
            "id": question.id,
            "database": question.database,
            "question": question.text,
            "evidence": question.evidence,
            "gold": question.gold,
            "difficulty": question.difficulty,
        }
        lines.append(json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False) + "\n")
    return "".join(lines)


def _question(at: int, entry: _Entry, database: str) -> Question:
    return Question(
        id=_id(at, entry),
        database=database,
        text=entry.question,
        evidence=entry.evidence,
        difficulty=entry.difficulty,
        gold=entry.gold,
    )


def _id(at: int, entry: _Entry) -> str:
    return str(at) if entry.id is None else entry.id


def _lines(text: str) -> Iterator[str]:
    """Whatever ends them: no end of a line stands in JSON but between its parts, nor does the mark of another file."""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        yield line.removeprefix("\ufeff")


def _database(folder: DataFolder, name: str, where: str) -> Path | None:
    """The file that a line means; a path cannot lead out of the list's folder."""
    parts = name.removeprefix("./").split("/")
    fault = _fault(name, parts)
    if fault:
        msg = (
            f"{where}: database {shown(name)} {fault};"
            " name a file beside the list or below it, like 'shop.sqlite' or 'data/shop.sqlite'"
        )
        raise InputError(msg)
    choices = [parts, *([*parts[:-1], parts[-1] + suffix] for suffix in SUFFIXES)]
    choices += [[*parts, parts[-1] + suffix] for suffix in SUFFIXES]
    found = (folder.find(*choice) for choice in choices if is_name(choice[-1]))  # a suffix can make it too long
    return next((path for path in found if path is not None and path.is_file()), None)


def _fault(name: str, parts: list[str]) -> str:
    """Why a path cannot be one of a database; empty: it can."""
    if name.startswith(("/", "~")) or _DRIVE.match(name):
        return "is an absolute path"
    if ".." in parts:
        return "leads out of the list's folder"
    return "" if all(map(is_name, parts)) else "is no path of a file"


def _ids(folder: DataFolder, files: Mapping[str, Path]) -> dict[str, str]:
    """Ids by what the lines say; different files have different ids."""
    stems: dict[str, set[Path]] = {}
    for path in files.values():
        stems.setdefault(path.stem, set()).add(path)
    return {
        name: path.stem if len(stems[path.stem]) == 1 else path.relative_to(folder.root).with_suffix("").as_posix()
        for name, path in files.items()
    }
