"""What is said about models: put together, recorded, and changed by a resume; and the pauses of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.model_choices import GivenAccess, access_in_force, record_access
from orchestrator.bootstrap.model_files import ModelFile
from orchestrator.bootstrap.pauses import pause_of, pausing
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout
from orchestrator.domain.model_access import ModelAccess, Price
from orchestrator.errors import InputError, ModelError, ModelUnavailable, RunStateError
from orchestrator.storage.journal import SqliteJournal

URL = "http://127.0.0.1:8000/v1"
FAST = {"provider": "openai", "model": "m"}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "journal.sqlite") as opened:
        yield opened


def file(**parts: object) -> ModelFile:
    return ModelFile.model_validate(parts)


def test_nothing_said_leaves_no_trace_in_a_record_and_older_records_still_read() -> None:
    choices = Choices(task="t")
    assert "access" not in choices.model_dump(mode="json")
    assert Choices.model_validate({"task": "t"}) == choices
    bench = BenchChoices(layout=Layout.BIRD, root="r")
    assert "access" not in bench.model_dump(mode="json")


def test_what_is_said_is_recorded_and_reads_as_it_was() -> None:
    given = GivenAccess(
        file=file(models={"fast": {**FAST, "key": {"env": "SOME_KEY"}}}, patience={"chunk_seconds": 5}),
        base_url=URL,
        key_env="OTHER_KEY",
        price=Price.model_validate({"input": "0.1", "output": 2}),
        request_seconds=7,
    )
    access = given.over()
    assert (access.patience.chunk_seconds, access.patience.request_seconds) == (5, 7)
    choices = Choices(task="t", access=access)
    assert Choices.model_validate(choices.model_dump(mode="json")) == choices
    assert Choices.model_validate_json(choices.model_dump_json()) == choices


def test_a_resume_replaces_what_it_says_and_keeps_the_rest() -> None:
    before = GivenAccess(
        file=file(models={"fast": FAST, "slow": FAST}, ensembles={"team": [{"model": "fast"}]}),
        base_url=URL,
        key_env="OLD",
        chunk_seconds=9,
    ).over()
    renamed = {**FAST, "model": "m-2"}
    after = GivenAccess(file=file(models={"fast": renamed}), outage_seconds=3).over(before)
    assert (after.models["fast"].model, after.models["slow"].model) == ("m-2", "m")
    assert after.ensembles == before.ensembles
    assert (after.base_url, after.key_env) == (URL, "OLD")
    assert (after.patience.chunk_seconds, after.patience.outage_seconds) == (9, 3)
    assert GivenAccess().over(before) == before


def test_the_key_of_a_server_is_not_sent_to_the_next_one() -> None:
    before = GivenAccess(base_url=URL, key_env="OLD").over()
    assert GivenAccess(base_url="https://elsewhere.example/v1").over(before).key_env is None
    assert GivenAccess(base_url=URL + "/").over(before).key_env == "OLD"
    assert GivenAccess(key_env="NEW").over(before).key_env == "NEW"


def test_a_key_without_a_server_is_refused() -> None:
    with pytest.raises(InputError, match="key_env is the key for base_url; give base_url as well"):
        GivenAccess(key_env="A").over()


def test_an_ensemble_cannot_change_under_a_run() -> None:
    before = GivenAccess(file=file(models={"fast": FAST}, ensembles={"team": [{"model": "fast"}]})).over()
    same = GivenAccess(file=file(ensembles={"team": [{"model": "fast", "weight": 1}]}))
    assert same.over(before) == before
    other = GivenAccess(file=file(ensembles={"team": [{"model": "fast", "weight": 2}]}))
    with pytest.raises(InputError, match="ensemble 'team' is another one than the run has"):
        other.over(before)


def test_every_change_is_recorded_and_the_last_one_is_in_force(journal: SqliteJournal) -> None:
    first, second, third = (ModelAccess(base_url=f"http://127.0.0.1:{port}") for port in (1, 2, 3))
    assert access_in_force(journal, first) == first
    record_access(journal, first, first)
    assert list(journal.records()) == []
    record_access(journal, first, second)
    record_access(journal, second, third)
    assert access_in_force(journal, first) == third
    assert [key for key, _ in journal.records("run/access/")] == ["run/access/0001", "run/access/0002"]


def test_a_damaged_record_is_no_access(journal: SqliteJournal) -> None:
    journal.put("run/access/0001", {"access": {"base_url": 3}})
    with pytest.raises(RunStateError, match="'run/access/0001' was made by another version"):
        access_in_force(journal, ModelAccess())


def test_a_run_whose_model_is_not_to_be_had_is_paused_until_it_goes_on(journal: SqliteJournal) -> None:
    journal.put("run", {})
    journal.put("i0/request/0001", {})
    assert pause_of(journal) is None
    for number in (1, 2):
        error = ModelUnavailable(f"outage\n{number}")
        with pytest.raises(ModelUnavailable), pausing(journal):
            raise error
        assert pause_of(journal) == f"outage {number}"
    journal.put("i0/request/0002", {})
    assert pause_of(journal) is None


def test_other_errors_and_a_run_of_which_nothing_is_recorded_make_no_pause(journal: SqliteJournal) -> None:
    journal.put("run", {})
    with pytest.raises(ModelUnavailable), pausing(journal):
        raise ModelUnavailable("x")
    journal.put("initial", {})
    with pytest.raises(ModelError), pausing(journal):
        raise ModelError("x")
    assert pause_of(journal) is None
    assert [key for key, _ in journal.records()] == ["run", "initial"]
