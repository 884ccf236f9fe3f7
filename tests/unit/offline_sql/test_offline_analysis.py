"""Any text that describes a database is read into the same schema."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.sql.analysis import read_analysis
from orchestrator.llm.offline.sql.schema import SchemaView
from tests.unit.offline_sql.briefed import BARE, CREATE, TEXTS


def schema_of(text: str) -> SchemaView:
    return read_analysis(text).schema


def names(schema: SchemaView) -> dict[str, list[str]]:
    return {table: [column.name for column in columns] for table, columns in schema.tables.items()}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
class TestEveryForm:
    def test_tables_and_columns_are_found_and_no_others(self, text: str) -> None:
        assert names(schema_of(text)) == {
            "observatory": ["observatory_id", "name", "country"],
            "telescope": ["telescope_id", "label", "kind", "price", "observatory_id"],
        }

    def test_types_and_keys_are_found(self, text: str) -> None:
        schema = schema_of(text)
        types = [column.type for column in schema.tables["telescope"]]
        primary = [column.name for column in schema.fields() if column.is_primary]
        assert types == ["INTEGER", "TEXT", "TEXT", "REAL", "INTEGER"]
        assert primary == ["observatory_id", "telescope_id"]

    def test_the_reference_is_found(self, text: str) -> None:
        edges = [(edge.left.table, edge.left.name, edge.right.table, edge.right.name) for edge in schema_of(text).edges]
        assert edges == [("telescope", "observatory_id", "observatory", "observatory_id")]

    def test_listed_values_are_known(self, text: str) -> None:
        schema = schema_of(text)
        country, kind = schema.field("observatory", "country"), schema.field("telescope", "kind")
        assert country is not None
        assert kind is not None
        assert set(country.examples) == {"Norway", "Chile"}
        assert set(kind.examples) == {"optical", "radio"}

    def test_a_question_is_linked_to_listed_values(self, text: str) -> None:
        known = read_analysis(text).for_question("Which radio telescopes does norway have?", "")
        matched = {(column.name, column.matches) for column in known.fields() if column.matches}
        assert matched == {("country", ("Norway",)), ("kind", ("radio",))}


def test_statements_give_the_structure_and_other_text_adds_no_columns_to_it() -> None:
    text = BARE + "\n## observatory\n- overview: sites of telescopes\n- rows (3)\n- country: values: 'Peru'\n"
    schema = schema_of(text)
    country = schema.field("observatory", "country")
    assert names(schema) == names(schema_of(CREATE))
    assert country is not None
    assert country.examples == ("Peru",)


def test_headings_of_prose_are_no_tables() -> None:
    text = "# Overview\n- note: nothing\n\n## Table: shop\n- id (INTEGER)\n- town (TEXT)\n\n## Advice\n- join: no\n"
    assert names(schema_of(text)) == {"shop": ["id", "town"]}


def test_names_with_blanks_and_quotes_are_read() -> None:
    text = 'CREATE TABLE "my shop" ("its name" TEXT, [open on] DATE);\n\n## Table: my shop\n'
    text += "- `its name`: values: 'It''s here', 'Men''s'\n"
    column = schema_of(text).field("my shop", "its name")
    assert column is not None
    assert column.examples == ("It's here", "Men's")


def test_ranges_tell_dates_from_other_text() -> None:
    text = "## Table: stay\n- begun (TEXT): min '2014-01-02', max '2015-12-31'\n- note (TEXT)\n"
    begun = schema_of(text).field("stay", "begun")
    assert begun is not None
    assert begun.is_date


def test_a_few_words_about_a_column_become_its_title() -> None:
    text = "## Table: car\n- hp (INTEGER): horse power of the engine\n- w (INTEGER, not null)\n"
    schema = schema_of(text)
    titles = [column.title for column in schema.fields()]
    assert titles == ["horse power of the engine", ""]


def test_a_number_of_distinct_values_is_no_value() -> None:
    column = schema_of("## Table: car\n- maker (TEXT): distinct: 12\n- id (INTEGER)\n").field("car", "maker")
    assert column is not None
    assert column.examples == ()


def test_a_common_word_is_no_value_by_chance() -> None:
    text = "CREATE TABLE trait (trait_name TEXT);\nCREATE TABLE super_power (power_name TEXT);\n"
    text += "trait.trait_name: values: 'Power', 'Speed'\n"
    known = read_analysis(text)
    asked = known.for_question("Which power is there?", "").field("trait", "trait_name")
    written = known.for_question("Is there Power?", "").field("trait", "trait_name")
    assert asked is not None
    assert written is not None
    assert asked.matches == ()
    assert written.matches == ("Power",)


def test_spiders_own_description_is_read() -> None:
    text = (
        '{"table_names_original": ["a", "b"], "column_names_original": [[-1, "*"], [0, "x"], [1, "y"]],'
        ' "column_types": ["text", "number", "text"], "primary_keys": [1], "foreign_keys": [[2, 1]]}'
    )
    schema = schema_of(text)
    assert names(schema) == {"a": ["x"], "b": ["y"]}
    assert [(edge.left.name, edge.right.name) for edge in schema.edges] == [("y", "x")]


def test_a_view_that_is_a_query_has_no_columns_to_read() -> None:
    statements = [BARE, "CREATE VIEW v AS SELECT count(name) FROM observatory;"]
    assert "v" not in schema_of("\n".join(statements)).tables


def test_the_same_text_gives_the_same_schema() -> None:
    text = TEXTS["prose"]
    first = read_analysis(text).schema
    read_analysis.cache_clear()
    again = read_analysis(text).schema
    assert again is not first
    assert (again.tables, again.edges) == (first.tables, first.edges)
