"""Names and links of a data set that a file system does not take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.sql.datasets import load_bird, load_jsonl
from orchestrator.sql.datasets.folder import MAX_NAME_BYTES, DataFolder, is_name

ENTRY = {"database": "pets", "question": "?"}


def circle(path: Path) -> str:
    """A link to itself; what is said of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path.name)
    return (
        rf"{re.escape(str(path))}' is a link that leads nowhere or in a circle; put the file itself into the data set"
    )


@pytest.mark.parametrize("name", ["pets.sqlite", "pets", "pets/pets.db", "PETS.SQLITE"])
def test_a_database_that_is_a_circle_of_links_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "list.jsonl").write_text(json.dumps(ENTRY))
    with pytest.raises(InputError, match=circle(tmp_path / name)):
        load_jsonl(tmp_path / "list.jsonl")


def test_a_list_that_is_a_circle_of_links_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=circle(tmp_path / "list.jsonl")):
        load_jsonl(tmp_path / "list.jsonl")


@pytest.mark.parametrize(
    "name",
    ["dev_databases/pets/database_description/loop.csv", "dev_databases/pets/database_description", "dev_tables.json"],
)
def test_a_file_in_birds_layout_that_is_a_circle_of_links_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    entry = {"db_id": "pets", "question": "?"}
    (tmp_path / "dev.json").write_text(json.dumps([entry]))
    (tmp_path / "dev_databases/pets").mkdir(parents=True)
    (tmp_path / "dev_databases/pets/pets.sqlite").touch()
    assert load_bird(tmp_path).databases
    with pytest.raises(InputError, match=circle(tmp_path / name)):
        load_bird(tmp_path)


def test_a_link_in_a_circle_that_nothing_asks_for_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "list.jsonl").write_text(json.dumps(ENTRY))
    (tmp_path / "pets.sqlite").touch()
    circle(tmp_path / "other.sqlite")
    assert load_jsonl(tmp_path / "list.jsonl").databases == {"pets": tmp_path / "pets.sqlite"}


@pytest.mark.parametrize("letter", ["x", "é", "表", "😀"])
def test_a_name_is_as_long_as_a_file_system_takes_it(tmp_path: Path, letter: str) -> None:
    suffix = ".sqlite"
    longest = min(200 - len(suffix), (MAX_NAME_BYTES - len(suffix)) // len(letter.encode())) * letter
    assert is_name(longest + suffix)
    assert not is_name(longest + letter + suffix)
    (tmp_path / (longest + suffix)).touch()
    entries = [ENTRY | {"database": longest}, ENTRY | {"database": longest + letter}]
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, entries)))
    dataset = load_jsonl(tmp_path / "list.jsonl")
    assert list(dataset.databases) == [longest]
    assert dataset.orphans[0].startswith("1 questions are left out, whose databases are missing")


def test_a_name_in_birds_layout_that_a_suffix_makes_too_long_is_one_of_a_missing_database(tmp_path: Path) -> None:
    (tmp_path / "dev_databases").mkdir()
    (tmp_path / "dev.json").write_text(json.dumps([{"db_id": "x" * 200, "question": "?"}]))
    with pytest.raises(InputError, match=r"holds none of the databases; the first is expected at x+/x+"):
        load_bird(tmp_path)


def test_a_path_that_is_too_long_to_be_opened_is_refused_with_its_name(tmp_path: Path) -> None:
    folder = tmp_path
    while (left := 4_000 - len(str(folder))) > 1:  # Linux takes 4,096 bytes
        folder /= "d" * min(200, left - 1)
    folder.mkdir(parents=True)
    (folder / "list.jsonl").write_text(json.dumps(ENTRY | {"database": "x" * 199}))
    with pytest.raises(InputError, match=r"cannot look for 'x+\.*'?\.* in .*: File name too long; use shorter names"):
        load_jsonl(folder / "list.jsonl")


def test_a_folder_whose_name_is_too_long_is_no_folder() -> None:
    with pytest.raises(InputError, match=r"^'y+\.\.\. is not a folder; give the folder of the data set"):
        DataFolder(Path("y" * 300))
