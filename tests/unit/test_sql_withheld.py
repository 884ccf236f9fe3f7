"""Which words of a question name what the policy keeps back."""

from __future__ import annotations

import pytest

from orchestrator.bootstrap.sql.withheld import withheld_words
from orchestrator.domain.data_access import Access, Hidden
from orchestrator.domain.sql import Column, Schema, Table


def schema(**tables: str) -> Schema:
    """Tables with the columns that a text names."""
    return Schema(
        tables=tuple(
            Table(name=name, kind="table", sql="", columns=tuple(Column(name=c, type="") for c in columns.split()))
            for name, columns in tables.items()
        )
    )


def access(*hidden: str) -> Access:
    """These columns are kept back."""
    columns = [name.split(".") for name in hidden]
    return Access(
        rule=1,
        hidden=tuple(Hidden(table=table, column=column, rule=f"rule of {table}") for table, column in columns),
        max_rows=10,
        max_bytes=1024,
        query_seconds=1.0,
    )


VISIBLE = schema(customers="id first_name city phone", suppliers="id name email", payments="amount")
ACCESS = access(
    "customers.email",
    "payments.card_number",
    "payments.id",
    "staff.id",
    "staff.name",
    "staff.role",
    "orders.CityCode",
    "orders.!!",
    "orders.to",
)


def found(question: str, evidence: str = "") -> dict[str, list[str]]:
    """Words to the columns that they name."""
    matches = withheld_words(question, evidence, ACCESS, VISIBLE)
    return {match.words: [f"{one.table}.{one.column}" for one in match.columns] for match in matches}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What are the card numbers of all payments?", {"card numbers": ["payments.card_number"]}),
        ("What is the role of Lea Brandt?", {"role": ["staff.role"]}),
        ("List every citycode.", {"citycode": ["orders.CityCode"]}),
        ("Which city code has Oslo?", {"city code": ["orders.CityCode"]}),
        ("How many customers live in Oslo?", {}),
        ("What is the name and the id of each supplier?", {}),
        ("Is there a discard number?", {}),
        ("Is '!!' there?", {}),
        ("Who went to Oslo by train?", {}),
        ("", {}),
    ],
)
def test_a_name_that_only_hidden_columns_bear_is_found_in_any_spelling(
    question: str, expected: dict[str, list[str]]
) -> None:
    assert found(question) == expected


def test_a_name_that_is_visible_elsewhere_counts_where_the_table_is_named() -> None:
    assert found("What is the email of the supplier in Oslo?") == {}
    assert found("What is the E-Mail of the customer in Oslo?") == {"E-Mail": ["customers.email"]}


def test_of_columns_with_one_name_those_of_the_named_table_are_meant() -> None:
    both = access("customers.fax", "suppliers.fax")
    for question, tables in {
        "The fax of all suppliers?": ["suppliers"],
        "Any fax?": ["customers", "suppliers"],
    }.items():
        (match,) = withheld_words(question, "", both, VISIBLE)
        assert [one.table for one in match.columns] == tables


def test_a_table_that_is_hidden_as_a_whole_is_named_with_all_its_columns() -> None:
    every = ["staff.id", "staff.name", "staff.role"]
    assert found("How many staff are there?") == {"staff": every}
    assert found("List the role of all staff.") == {"role": ["staff.role"], "staff": every}


def test_evidence_counts_as_the_question_does() -> None:
    assert found("What does Lea do?", "what somebody does refers to role") == {"role": ["staff.role"]}


def test_a_policy_that_hides_nothing_finds_nothing() -> None:
    assert withheld_words("What is the email?", "", access(), VISIBLE) == ()


def test_of_a_long_question_its_first_words_are_looked_at() -> None:
    many = access(*(f"t{number}.word{number}" for number in range(3000)))
    matches = withheld_words("word7 " * 3000 + "word2999", "", many, VISIBLE)
    assert [match.words for match in matches] == ["word7"]
