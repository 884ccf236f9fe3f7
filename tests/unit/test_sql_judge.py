"""Recorded predictions against recorded gold, on a real SQLite behind the real gate."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.domain.sql_results import result_bytes
from orchestrator.errors import RunStateError
from orchestrator.evaluation.sql_judge import Asked, Flag, Gold, Metric, SqlJudge, Standing
from orchestrator.storage.journal import SqliteJournal
from tests.plain_database import PlainDatabase

ALL = frozenset(Metric)
ROWS = [(1, "Ann", 30), (2, "Bob", 40), (3, "Cy", 30)]


def opened(digest: str = "sha256:" + "1" * 64) -> PlainDatabase:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE p (id INTEGER, name TEXT, age INTEGER)")
    connection.executemany("INSERT INTO p VALUES (?, ?, ?)", ROWS)
    return PlainDatabase(connection, "shelf", digest=digest, max_rows=3)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        yield journal


@pytest.fixture
def shelf() -> Iterator[PlainDatabase]:
    with closing(opened()) as shelf:
        yield shelf


def golds(journal: SqliteJournal, shelf: PlainDatabase, *queries: str | None) -> list[Gold]:
    asked = [Asked(key=f"q/{n}", gold=gold) for n, gold in enumerate(queries)]
    return SqlJudge(journal, dataset="sha256:d").run_gold(asked, shelf, shelf)


@pytest.mark.parametrize(
    ("gold", "standing", "said"),
    [
        ("SELECT name FROM p", Standing.EVALUABLE, ""),
        (None, Standing.NO_GOLD, "no gold query"),
        ("SELECT * FROM secret", Standing.DENIED, "deny secret"),
        ("DELETE FROM p", Standing.GOLD_ERROR, "only SELECT"),
        ("SELECT nam FROM p", Standing.GOLD_ERROR, "no such column"),
        ("SELECT 1 AS slow", Standing.GOLD_TIMEOUT, "too long"),
        ("SELECT 1 FROM p, p AS q", Standing.GOLD_TRUNCATED, "more rows"),
    ],
)
def test_what_keeps_gold_from_a_result_is_named(
    journal: SqliteJournal, shelf: PlainDatabase, gold: str | None, standing: Standing, said: str
) -> None:
    (record,) = golds(journal, shelf, gold)
    assert record.standing is standing
    assert said in record.message
    assert (record.result is not None) is (standing is Standing.EVALUABLE)


def test_gold_is_right_in_every_metric_when_it_is_judged_like_a_prediction(
    journal: SqliteJournal, shelf: PlainDatabase
) -> None:
    records = golds(journal, shelf, "SELECT name FROM p", "SELECT age, name FROM p ORDER BY age", "SELECT 1 WHERE 0")
    assert [record.as_prediction for record in records] == [ALL] * 3


def test_gold_that_disagrees_with_itself_is_noticed(journal: SqliteJournal, shelf: PlainDatabase) -> None:
    (record,) = golds(journal, shelf, "SELECT random()")
    assert record.as_prediction == frozenset()
    assert record.nondeterministic


def test_gold_that_depends_on_the_order_of_reading_is_marked(journal: SqliteJournal, shelf: PlainDatabase) -> None:
    first, second = golds(journal, shelf, "SELECT name FROM p LIMIT 1", "SELECT name FROM p")
    assert first.nondeterministic
    assert not second.nondeterministic  # the same rows in another order are the same answer where no order is asked for


def test_gold_runs_once_and_never_on_other_data(journal: SqliteJournal, shelf: PlainDatabase) -> None:
    golds(journal, shelf, "SELECT name FROM p")
    asked = len(shelf.asked)
    golds(journal, shelf, "SELECT name FROM p")
    assert len(shelf.asked) == asked
    with closing(opened("sha256:" + "2" * 64)) as other, pytest.raises(RunStateError, match="database"):
        golds(journal, other, "SELECT name FROM p")


def test_predictions_are_judged_by_their_recorded_results(journal: SqliteJournal, shelf: PlainDatabase) -> None:
    gold = "SELECT name FROM p WHERE age = 30"
    golds(journal, shelf, gold)
    judge, asked = SqlJudge(journal, dataset="sha256:d"), Asked(key="q/0", gold=gold)
    queries = [
        gold,
        "SELECT name FROM p WHERE age = 30 ORDER BY name DESC",
        "SELECT name FROM p",
        "SELECT nam FROM p",
        "DELETE FROM p",
    ]
    results = [journal.put_blob(result_bytes(shelf.query(sql, attempt_id="t"))) for sql in queries]
    rights = [one.right for one in judge.judge(asked, [*results, None, results[0]])]
    unordered = {Metric.BIRD, Metric.MULTISET, Metric.SPIDER}
    assert rights == [ALL, unordered, set(), set(), set(), set(), ALL]


def test_two_empty_results_match_and_say_so(journal: SqliteJournal, shelf: PlainDatabase) -> None:
    gold = "SELECT name FROM p WHERE id = 99"
    golds(journal, shelf, gold)
    empty = journal.put_blob(result_bytes(shelf.query("SELECT id, age FROM p WHERE 0", attempt_id="t")))
    (judged,) = SqlJudge(journal, dataset="sha256:d").judge(Asked(key="q/0", gold=gold), [empty])
    assert judged.right == ALL
    assert judged.flags == {Flag.BOTH_EMPTY}


def test_nothing_is_judged_by_a_question_that_cannot_be_evaluated(journal: SqliteJournal, shelf: PlainDatabase) -> None:
    golds(journal, shelf, "SELECT * FROM secret")
    with pytest.raises(RunStateError, match="cannot be evaluated"):
        SqlJudge(journal, dataset="sha256:d").judge(Asked(key="q/0", gold="SELECT * FROM secret"), [None])
