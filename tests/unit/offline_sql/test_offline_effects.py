"""What rules do to queries, one by one, also where the plain default would have done the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.llm.offline.sql.analysis import read_analysis
from orchestrator.llm.offline.sql.briefed.effects import in_force
from orchestrator.llm.offline.sql.logic import Condition, Item, Query
from orchestrator.llm.offline.sql.pool import Derived
from orchestrator.llm.offline.sql.reading import Reading, read_with
from orchestrator.llm.offline.sql.rendering import render
from orchestrator.llm.offline.sql.schema import Field
from tests.unit.offline_sql.briefed import CREATE

SCHEMA = read_analysis(CREATE + "observatory.country: values: 'Norway', 'Chile'\n").schema


def column(table: str, name: str) -> Field:
    found = SCHEMA.field(table, name)
    assert found is not None
    return found


def reading(question: str) -> Reading:
    return read_with(SCHEMA, question, "")


def derived(query: Query, score: float = 0.0) -> Derived:
    return Derived(sql=render(query, SCHEMA), query=query, score=score, drawn=score)


def changed(query: Query, rule: str, question: str = "What?") -> str:
    return in_force([derived(query)], reading(question), frozenset([rule]))[0].sql


def first(queries: list[Query], rule: str, question: str = "What?") -> str:
    """Of queries that were equally likely."""
    return in_force([derived(query) for query in queries], reading(question), frozenset([rule]))[0].sql


NAME, COUNTRY = Item(column=column("observatory", "name")), Item(column=column("observatory", "country"))
KEY, LABEL = Item(column=column("observatory", "observatory_id")), Item(column=column("telescope", "label"))
PRICE = Item(column=column("telescope", "price"))
HIGHEST = Query(items=(LABEL,), order=((PRICE, True),), limit=1)
LIKE = Query(items=(NAME,), where=(Condition(item=COUNTRY, op="LIKE", literals=("'%norway%'",)),))


def test_a_limit_and_a_comparison_with_the_extreme_are_exchanged() -> None:
    ties = in_force([derived(HIGHEST)], reading("What?"), frozenset(["superlative-ties"]))[0]
    assert ties.sql == "SELECT label FROM telescope WHERE price = (SELECT MAX(price) FROM telescope)"
    back = in_force([ties], reading("What?"), frozenset(["superlative-limit"]))[0]
    assert back.sql == derived(HIGHEST).sql


@pytest.mark.parametrize(
    ("query", "rule", "question", "sql"),
    [
        (Query(items=(NAME,), distinct=True), "keep-duplicates", "Names?", "SELECT name FROM observatory"),
        (
            Query(items=(NAME,), distinct=True),
            "keep-duplicates",
            "Unique names?",
            "SELECT DISTINCT name FROM observatory",
        ),
        (Query(items=(KEY,)), "names-not-ids", "Which observatories?", "SELECT name FROM observatory"),
        (Query(items=(KEY,)), "names-not-ids", "Which observatory ids?", "SELECT observatory_id FROM observatory"),
        (Query(items=(NAME, COUNTRY)), "only-asked", "Which names?", "SELECT name FROM observatory"),
        (LIKE, "exact-values", "In norway?", "SELECT name FROM observatory WHERE country = 'Norway'"),
        (
            replace(LIKE, where=(Condition(item=COUNTRY, op="LIKE", literals=("'%way%'",)),)),
            "exact-values",
            "With way?",
            "SELECT name FROM observatory WHERE country LIKE '%way%'",
        ),
        (
            Query(items=(NAME, Item(aggregate="COUNT")), group=(column("observatory", "name"),)),
            "group-by-key",
            "How many?",
            "SELECT name, COUNT(*) FROM observatory GROUP BY observatory_id",
        ),
    ],
)
def test_a_rule_changes_what_it_is_about(query: Query, rule: str, question: str, sql: str) -> None:
    assert changed(query, rule, question) == sql


@pytest.mark.parametrize(
    ("worse", "better", "rule", "question"),
    [
        (Query(items=(NAME,), joined=("telescope",)), Query(items=(NAME,)), "fewest-tables", "Names?"),
        (Query(items=(NAME,)), LIKE, "contain-like", "Names that contain norway?"),
        (
            Query(items=(NAME,), operation="EXCEPT", other=LIKE),
            Query(items=(NAME,), where=(Condition(item=KEY, op="NOT IN", query=replace(LIKE, items=(KEY,))),)),
            "not-in",
            "Names not in Norway?",
        ),
    ],
)
def test_a_rule_prefers_one_of_two_queries(worse: Query, better: Query, rule: str, question: str) -> None:
    assert first([worse, better], rule, question) == render(better, SCHEMA)


def test_the_evidence_is_followed_before_what_is_likelier() -> None:
    asked = read_with(SCHEMA, "How many big telescopes?", "big refers to price > 50")
    used = Query(items=(Item(aggregate="COUNT"),), where=asked.hint.statements[0].conditions)
    plain = Query(items=(Item(aggregate="COUNT"),), joined=("telescope",))
    options = [derived(plain, 2.0), derived(used)]
    assert in_force(options, asked, frozenset())[0].query == plain
    assert in_force(options, asked, frozenset(["evidence-literally"]))[0].query == used


def test_queries_that_a_rule_makes_equal_are_one() -> None:
    pool = [derived(Query(items=(NAME,)), -1.0), derived(Query(items=(NAME,), distinct=True), -1.0)]
    merged = in_force(pool, reading("Names?"), frozenset(["distinct-lists"]))
    assert [entry.sql for entry in merged] == ["SELECT DISTINCT name FROM observatory"]
    assert merged[0].score > -1.0
