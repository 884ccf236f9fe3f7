"""A step is performed once, and everybody after it reads the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import ModelError, RunStateError
from orchestrator.runtime.workers import CancelToken, WorkerGroup
from orchestrator.search.replay import Mode, Steps
from orchestrator.storage.journal import SqliteJournal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        yield journal


def never() -> Mapping[str, Any]:
    raise AssertionError("performed although it was recorded")


def test_a_step_is_performed_once_and_then_answered_from_the_journal(journal: SqliteJournal) -> None:
    steps = Steps(journal)
    assert steps.recorded("i1/commit/c01") is None
    assert steps.once("i1/commit/c01", lambda: {"fitness": 0.9}) == {"fitness": 0.9}
    assert steps.once("i1/commit/c01", never) == {"fitness": 0.9}
    assert Steps(journal, Mode.REPLAY).once("i1/commit/c01", never) == {"fitness": 0.9}


def test_the_first_call_returns_what_later_calls_will_read(journal: SqliteJournal) -> None:
    first = Steps(journal).once("a", lambda: {"shown": ("x", "y")})
    assert first == Steps(journal).once("a", never) == {"shown": ["x", "y"]}


def test_a_replay_performs_nothing_and_names_the_missing_step(journal: SqliteJournal) -> None:
    with pytest.raises(RunStateError, match=r"step 'i1/request/0001' is not in the journal"):
        Steps(journal, Mode.REPLAY).once("i1/request/0001", never)
    with pytest.raises(RunStateError, match="a replay performs nothing"):
        Steps(journal, Mode.REPLAY).begin("i1/request/0001", {"reserved": 5})
    assert list(journal.records()) == []


def test_a_step_that_raises_leaves_no_record_and_can_be_repeated(journal: SqliteJournal) -> None:
    def fail() -> Mapping[str, Any]:
        raise ModelError("no answer")

    steps = Steps(journal)
    with pytest.raises(ModelError):
        steps.once("a", fail)
    assert steps.recorded("a") is None
    assert steps.once("a", lambda: {"ok": True}) == {"ok": True}


def test_a_step_of_another_identity_is_refused(journal: SqliteJournal) -> None:
    steps = Steps(journal)
    assert steps.once("a", lambda: {"reply": 1}, identity={"conversation": "x"}) == {"reply": 1, "conversation": "x"}
    assert steps.once("a", never, identity={"conversation": "x"})["reply"] == 1
    with pytest.raises(RunStateError, match="recorded with conversation 'x', but now has 'y'"):
        steps.once("a", never, identity={"conversation": "y"})


def test_what_is_recorded_is_known_if_it_is_the_step_that_is_asked_for(journal: SqliteJournal) -> None:
    steps = Steps(journal)
    assert steps.known("a", identity={"conversation": "x"}) is None
    steps.once("a", lambda: {"reply": 1}, identity={"conversation": "x"})
    assert steps.known("a", identity={"conversation": "x"}) == {"reply": 1, "conversation": "x"}
    with pytest.raises(RunStateError, match="recorded with conversation 'x', but now has 'y'"):
        steps.known("a", identity={"conversation": "y"})


def test_a_call_in_flight_is_announced_before_it_is_performed(journal: SqliteJournal) -> None:
    steps = Steps(journal)
    assert steps.announced("r") is None
    steps.begin("r", {"reserved": 5})
    assert journal.get("r/sent") == {"reserved": 5}
    assert steps.lost("r") == ({"reserved": 5},)
    steps.once("r", lambda: {"reply": 1})
    assert steps.lost("r") == ()
    assert steps.announced("r") == {"reserved": 5}
    assert [key for key, _ in journal.records()] == ["r/sent", "r"]


def test_a_step_that_is_not_announced_loses_nothing(journal: SqliteJournal) -> None:
    Steps(journal).begin("r")
    assert list(journal.records()) == []


@given(ends=st.lists(st.sampled_from(["lost", "void"]), max_size=5), answered=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_every_call_is_lost_once_unless_it_was_retracted_or_answered(
    journal: SqliteJournal, ends: list[str], answered: bool
) -> None:
    key = f"r/{sum(1 for _ in journal.records())}"
    steps = Steps(journal)
    for attempt, end in enumerate(ends):
        steps.begin(key, {"reserved": attempt})
        if end == "void":
            steps.retract(key)
    if answered:
        steps.begin(key, {"reserved": 99})
        steps.once(key, dict)
    lost = tuple({"reserved": attempt} for attempt, end in enumerate(ends) if end == "lost")
    assert steps.lost(key) == Steps(journal, Mode.REPLAY).lost(key) == lost


def test_what_is_retracted_stays_so(journal: SqliteJournal) -> None:
    steps = Steps(journal)
    steps.begin("r", {"reserved": 5})
    steps.retract("r")
    with pytest.raises(RunStateError, match="'r/void' has a record already"):
        steps.retract("r")


def test_distinct_steps_can_be_taken_by_many_threads_at_once(journal: SqliteJournal) -> None:
    steps = Steps(journal)

    def island(number: int) -> None:
        for step in range(25):
            assert steps.once(f"i{number}/{step}", lambda s=step: {"n": s}) == {"n": step}

    with WorkerGroup("islands", limit=4, token=CancelToken()) as group:
        for number in range(4):
            group.spawn(str(number), lambda n=number: island(n))
    assert len(list(journal.records())) == 100
    for number in range(4):
        own = [key for key, _ in journal.records(f"i{number}/")]
        assert own == [f"i{number}/{step}" for step in range(25)]
