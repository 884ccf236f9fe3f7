"""A replay walks through a run from its journal alone; whatever is other than it was recorded is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.robophd.replaying import Replayed, replay_evolution
from orchestrator.bootstrap.robophd.results import read_results
from orchestrator.bootstrap.robophd.running import UNCHANGED, Watch
from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.run import RUN_END
from orchestrator.runtime.workers import CancelToken
from tests.in_process import without_engine
from tests.recorded_evolution import SETTINGS, RecordedEvolutions


@pytest.fixture(scope="module")
def evolutions(tmp_path_factory: pytest.TempPathFactory) -> RecordedEvolutions:
    return RecordedEvolutions(tmp_path_factory.mktemp("evolutions"))


@pytest.fixture(scope="module")
def run_id(evolutions: RecordedEvolutions) -> str:
    return evolutions.made()


@pytest.fixture
def copy(evolutions: RecordedEvolutions, run_id: str) -> str:
    """Id of a copy of the run that may be changed."""
    copied, journal = evolutions.store.create()
    journal.close()
    folder = evolutions.home / "runs"
    for suffix in ("-wal", "-shm"):
        (folder / copied / f"journal.sqlite{suffix}").unlink(missing_ok=True)
    with sqlite3.connect(folder / run_id / "journal.sqlite") as source:
        source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    source.close()
    shutil.copyfile(folder / run_id / "journal.sqlite", folder / copied / "journal.sqlite")
    return copied


def replay(evolutions: RecordedEvolutions, run_id: str) -> Replayed:
    return replay_evolution(evolutions.places, run_id, Watch(token=CancelToken(), note=evolutions.notes.append))


def change(evolutions: RecordedEvolutions, run_id: str, key: str, record: dict[str, Any] | None) -> None:
    """Put another record in a key's place, with a digest that fits; None: take it away."""
    database = sqlite3.connect(evolutions.home / "runs" / run_id / "journal.sqlite")
    with database:
        if record is None:
            database.execute("DELETE FROM records WHERE key = ?", [key])
        else:
            text = json.dumps(record, separators=(",", ":"))
            digest = "sha256:" + sha256(text.encode()).hexdigest()
            database.execute("UPDATE records SET record = ?, digest = ? WHERE key = ?", [text, digest, key])
    database.close()


def records(evolutions: RecordedEvolutions, run_id: str) -> dict[str, dict[str, Any]]:
    with evolutions.store.open(run_id, read_only=True) as journal:
        return {key: json.loads(json.dumps(dict(record))) for key, record in journal.records()}


def test_a_replay_comes_to_what_was_recorded_and_writes_nothing(evolutions: RecordedEvolutions, run_id: str) -> None:
    before = records(evolutions, run_id)
    opened = len(evolutions.databases.opened)
    replayed = replay(evolutions, run_id)
    with evolutions.store.open(run_id, read_only=True) as journal:
        results = read_results(run_id, journal)
    assert replayed.result.champion == results.champion
    assert [member.id for member in replayed.result.members] == [member.id for member in results.members]
    requests = sum(requests for requests, _ in results.spent.values())
    assert replayed.spent.spent.requests == requests == before[UNCHANGED]["spent"]["requests"]
    assert records(evolutions, run_id) == before
    assert len(evolutions.databases.opened) == opened


def test_a_branch_can_be_replayed_as_well(evolutions: RecordedEvolutions, run_id: str) -> None:
    branch = evolutions.branched(run_id, 2, SETTINGS.model_copy(update={"seed": 8, "iterations": 3}))
    assert len(replay(evolutions, branch).result.contests) == 3


def test_a_run_that_its_budget_ended_can_be_replayed(evolutions: RecordedEvolutions) -> None:
    choices = evolutions.choices.model_copy(
        update={"budget": evolutions.choices.budget.model_copy(update={"tokens": 70_000})}
    )
    run_id = evolutions.made(choices=choices)
    assert records(evolutions, run_id)[RUN_END]["ending"] == "budget"
    assert replay(evolutions, run_id).result.ending == "budget"


