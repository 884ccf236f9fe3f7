"""Questions as JSON lines, predictions and gold lines, well formed and not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.sql.datasets import load_jsonl
from orchestrator.sql.datasets.bird import read_gold_lines, read_predictions, write_gold_lines, write_predictions
from orchestrator.sql.datasets.jsonl import write_jsonl


def test_json_lines_are_read_with_defaults(tmp_path: Path) -> None:
    for name in ("pets.sqlite", "zoo/zoo.sqlite", "sub/pets.db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    lines = [
        {"database": "pets.sqlite", "question": "How many?"},
        {"id": 5, "database": "zoo", "question": "Q", "evidence": "e", "gold": "SELECT 1", "difficulty": "hard"},
        {"id": "x", "database": "./sub/pets", "question": "Q"},
    ]
    text = "\ufeff" + "\r\n\r\n".join(map(json.dumps, lines))
    (tmp_path / "list.jsonl").write_text(text)
    dataset = load_jsonl(tmp_path / "list.jsonl")
    assert dataset.questions == (
        Question(id="1", database="pets", text="How many?"),
        Question(id="5", database="zoo", text="Q", evidence="e", difficulty="hard", gold="SELECT 1"),
        Question(id="x", database="sub/pets", text="Q"),
    )
    assert dataset.databases["zoo"] == tmp_path / "zoo/zoo.sqlite"
    assert dataset.databases["sub/pets"] == tmp_path / "sub/pets.db"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", r"holds no question; write one JSON object a line"),
        ('{"database": "pets", "question": "q"}\n{', r"list\.jsonl: entry 2: line 1, column 2: not JSON"),
        ('{"database": "pets"}', r"list\.jsonl: entry 1: 'question' is missing; add it"),
        ('{"database": "pets", "question": "q", "sql": "x"}', r"entry 1: 'sql' is not known; the fields are id, "),
        ('{"database": "../pets", "question": "q"}', r"'\.\.' is no name of a database"),
        ('{"database": "/pets", "question": "q"}', r"'' is no name of a database"),
        ('{"database": ".", "question": "q"}', r"'\.' is no name of a database"),
        ('{"database": "cats", "question": "q"}', r"none of its databases is there; the first is expected at 'cats'"),
        (
            '{"id": "1", "database": "pets", "question": "q"}\n{"id": 1, "database": "pets", "question": "q"}',
            r"entries 1 and 2 have the same id '1'",
        ),
    ],
)  # fmt: skip
def test_malformed_json_lines_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pets.sqlite").touch()
    (tmp_path / "list.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        load_jsonl(tmp_path / "list.jsonl")
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        load_jsonl(tmp_path / "other.jsonl")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=5))
def test_questions_written_as_json_lines_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "pets.sqlite").touch()
    questions = tuple(
        Question(id=str(at), database="pets", text=text, evidence=evidence, gold=gold)
        for at, (text, evidence, gold) in enumerate(said)
    )
    (folder / "list.jsonl").write_text(write_jsonl(questions), encoding="utf-8", newline="")
    assert load_jsonl(folder / "list.jsonl").questions == questions


@given(st.lists(st.tuples(texts, st.sampled_from(["pets", "a b"]))))
def test_predictions_are_read_as_they_were_written(predictions: list[tuple[str, str]]) -> None:
    written = json.dumps(write_predictions(predictions))
    assert read_predictions(written, "p") == dict(enumerate(predictions))


def test_predictions_are_in_birds_form() -> None:
    assert write_predictions([("SELECT 1", "pets")]) == {"0": "SELECT 1\t----- bird -----\tpets"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"p: predictions are an object of index and SQL, not \[\]"),
        ('{"x": "y"}', r"p: 'x' is 'y'; a key is the question's place"),
        ('{"0": 1}', r"p: '0' is 1"),
        ('{"0": "SELECT 1"}', r"p: prediction 0 does not end with"),
    ],
)
def test_malformed_predictions_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_predictions(text, "p")


def test_gold_lines_are_split_from_the_right() -> None:
    golds = (("SELECT '\t' FROM t", "pets"), ("SELECT 2", "zoo"))
    assert write_gold_lines(golds) == "SELECT '\t' FROM t\tpets\nSELECT 2\tzoo\n"
    assert read_gold_lines(write_gold_lines(golds), "g") == golds
    assert read_gold_lines("\ufeffSELECT 1 \t pets\r\n\r\n", "g") == (("SELECT 1", "pets"),)
    with pytest.raises(InputError, match="g: line 2 is 'SELECT 2'; a tab and the database must follow"):
        read_gold_lines("SELECT 1\tpets\nSELECT 2", "g")
    with pytest.raises(InputError, match="gold query 1 has several lines"):
        write_gold_lines([("SELECT 1 -- one\n+ 1", "pets")])
