"""The same SQL is what differs only in white space, comments and the case of keywords."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.sql.normalisation import normalise
from orchestrator.sql.tokens import KEYWORDS
from tests.unit.sql.queries import QUERIES, database

GAPS = st.sampled_from([" ", "\n", "\t\r\n ", " /* it's; -- */ ", ' -- "x\n', " \ufeff"])
LITERALS = st.text(max_size=20).map(lambda text: text.replace("'", "''")).map("'{}'".format)
NAMES = st.text(max_size=20).map(lambda text: text.replace('"', '""')).map('"{}"'.format)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from t", "SELECT  a\n\tFROM t"),
        ("select a from t", " select/**/a -- the a\n from t ; "),
        ("select count(*) from t", "select count ( * ) from t"),
        ("select t.a from t group by a", "Select t . a From t Group   By a"),
        ("select a from t where a>=1", "select a from t where a >= 1;;"),
    ],
)
def test_white_space_comments_and_the_case_of_keywords_do_not_count(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 'select  a'", "select 'SELECT a'"),
        ("select 'a  b'", "select 'a b'"),
        ('select "from"', 'select "FROM"'),
        ("select [a  b]", "select [a b]"),
        ("select `in`", "select `IN`"),
        ("select '--' from t", "select '' from t"),
        ("select a from t", "select A from t"),
        ("select a from t", "select a from T"),
        ("select Count(a) from t", "select count(a) from t"),
        ("select a from t where a>=1", "select a from t where a> =1"),
        ("select 1 ; select 2", "select 1 select 2"),
        ("select a", 'select "a"'),
        ("select x'ab'", "select X'ab'"),
        ("select x 'ab'", "select x'ab'"),
        ("select 1.0", "select 1."),
        ("select a\u00a0", "select a"),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@pytest.mark.parametrize(
    "text", ["select 'open", " it's not SQL ", "select \\ 1", "select /* open", "select 1a\n", "\0"]
)
def test_a_text_that_cannot_be_cut_into_tokens_stands_for_itself(text: str) -> None:
    assert normalise(text) == text.strip()


@given(st.text(max_size=60) | st.sampled_from(QUERIES))
@example("\x0b\x0b'")
@example(" \u00a0'")
@example("0:0\x1f")
def test_it_is_idempotent(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(
    st.lists(st.sampled_from(sorted(KEYWORDS)) | LITERALS | NAMES | st.sampled_from(["a", ",", "(", ")", "1.5", "<="])),
    st.data(),
)
def test_it_keeps_literals_and_names_and_sees_through_every_gap(words: list[str], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from([str.lower, str.upper, str.title]))
    spelt = [case(word) if word in KEYWORDS else word for word in words]
    gap = data.draw(GAPS)
    assert normalise(gap.join(spelt)) == " ".join(words)


@pytest.mark.parametrize("sql", QUERIES)
def test_the_normal_form_means_the_same(sql: str) -> None:
    connection = database()
    assert connection.execute(normalise(sql)).fetchall() == connection.execute(sql).fetchall()
