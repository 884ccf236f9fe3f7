"""Questions as JSON lines, predictions and gold lines, well formed and not."""

from __future__ import annotations

import json
import re
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


PET = '{"database": "pets", "question": "?"}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", r"holds no question; write one JSON object a line"),
        (PET + "\n\n{", r"list\.jsonl: line 3, column 2: not JSON \(Expecting property name"),
        (PET + PET, r"list\.jsonl: line 1, column 38: not JSON \(Extra data\)"),
        (PET + "\n" + "[" * 200_000, r"list\.jsonl: line 2: nested too deep"),
        (PET + "\n[]", r"list\.jsonl: line 2: it is \[\]: input should be"),
        ('{"database": "pets", "question": "a\0b"}', r"line 1, column 36: it holds a NUL byte; .* as UTF-8"),
        ("\0" * 5, r"list\.jsonl: line 1, column 1: it holds a NUL byte; is it damaged, or in UTF-16\?"),
        (PET.replace("?", "a\\u0000b"), r"list\.jsonl: line 1: question is 'a\\x00b': it holds a NUL; correct it"),
        (PET.replace("?", "x" * (10 << 20)), r"line 1: question is 'x+\.\.\.: .*at most 100000 characters; correct it"),
        (PET.replace("?", "\\ud800"), r"line 1: question is '\\ud800': .*; correct it"),
        (PET.replace('"?"', '"?", "gold": "a\\u0000"'), r"line 1: gold is 'a\\x00': it holds a NUL; correct it"),
        ('{"database": "pets"}', r"list\.jsonl: line 1: 'question' is missing; add it"),
        ('{"database": "pets", "question": "q", "sql": "x"}', r"line 1: 'sql' is not known; the fields are id, "),
        (PET.replace("pets", "cats"), r"none of its databases is there; the first is expected at 'cats'"),
        *(
            (PET.replace("{", f'{{"id": {written}, '), rf"line 1: id is {shown}: it is {fault}; correct it")
            for written, shown, fault in (
                ("true", "True", "neither a text nor a whole number"),
                ("1.5", "1.5", "neither a text nor a whole number"),
                ("[1]", r"\[1\]", "neither a text nor a whole number"),
                ('"a\\nb"', r"'a\\nb'", "no text that can be shown on one line"),
                ('""', "''", "no text that can be shown on one line"),
                ("1" + "0" * 300, r"10+\.\.\.", "too long; 200 characters are allowed"),
            )
        ),
    ],
)
def test_malformed_json_lines_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pets.sqlite").touch()
    (tmp_path / "list.jsonl").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_jsonl(tmp_path / "list.jsonl")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 400
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        load_jsonl(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("/data/pets.sqlite", "is an absolute path"),
        ("/", "is an absolute path"),
        ("~/pets.sqlite", "is an absolute path"),
        ("C:\\data\\pets.sqlite", "is an absolute path"),
        ("../pets", "leads out of the list's folder"),
        ("data/../../pets", "leads out of the list's folder"),
        (".", "is no path of a file"),
        ("data//pets", "is no path of a file"),
        ("data/", "is no path of a file"),
        ("data\\pets.sqlite", "is no path of a file"),
        ("pe\nts", "is no path of a file"),
        ("x" * 300, "is no path of a file"),
        ("表" * 150, "is no path of a file"),
    ],
)
def test_a_database_that_does_not_lie_beside_the_list_is_refused_with_its_path(
    tmp_path: Path, name: str, fault: str
) -> None:
    (tmp_path / "pets.sqlite").touch()
    entry = json.dumps({"database": name, "question": "q"})
    (tmp_path / "list.jsonl").write_text(f"{PET}\n\n{entry}\n{entry}\n")
    said = re.escape(repr(name[:80])[:77])
    way_out = r"name a file beside the list or below it, like 'shop\.sqlite' or 'data/shop\.sqlite'"
    with pytest.raises(InputError, match=rf"list\.jsonl: line 3: database {said}.* {fault}; {way_out}"):
        load_jsonl(tmp_path / "list.jsonl")


@pytest.mark.parametrize(("ids", "name"), [(('"1"', "1"), "1"), (("3", None), "3"), (("7", "7"), "7")])
def test_an_id_that_occurs_twice_is_refused_with_both_lines(
    tmp_path: Path, ids: tuple[str | None, str | None], name: str
) -> None:
    (tmp_path / "pets.sqlite").touch()
    entries = [PET if one is None else PET.replace("{", f'{{"id": {one}, ') for one in ids]
    (tmp_path / "list.jsonl").write_text("\n\n".join(entries))
    message = rf"list\.jsonl: lines 1 and 3 have the same id '{name}'; give each its own"
    with pytest.raises(InputError, match=message):
        load_jsonl(tmp_path / "list.jsonl")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r", "\n\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_list_is_read_however_an_editor_saved_it(tmp_path: Path, ending: str, encoding: str) -> None:
    (tmp_path / "pets.sqlite").touch()
    text = ending.join([PET.replace("?", "Wie viele Kätzchen?"), PET, ""])
    (tmp_path / "list.jsonl").write_bytes(text.encode(encoding))
    found = load_jsonl(tmp_path / "list.jsonl").questions
    assert [(one.id, one.text) for one in found] == [("1", "Wie viele Kätzchen?"), ("2", "?")]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)


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
