"""Databases that many share are open from the first user to the last; the judge says right, or what shape is wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from orchestrator.bootstrap.robophd.ports import JournalJudge, SharedDatabases
from orchestrator.bootstrap.robophd.site import evaluable_questions
from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.domain.sql_results import result_bytes
from orchestrator.errors import RunStateError, SandboxError
from orchestrator.evaluation.sql_judge import SqlJudge
from tests.evolution_data import CANARY
from tests.memory_journal import MemoryJournal
from tests.recorded_evolution import RecordedEvolutions


@pytest.fixture
def evolutions(tmp_path: Path) -> RecordedEvolutions:
    return RecordedEvolutions(tmp_path, canary=CANARY)


@pytest.fixture
def shared(evolutions: RecordedEvolutions) -> SharedDatabases:
    site = evolutions.site()
    evolutions.databases.opened.clear()
    return SharedDatabases(site.place)


def test_a_database_is_open_from_its_first_user_to_its_last(
    evolutions: RecordedEvolutions, shared: SharedDatabases
) -> None:
    store = evolutions.databases
    with shared.open("garden") as first:
        with shared.open("garden") as second, shared.open("museum"):
            assert second is first
            assert store.open_now == ["garden", "museum"]
        assert store.open_now == ["garden"]
    assert store.open_now == []
    with shared.open("garden") as anew:
        assert anew is not first
    assert store.opened == ["garden", "museum", "garden"]


def test_the_error_of_one_user_does_not_end_the_others(evolutions: RecordedEvolutions, shared: SharedDatabases) -> None:
    def fail() -> None:
        with shared.open("garden"):
            msg = "the engine is gone"
            raise SandboxError(msg)

    with shared.open("garden") as database:
        with pytest.raises(SandboxError, match="the engine is gone"):
            fail()
        assert database.query("SELECT 1", attempt_id="a").rows == ((1,),)
    with pytest.raises(SandboxError, match="the engine is gone"):
        fail()
    assert evolutions.databases.open_now == []


def test_a_database_that_cannot_be_opened_can_be_tried_again(
    evolutions: RecordedEvolutions, shared: SharedDatabases
) -> None:
    path = evolutions.questions.parent / "garden.sqlite"
    path.rename(path.with_suffix(".away"))
    with pytest.raises(Exception, match="unable to open"), shared.open("garden"):
        pass
    path.with_suffix(".away").rename(path)
    with shared.open("garden") as database:
        assert database.name == "garden"
    assert evolutions.databases.open_now == []
    with pytest.raises(RunStateError, match="no database 'nowhere'"), shared.open("nowhere"):
        pass


def test_threads_share_one_container_and_the_last_one_closes_it(
    evolutions: RecordedEvolutions, shared: SharedDatabases
) -> None:
    barrier = threading.Barrier(6)
    failures: list[str] = []

    def use(number: int) -> None:
        for turn in range(20):
            if turn == 0:
                barrier.wait()
            try:
                with shared.open("garden") as database:
                    if database.query("SELECT 1", attempt_id="a").rows != ((1,),):
                        failures.append("closed while it was used")
                    _fail_if((number + turn) % 5 == 0)
            except SandboxError:
                continue

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert evolutions.databases.open_now == []


def _fail_if(wanted: bool) -> None:
    if wanted:
        raise SandboxError


def judged(evolutions: RecordedEvolutions) -> tuple[JournalJudge, MemoryJournal, str]:
    """A judge whose gold has run, its journal, and a question of it: how many there are."""
    site, journal = evolutions.site(), MemoryJournal()
    judge = SqlJudge(journal, dataset=site.data.digest)
    evaluable = evaluable_questions(site, site.split.evolve, judge, evolutions.notes.append)
    question = next(one for one in evaluable if one.text.startswith("How many"))
    return JournalJudge(judge, journal, {one.id: one for one in evaluable}), journal, question.id


def recorded(journal: MemoryJournal, *rows: tuple[object, ...], columns: tuple[str, ...] = ("n",)) -> str:
    result = QueryResult(status=QueryStatus.OK, columns=columns, rows=rows)  # type: ignore[arg-type]
    return journal.put_blob(result_bytes(result))


def test_right_is_what_has_the_gold_querys_rows_and_everything_else_has_a_shape_without_values(
    evolutions: RecordedEvolutions,
) -> None:
    judge, journal, question = judged(evolutions)
    assert judge.judge(question, recorded(journal, (6,))).is_right
    assert judge.judge(question, recorded(journal, (6,), (6,))).is_right  # BIRD compares sets
    wrong = judge.judge(question, recorded(journal, (7,), (8,)))
    assert not wrong.is_right
    assert wrong.difference
    assert "6" not in " ".join(wrong.difference)
    assert judge.judge(question, None).difference == ("there is no query",)
    failed = journal.put_blob(result_bytes(QueryResult(status=QueryStatus.ERROR, message="no such column: x")))
    assert not judge.judge(question, failed).is_right


def test_no_difference_holds_anything_of_gold(evolutions: RecordedEvolutions) -> None:
    judge, journal, _ = judged(evolutions)
    results = [recorded(journal, ("x", 1), columns=("a", "b")), recorded(journal), None]
    for question in judge._questions:
        for result in results:
            assert CANARY not in " ".join(judge.judge(question, result).difference)


def test_what_cannot_be_judged_is_an_error_and_no_wrong_answer(evolutions: RecordedEvolutions) -> None:
    judge, journal, question = judged(evolutions)
    with pytest.raises(RunStateError, match="no question 'spider/9'"):
        judge.judge("spider/9", recorded(journal, (1,)))
    key = next(key for key in journal.entries if key.endswith("/gold"))
    kept = dict(journal.entries)
    journal.entries.clear()
    with pytest.raises(RunStateError, match="has not been run"):
        judge.judge(question, recorded(journal, (1,)))
    assert key in kept
