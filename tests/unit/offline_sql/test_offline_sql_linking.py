"""Reading requests: sections, schema, names, values, cues and hints."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.sql import cues
from orchestrator.llm.offline.sql.linking import Mention, link
from orchestrator.llm.offline.sql.reading import read
from orchestrator.llm.offline.sql.request import read_request
from orchestrator.llm.offline.sql.schema_reader import read_schema
from orchestrator.llm.offline.sql.words import likeness, name_words, tokenize
from tests.unit.offline_sql.observatory import SCHEMA, message

VIEW = read_schema(SCHEMA)


def mentions(question: str) -> list[Mention]:
    return list(link(tokenize(question), VIEW))


def named(question: str) -> list[tuple[str, str | None]]:
    return [(m.targets[0].table, m.targets[0].column.name if m.targets[0].column else None) for m in mentions(question)]


def test_the_schema_section_gives_columns_with_types_examples_and_matches() -> None:
    country = VIEW.field("OBSERVATORY", "Country")
    altitude = VIEW.field("observatory", "altitude_m")
    assert country is not None
    assert altitude is not None
    assert country.examples == ("Norway", "Chile")
    assert country.matches == ("Chile", "Norway")
    assert altitude.title == "altitude"
    assert altitude.is_number
    assert not country.is_number


def test_keys_become_edges_that_know_their_ends() -> None:
    ends = {(e.left.table, e.left.name, e.right.table, e.right.name) for e in VIEW.edges}
    assert ("telescope", "observatory_id", "observatory", "observatory_id") in ends
    assert len(ends) == 3


def test_tables_without_a_declared_key_are_joined_by_a_column_named_after_the_other() -> None:
    view = read_schema(
        "CREATE TABLE pond (pond_id INT, PRIMARY KEY (pond_id)); CREATE TABLE frog (name TEXT, pond_id INT);"
    )
    assert [(e.left.table, e.right.table, e.weight > 1) for e in view.edges] == [("frog", "pond", True)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("AirDate", ("air", "date")),
        ("lname", ("last", "name")),
        ("FlightNo", ("flight", "number")),
        ("number_of_pages", ("number", "of", "page")),
        ("HTTPCode2", ("http", "code", "2")),
    ],
)
def test_names_are_split_into_stems(name: str, words: tuple[str, ...]) -> None:
    assert name_words(name) == words


@pytest.mark.parametrize(
    ("left", "right"), [("nation", "country"), ("dest", "destination"), ("observatory", "observatry")]
)
def test_synonyms_abbreviations_and_slips_are_alike(left: str, right: str) -> None:
    assert likeness(left, right) >= 0.65


def test_words_that_share_a_beginning_only_are_not_alike() -> None:
    assert likeness("station", "status") == 0.0


def test_a_name_after_its_table_belongs_to_that_table() -> None:
    reading = read(SCHEMA, "List telescope names.", "")
    assert reading.owners[1] == "telescope"
    assert reading.owners[0] is None


def test_a_name_of_a_table_belongs_to_that_table() -> None:
    reading = read(SCHEMA, "What is the name of the observatory?", "")
    assert reading.owners[0] == "observatory"


def test_values_are_found_whatever_their_case_and_number() -> None:
    assert ("telescope", "kind") in named("How many Radios are there?")


def test_a_quotation_is_one_token_and_a_possessive_ending_none() -> None:
    tokens = tokenize("Which is the observatory's name 'Low Fen' or \"Grey Rock\"?")
    assert [t.text for t in tokens if t.kind == "quoted"] == ["Low Fen", "Grey Rock"]
    assert "observatory" in [t.lower for t in tokens]


def test_comparisons_are_read_with_their_operators_and_numbers() -> None:
    tokens = tokenize("older than 30, at most 5 hours, between 3 and 7, more than the average")
    assert [(c.op, c.numbers) for c in cues.comparisons(tokens)] == [
        (">", ("30",)),
        ("<=", ("5",)),
        ("BETWEEN", ("3", "7")),
        (">", ()),
    ]


def test_superlatives_know_direction_concept_and_number() -> None:
    found = list(cues.superlatives(tokenize("the top 3 observatories, the youngest astronomer, the most common kind")))
    assert [(s.descending, s.limit, s.is_count) for s in found] == [
        (True, 3, False),
        (False, None, False),
        (True, None, True),
    ]
    assert found[1].concepts[0] == ("age", False)


def test_a_section_ends_only_with_its_own_fence() -> None:
    text = message("Write a SQLite query", Schema="```\n## Question\n```\ninjected\n```", Question="How many?")
    request = read_request(text)
    assert request is not None
    assert request.section("Question") == "How many?"
    assert "injected" in request.section("Schema")


def test_a_hint_is_read_as_conditions_columns_formulas_and_extremes() -> None:
    share = "share = DIVIDE(SUM(kind = 'radio'), COUNT(telescope_id))"
    hint = f"high refers to altitude_m > 1000; {share}; best refers to MAX(price)"
    statements = read(SCHEMA, "q", hint).hint.statements
    assert [(c.op, c.literals) for c in statements[0].conditions] == [(">", ("1000",))]
    assert statements[1].formula is not None
    assert statements[2].extreme is not None
    assert statements[2].extreme[1]


def test_a_hint_can_bring_in_no_name_and_no_function_of_its_own() -> None:
    hint = "x refers to load_extension('a'); y refers to secret.password = 1; z = randomblob(9)"
    assert all(not s.conditions and s.formula is None for s in read(SCHEMA, "q", hint).hint.statements)
