"""Data sets in the layouts of BIRD and Spider and as JSON lines, well formed and not."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets import (
    ColumnText,
    Dataset,
    describe_columns,
    load_bird,
    load_spider,
    unmatched,
)
from tests.unit.sql.made import schema_of

DATA = Path(os.environ.get("EVOLVARIUM_DATA", Path(__file__).parents[4] / "shared/data"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the public data sets are not at {DATA}; set EVOLVARIUM_DATA"
)
HEADER = "original_column_name,column_name,column_description,data_format,value_description"
BIRD = [
    {
        "question_id": 7,
        "db_id": "pets",
        "question": "How many?",
        "evidence": "e",
        "SQL": "SELECT 1",
        "difficulty": "simple",
    },
    {"question_id": 9, "db_id": "pets", "question": "Which?", "evidence": "", "SQL": "SELECT 2", "difficulty": "hard"},
]
SPIDER = [{"db_id": "pets", "question": "How many?", "query": "SELECT 1", "query_toks": ["SELECT", "1"], "sql": {}}]
TABLES = {
    "db_id": "pets",
    "table_names_original": ["Pet"],
    "column_names_original": [[-1, "*"], [0, "PetID"], [0, "age"]],
    "column_names": [[-1, "*"], [0, "pet id"], [0, "age of the pet"]],
}


def database(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript('CREATE TABLE Pet (PetID INTEGER PRIMARY KEY, "Age" INT);')
    connection.close()
    return path


@pytest.fixture
def bird(tmp_path: Path) -> Path:
    (tmp_path / "dev.json").write_text(json.dumps(BIRD))
    database(tmp_path / "dev_databases/pets/pets.sqlite")
    return tmp_path


@pytest.fixture
def spider(tmp_path: Path) -> Path:
    (tmp_path / "dev.json").write_text(json.dumps(SPIDER))
    (tmp_path / "tables.json").write_text(json.dumps([TABLES]))
    database(tmp_path / "database/pets/pets.sqlite")
    return tmp_path


def describe(root: Path, name: str, content: bytes) -> None:
    folder = root / "dev_databases/pets/database_description"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)


def test_a_bird_question_has_its_id_hint_gold_and_difficulty(bird: Path) -> None:
    dataset = load_bird(bird)
    assert dataset.questions[0] == Question(
        id="7", database="pets", text="How many?", evidence="e", difficulty="simple", gold="SELECT 1"
    )
    assert dataset.databases == {"pets": bird / "dev_databases/pets/pets.sqlite"}
    assert (dataset.name, dataset.orphans) == ("bird", ())


def test_bird_training_questions_are_numbered_from_zero(bird: Path) -> None:
    training = [{name: entry[name] for name in ("db_id", "question", "evidence", "SQL")} for entry in BIRD]
    (bird / "dev.json").rename(bird / "old.json")
    (bird / "train.json").write_text(json.dumps(training))
    (bird / "dev_databases").rename(bird / "train_databases")
    assert [(question.id, question.difficulty) for question in load_bird(bird).questions] == [("0", ""), ("1", "")]
    assert [question.id for question in load_bird(bird, "old.json").questions] == ["7", "9"]


def test_a_spider_question_is_numbered_and_columns_have_titles(spider: Path) -> None:
    dataset = load_spider(spider)
    assert dataset.questions == (Question(id="0", database="pets", text="How many?", gold="SELECT 1"),)
    assert dataset.descriptions["pets"] == {
        ("pet", "petid"): ColumnText(title="pet id"),
        ("pet", "age"): ColumnText(title="age of the pet"),
    }


@pytest.mark.parametrize(
    "raw",
    [
        f"{HEADER}\nage,years,café,integer,\"1: a\n2: b\"\n".encode(),
        f"{HEADER}\r\nage,years,café,integer,\"1: a\n2: b\"\r\n".encode("utf-8-sig"),
        f"{HEADER}\nage,years,café,integer,\"1: a\n2: b\"\n".encode("cp1252"),
        f"{HEADER},\n age ,years, café ,integer,\"1: a\n2: b\",,,\n,,,,\n".encode(),
        (HEADER.title() + ' \nAGE,years,café,,"1: a\n2: b"\nage,x,y,,\n').encode(),
    ],
    ids=["utf-8", "byte order mark and CRLF", "cp1252", "unnamed columns", "other case"],
)  # fmt: skip
def test_descriptions_are_read_as_people_save_them(bird: Path, raw: bytes) -> None:
    describe(bird, "PET.csv", raw)
    described = load_bird(bird).descriptions["pets"]
    assert described == {("pet", "age"): ColumnText(title="years", description="café", value_description="1: a\n2: b")}


def test_bytes_of_no_windows_encoding_are_read_as_latin_1(bird: Path) -> None:
    describe(bird, "pet.csv", HEADER.encode() + b"\nage,years,\x81\xe9,,\n")
    assert load_bird(bird).descriptions["pets"]["pet", "age"].description == "\x81é"


def test_descriptions_meet_the_schema_without_regard_to_case(bird: Path) -> None:
    describe(bird, "pet.csv", f"{HEADER}\nage,years,how old,,old: 9\nbreed,,,,\n".encode())
    schema = schema_of(sqlite3.connect(bird / "dev_databases/pets/pets.sqlite"))
    described = load_bird(bird).descriptions["pets"]
    pet = describe_columns(schema, described).tables[0]
    assert [(c.name, c.title, c.description, c.value_description) for c in pet.columns] == [
        ("PetID", "", "", ""),
        ("Age", "years", "how old", "old: 9"),
    ]
    assert unmatched(schema, described) == ("pet.breed is described but not there",)


def test_a_description_goes_before_the_list_of_tables(bird: Path) -> None:
    (bird / "dev_tables.json").write_text(json.dumps([TABLES]))
    describe(bird, "pet.csv", f"{HEADER}\npetid,number,,,\nage,,how old,,\n".encode())
    assert load_bird(bird).descriptions["pets"] == {
        ("pet", "petid"): ColumnText(title="number"),
        ("pet", "age"): ColumnText(title="age of the pet", description="how old"),
    }


def test_what_macos_adds_to_archives_is_passed_over(bird: Path) -> None:
    for folder in ("__MACOSX", "dev_databases/__MACOSX/pets"):
        (bird / folder).mkdir(parents=True)
    (bird / "dev_databases/.DS_Store").write_bytes(b"\0")
    describe(bird, "._pet.csv", b"\0\5\x16\7")
    assert load_bird(bird).orphans == ()


def test_names_are_matched_without_case(bird: Path) -> None:
    (bird / "dev.json").write_text(json.dumps([BIRD[0] | {"db_id": "PETS"}, BIRD[1]]))
    (bird / "dev_databases/pets/pets.sqlite").rename(bird / "dev_databases/pets/Pets.SQLite")
    (bird / "dev_databases").rename(bird / "Dev_Databases")
    (bird / "dev.json").rename(bird / "DEV.JSON")
    dataset = load_bird(bird)
    assert dataset.databases == {"pets": bird / "Dev_Databases/pets/Pets.SQLite"}
    assert {question.database for question in dataset.questions} == {"pets"}


def test_what_belongs_to_nothing_is_reported(bird: Path) -> None:
    (bird / "dev.json").write_text(
        json.dumps([*BIRD, *({**BIRD[0], "question_id": n, "db_id": "gone"} for n in (1, 2))])
    )
    for name in ("b1", "b2", "b3", "b4", "b5", "b6", "b7"):
        database(bird / f"dev_databases/{name}/{name}.sqlite")
    describe(bird, "empty.csv", b"")
    describe(bird, "other.csv", b"a,b\n1,2\n")
    describe(bird, "wide.csv", f"{HEADER}\nage,{'x' * 200_000},,,\n".encode())
    dataset = load_bird(bird)
    assert len(dataset.questions) == 2
    assert dataset.orphans == (
        "2 questions are left out, whose databases are missing: gone",
        "databases without a question: b1, b2, b3, b4, b5 and 2 more",
        "description 'empty.csv' in 'pets' names no column",
        "description 'other.csv' in 'pets' names no column",
        "description 'wide.csv' in 'pets' is no CSV file (field larger than field limit (131072))",
    )


def test_a_list_of_tables_that_does_not_fit_together_says_nothing(spider: Path) -> None:
    entries = [
        TABLES | {"column_names": [[0, "x"]]},
        {"db_id": "other"},
        TABLES | {"db_id": "o", "column_names_original": [[5, "x"]] * 3},
    ]
    (spider / "tables.json").write_text(json.dumps(entries))
    assert load_spider(spider).descriptions == {"pets": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"dev\.json: line 1, column 1: not JSON \(Expecting value\); correct it or fetch it again"),
        ('[{"db_id": "pets"', r"dev\.json: line 1, column 18: not JSON"),
        ("[" * 200_000, r"dev\.json: nested too deep"),
        ("[" + "9" * 9000 + "]", r"dev\.json: nested too deep, or a number with too many digits"),
        ("{}", r"dev\.json: a list of entries is expected, not {}"),
        ("[]", r"dev\.json: a list of entries is expected, not \[\]"),
        ('[{"db_id": "pets", "question": "q"}, 5]', r"dev\.json: entry 2: it is 5: input should be a valid dictionary"),
        ('[{"db_id": "pets"}]', r"dev\.json: entry 1: 'question' is missing; add it"),
        ('[{"db_id": "pets", "question": ["q"]}]', r"dev\.json: entry 1: question is \['q'\]: .*; correct it"),
        ('[{"db_id": "pets", "question": "\\ud800"}]', r"dev\.json: entry 1: question is '\\ud800': .*; correct it"),
        ('[{"db_id": "pets", "question": "a\\u0000"}]', r"dev\.json: entry 1: question is 'a\\x00': it holds a NUL"),
        ('[{"db_id": "pets", "question": "q", "SQL": "\\u0000"}]', r"entry 1: SQL is '\\x00': it holds a NUL"),
        ('[{"db_id": "pets", "question": "q", "question_id": "a\\nb"}]', r"entry 1: question_id is 'a\\nb': it is no"),
        ('[{"db_id": "pets",\n"question": "\0"}]', r"dev\.json: line 2, column 14: it holds a NUL byte; .* as UTF-8"),
        ('[{"db_id": "../pets", "question": "q"}]', r"dev\.json: '\.\./pets' is no name of a database"),
        ('[{"db_id": "..", "question": "q"}]', r"is no name of a database"),
        ('[{"db_id": "", "question": "q"}]', r"is no name of a database"),
        ('[{"db_id": "/etc", "question": "q"}]', r"is no name of a database"),
        ('[{"db_id": "a\\\\b", "question": "q"}]', r"is no name of a database"),
        ('[{"db_id": "a\\u0000b", "question": "q"}]', r"is no name of a database"),
        ('[{"db_id": "' + "x" * 300 + '", "question": "q"}]', r"is no name of a database"),
        ('[{"db_id": "cats", "question": "q"}]', r"holds none of the databases; .* at cats/cats\.sqlite in it"),
        (json.dumps([*BIRD, BIRD[0]]), r"dev\.json: entries 1 and 3 have the same id '7'; give each its own"),
    ],
)  # fmt: skip
def test_a_malformed_list_is_refused_with_file_entry_and_way_out(bird: Path, text: str, message: str) -> None:
    (bird / "dev.json").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_bird(bird)
    assert len(str(caught.value).replace(str(bird), "")) < 400


@pytest.mark.parametrize("load", [load_bird, load_spider])
def test_a_folder_without_the_layout_is_refused(tmp_path: Path, load: Callable[[Path], Dataset]) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"holds no dev\.json or .*; give the folder that holds it"):
        load(tmp_path)
    (tmp_path / "dev.json").write_text('[{"db_id": "pets", "question": "q"}]')
    with pytest.raises(InputError, match=r"holds no folder .*; put the databases there"):
        load(tmp_path)


def test_nothing_outside_the_folder_is_read(bird: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = database(tmp_path_factory.mktemp("outside") / "pets.sqlite")
    inside = bird / "dev_databases/pets/pets.sqlite"
    inside.unlink()
    inside.symlink_to(outside)
    with pytest.raises(InputError, match=r"pets\.sqlite' leads out of .*; put the file itself into the data set"):
        load_bird(bird)
    inside.unlink()
    inside.symlink_to(database(bird / "elsewhere.sqlite"))
    assert load_bird(bird).databases == {"pets": inside}
    with pytest.raises(InputError, match="is no name of a database or file"):
        load_bird(bird, "../dev.json")


def test_no_pipe_is_waited_for(bird: Path) -> None:
    (bird / "dev.json").unlink()
    os.mkfifo(bird / "dev.json")
    with pytest.raises(InputError, match="it is not a regular file"):
        load_bird(bird)


def test_the_digest_follows_every_file_but_the_databases(bird: Path) -> None:
    digests = [load_bird(bird).digest]
    (bird / "dev_tables.json").write_text(json.dumps([TABLES]))
    digests.append(load_bird(bird).digest)
    describe(bird, "pet.csv", f"{HEADER}\nage,,,,\n".encode())
    digests.append(load_bird(bird).digest)
    (bird / "dev.json").write_text(json.dumps(BIRD, indent=1))
    digests.append(load_bird(bird).digest)
    assert len(set(digests)) == 4
    database(bird / "dev_databases/another/another.sqlite")
    (bird / "dev_databases/pets/pets.sqlite").write_bytes(b"")
    assert load_bird(bird).digest == digests[-1]


@needs_data
def test_the_public_data_are_read_whole() -> None:
    spider, bird = load_spider(DATA / "spider"), load_bird(DATA / "bird")
    assert (len(spider.questions), len(spider.databases), spider.orphans) == (556, 12, ())
    assert (len(bird.questions), len(bird.databases), bird.orphans) == (129, 1, ())
    assert all(question.gold for question in (*spider.questions, *bird.questions))
    assert {question.difficulty for question in bird.questions} == {"simple", "moderate", "challenging"}


@needs_data
@pytest.mark.parametrize(("load", "name"), [(load_spider, "spider"), (load_bird, "bird")])
def test_the_public_descriptions_belong_to_their_schemas(load: Callable[[Path], Dataset], name: str) -> None:
    dataset = load(DATA / name)
    described = 0
    for database, path in dataset.databases.items():
        schema = schema_of(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True), 0)
        assert unmatched(schema, dataset.descriptions[database]) == (), database
        columns = [c for t in describe_columns(schema, dataset.descriptions[database]).tables for c in t.columns]
        described += sum(bool(column.title or column.description) for column in columns)
    assert described == sum(map(len, dataset.descriptions.values()))