def test_every_record_that_a_run_rests_on_is_missed_by_its_name(evolutions: RecordedEvolutions, copy: str) -> None:
    kept = records(evolutions, copy)
    for wanted in ("it/02/evolve/request/", "tool/", "answer/", "it/02/end", "select/"):
        key = [key for key in kept if key.startswith(wanted)][-1]
        change(evolutions, copy, key, None)
        with pytest.raises(RunStateError) as error:
            replay(evolutions, copy)
        assert f"the replay of run {copy} comes to something else than was recorded" in str(error.value)
        assert key in str(error.value), wanted
        _restore(evolutions, copy, kept, key)
    replay(evolutions, copy)


def _restore(evolutions: RecordedEvolutions, run_id: str, kept: dict[str, Any], key: str) -> None:
    with evolutions.store.open(run_id) as journal:
        journal.put(key, kept[key])


def test_the_first_difference_is_named(evolutions: RecordedEvolutions, copy: str) -> None:
    kept = records(evolutions, copy)
    wrong_ratings = {**kept["it/02/end"], "ratings": {**kept["it/02/end"]["ratings"], "naive": 1.0}}
    other_champion = {**kept[RUN_END], "champion": "nobody"}
    more_spent = {**kept[UNCHANGED], "spent": {**kept[UNCHANGED]["spent"], "requests": 1}}
    plan = {**kept["it/01/plan"], "kind": "none"}
    for key, record, told in (
        ("it/02/end", wrong_ratings, "step 'it/02/end' was recorded with ratings"),
        (RUN_END, other_champion, "step 'run/end' was recorded with champion 'nobody'"),
        (UNCHANGED, more_spent, "requests of the ledger was recorded as 1, and now is"),
        ("it/01/plan", plan, "step 'it/01/plan' was recorded with kind 'none'"),
    ):
        change(evolutions, copy, key, record)
        with pytest.raises(RunStateError) as error:
            replay(evolutions, copy)
        assert told in str(error.value)
        change(evolutions, copy, key, kept[key])
    replay(evolutions, copy)


def test_a_run_that_has_not_ended_and_changed_data_are_refused(evolutions: RecordedEvolutions, copy: str) -> None:
    kept = evolutions.questions.read_text()
    evolutions.questions.write_text(kept.replace("highest", "lowest"))
    with pytest.raises(RunStateError, match="the data has changed since the run began"):
        replay(evolutions, copy)
    evolutions.questions.write_text(kept)
    change(evolutions, copy, UNCHANGED, None)
    with pytest.raises(RunStateError, match=f"run {copy} has not ended.*`evolvarium resume {copy}`"):
        replay(evolutions, copy)


def test_the_command_needs_no_engine(
    evolutions: RecordedEvolutions, run_id: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = without_engine(evolutions.home, monkeypatch, capsys)
    code, out, _ = call("sql", "evolve", "--replay", run_id, "--json")
    document = json.loads(out)
    assert (code, document["run"], document["iterations"], document["lost"]) == (0, run_id, 2, 0)
    assert set(document["ratings"]) == {"naive", "p02"}
    code, _, err = call("sql", "evolve", "--replay", run_id, "--seed", "1", "--workers", "2")
    assert (code, "leave out --seed, --workers" in err) == (2, True)
    code, _, err = call("sql", "evolve", "--replay", run_id, "--branch", run_id)
    assert (code, "a replay makes no run; leave out --branch" in err) == (2, True)


def test_the_run_of_another_kind_is_refused(evolutions: RecordedEvolutions) -> None:
    run_id, journal = evolutions.store.create()
    with journal:
        journal.put("run", {"kind": "sql-bench"})
    with pytest.raises(RunStateError, match="is a Text-to-SQL bench, and no evolution of packages"):
        replay(evolutions, run_id)
    evolutions.store.remove(run_id)


def test_a_copy_of_the_home_replays_as_long_as_the_data_are_there(
    evolutions: RecordedEvolutions, run_id: str, tmp_path: Path
) -> None:
    shutil.copytree(evolutions.home, tmp_path / "home")
    other = RecordedEvolutions(tmp_path / "other")
    other.places = replace(other.places, home=tmp_path / "home")
    assert replay(other, run_id).run_id == run_id
