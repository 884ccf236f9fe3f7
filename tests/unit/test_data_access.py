"""Data rules: what is hidden of a database, and which rule says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.domain.data_access import DataRule, access_of, find_rule, naming_nothing
from orchestrator.domain.sql import Column, Schema, Table

NAMES = st.text(st.sampled_from("aAbB*?[]!.-_ß\u0130é\"' \n"), min_size=1, max_size=6)
PATTERNS = st.lists(NAMES, max_size=4).map(tuple)
SHOP = {"person": ("id", "name", "email"), "orders": ("id", "person_id", "total"), "v_mail": ("email",)}


def schema_of(tables: dict[str, tuple[str, ...]]) -> Schema:
    return Schema(
        tables=tuple(
            Table(name=name, kind="table", sql="", columns=tuple(Column(name=column, type="") for column in columns))
            for name, columns in tables.items()
        )
    )


SCHEMAS = st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=4, unique=True).map(tuple), max_size=4).map(
    schema_of
)
RULES = st.builds(
    DataRule,
    databases=st.just(("*",)),
    tables=st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    deny=PATTERNS,
    redact=PATTERNS,
)


def hidden(rule: DataRule, schema: Schema) -> set[tuple[str, str]]:
    return {(one.table, one.column) for one in access_of(1, rule, schema).hidden}


def rule_of(**fields: object) -> DataRule:
    return DataRule.model_validate({"databases": ["*"], **fields})


def test_without_patterns_nothing_is_hidden() -> None:
    assert access_of(3, rule_of(), schema_of(SHOP)).hidden == ()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("person.email", {("person", "email")}),
        ("PERSON.Email", {("person", "email")}),
        ("*.email", {("person", "email"), ("v_mail", "email")}),
        ("person", {("person", "id"), ("person", "name"), ("person", "email")}),
        ("orders.*id", {("orders", "id"), ("orders", "person_id")}),
        ("?erson.id", {("person", "id")}),
        ("email", set()),
        ("person.email.x", set()),
        ("perso", set()),
    ],
)
@pytest.mark.parametrize("word", ["deny", "redact"])
def test_a_pattern_names_a_table_or_a_column(pattern: str, expected: set[tuple[str, str]], word: str) -> None:
    assert hidden(rule_of(**{word: [pattern]}), schema_of(SHOP)) == expected


def test_tables_that_are_not_named_are_hidden_whole() -> None:
    found = access_of(2, rule_of(tables=["orders", "V_*"]), schema_of(SHOP))
    assert {one.table for one in found.hidden} == {"person"}
    assert found.reason("PERSON", "Name") == "data rule 2, table person is not among its tables"


def test_a_reason_names_the_rule_and_the_pattern() -> None:
    found = access_of(4, rule_of(deny=["person.id"], redact=["*.email"]), schema_of(SHOP))
    assert found.reason("person", "id") == "data rule 4, deny person.id"
    assert found.reason("Person", "EMAIL") == "data rule 4, redact *.email"
    assert found.reason("person", "name") is None
    assert found.reason("nowhere", "id") is None


@pytest.mark.parametrize("name", ["a[b]c", "[a-z]", "x]", "[!a]", "[", "a\nb", "*", "?", "a.b"])
def test_odd_names_are_named_as_they_are(name: str) -> None:
    schema = schema_of({name: ("one",), "plain": (name,)})
    assert (name, "one") in hidden(rule_of(deny=[name]), schema)
    assert ("plain", name) in hidden(rule_of(deny=[f"plain.{name}"]), schema)


def test_brackets_in_a_pattern_are_no_range_of_letters() -> None:
    assert hidden(rule_of(deny=["[a-z]"]), schema_of({"b": ("one",)})) == set()


@pytest.mark.parametrize(
    ("pattern", "name"), [("stra?e", "straße"), ("STRASSE", "straße"), ("?", "\u0130"), ("É", "é")]
)
def test_hiding_knows_every_sense_of_upper_and_lower_case(pattern: str, name: str) -> None:
    assert hidden(rule_of(deny=[pattern]), schema_of({name: ("one",)})) == {(name, "one")}


def test_what_may_be_read_is_named_as_sqlite_compares_names() -> None:
    schema = schema_of({"É": ("one",), "é": ("one",)})
    assert hidden(rule_of(tables=["é"]), schema) == {("É", "one")}


def test_reasons_keep_apart_what_sqlite_keeps_apart() -> None:
    found = access_of(1, rule_of(tables=["é"]), schema_of({"É": ("one",), "é": ("one",)}))
    assert found.reason("É", "one") is not None
    assert found.reason("é", "one") is None


def test_the_first_rule_that_names_a_database_counts() -> None:
    rules = [rule_of(databases=["shop_*"], deny=["person"]), rule_of(databases=["*"])]
    assert find_rule(rules, "SHOP_2024") == (1, rules[0])
    assert find_rule(rules, "library") == (2, rules[1])
    assert find_rule(rules[:1], "library") is None
    assert find_rule([], "library") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"databases": []},
        {"databases": [""]},
        {"tables": []},
        {"allow": ["person"]},
        {"max_rows": 0},
        {"max_rows": float("inf")},
        {"max_bytes": 1 << 40},
        {"query_seconds": 0},
        {"query_seconds": float("inf")},
        {"query_seconds": float("nan")},
    ],
)
def test_a_rule_is_strict_and_finite(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        rule_of(**fields)


@given(RULES, SCHEMAS, NAMES, st.sampled_from(["deny", "redact"]))
def test_another_pattern_never_shows_more(rule: DataRule, schema: Schema, pattern: str, word: str) -> None:
    wider = rule.model_copy(update={word: (*getattr(rule, word), pattern)})
    assert hidden(rule, schema) <= hidden(wider, schema)


@given(RULES, SCHEMAS, st.data())
def test_fewer_tables_never_show_more(rule: DataRule, schema: Schema, data: st.DataObject) -> None:
    fewer = data.draw(st.lists(st.sampled_from(rule.tables), min_size=1).map(tuple))
    assert hidden(rule, schema) <= hidden(rule.model_copy(update={"tables": fewer}), schema)


@given(RULES, SCHEMAS)
def test_what_is_hidden_is_what_has_a_reason(rule: DataRule, schema: Schema) -> None:
    found = access_of(1, rule, schema)
    for table in schema.tables:
        for column in table.columns:
            if (table.name, column.name) in hidden(rule, schema):
                assert found.reason(table.name, column.name) is not None


@given(RULES, SCHEMAS)
def test_a_rule_hides_nothing_that_the_schema_does_not_have(rule: DataRule, schema: Schema) -> None:
    there = {(table.name, column.name) for table in schema.tables for column in table.columns}
    assert hidden(rule, schema) <= there


@given(st.lists(RULES, max_size=4), NAMES)
def test_a_rule_is_found_by_its_place_and_never_one_that_does_not_match(rules: list[DataRule], name: str) -> None:
    named = [rule.model_copy(update={"databases": rule.tables}) for rule in rules]
    found = find_rule(named, name)
    if found is None:
        return
    number, rule = found
    assert named[number - 1] is rule
    assert find_rule(named[: number - 1], name) is None


def test_rules_are_values() -> None:
    found = access_of(1, rule_of(deny=["person.id"]), schema_of(SHOP))
    assert replace(found, max_rows=1).hidden == found.hidden
    with pytest.raises(ValidationError):
        rule_of().tables = ("x",)


def test_tables_are_found_as_sqlite_finds_them() -> None:
    schema = Schema(tables=tuple(Table(name=n, kind="table", sql="", columns=()) for n in ("Orders", "É", "é")))
    assert schema.table("oRDERS") is schema.tables[0]
    assert schema.table("é") is schema.tables[2]
    assert schema.table("none") is None


@pytest.mark.parametrize(
    ("rule", "suspicious"),
    [
        ({"databases": ["library"], "deny": ["book.price"]}, ("deny book.price",)),
        ({"databases": ["*"], "deny": ["book.price", "*.price"]}, ("deny book.price",)),
        ({"databases": ["Library"], "redact": ["*.e_mail", "*.EMAIL"]}, ("redact *.e_mail",)),
        ({"databases": ["*"], "redact": ["*.e_mail"]}, ()),
        ({"databases": ["library"], "tables": ["books", "membres"]}, ("tables membres",)),
        ({"databases": ["library"], "deny": ["books"], "redact": ["members.email"]}, ()),
    ],
)
def test_patterns_that_name_nothing_are_told_of_where_they_were_meant_for_it(
    rule: dict[str, list[str]], suspicious: tuple[str, ...]
) -> None:
    schema = Schema(
        tables=(
            Table(name="books", kind="table", sql="", columns=(Column(name="price", type=""),)),
            Table(name="members", kind="table", sql="", columns=(Column(name="email", type=""),)),
        )
    )
    assert naming_nothing(DataRule.model_validate(rule), "library", schema) == suspicious
