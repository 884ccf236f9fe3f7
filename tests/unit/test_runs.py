"""Run folders are made once, listed whole, and removed only when nobody lives in them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from orchestrator.errors import PrerequisiteError, RunStateError
from orchestrator.storage.runs import RunStore


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "home")


def made(store: RunStore) -> str:
    run_id, journal = store.create()
    with journal:
        journal.put("run", {"seed": 7})
    return run_id


def test_a_new_run_has_a_random_id_a_private_folder_and_an_owned_journal(store: RunStore) -> None:
    run_id, journal = store.create()
    with journal:
        assert re.fullmatch(r"[0-9a-f]{12}", run_id)
        assert stat.S_IMODE(store.folder(run_id).stat().st_mode) == 0o700
        assert journal.path == store.folder(run_id) / "journal.sqlite"
        with pytest.raises(RunStateError, match=f"in use by process {os.getpid()}"):
            store.open(run_id)


def test_an_ended_run_can_be_opened_again_with_what_it_recorded(store: RunStore) -> None:
    run_id = made(store)
    with store.open(run_id) as journal:
        assert journal.get("run") == {"seed": 7}
        with store.open(run_id, read_only=True) as reader:
            assert reader.get("run") == {"seed": 7}


def test_runs_are_listed_oldest_first_with_their_owners(store: RunStore) -> None:
    assert store.list() == ()
    first, second = made(store), made(store)
    with store.open(second):
        infos = store.list()
        assert [info.id for info in infos] == [first, second]
        assert [info.owner_pid for info in infos] == [None, os.getpid()]
        assert all(info.problem is None and info.size_bytes > 4096 for info in infos)
    assert store.list()[1].owner_pid is None


def test_a_damaged_run_is_listed_with_its_problem_and_can_be_removed(store: RunStore) -> None:
    good, bad = made(store), made(store)
    (store.folder(bad) / "journal.sqlite").write_bytes(b"noise" * 1000)
    infos = store.list()
    assert [info.id for info in infos] == [good, bad]
    assert infos[1].created_at is None
    assert "is damaged" in str(infos[1].problem)
    store.remove(bad)
    assert [info.id for info in store.list()] == [good]


def test_a_removed_run_is_gone(store: RunStore, tmp_path: Path) -> None:
    run_id = made(store)
    store.remove(run_id)
    assert list((tmp_path / "home" / "runs").iterdir()) == []
    for use in (store.open, store.folder, store.remove):
        with pytest.raises(RunStateError, match=f"there is no run '{run_id}'.*`evolvarium runs list`"):
            use(run_id)


def test_a_live_run_is_not_removed(store: RunStore) -> None:
    run_id, journal = store.create()
    with journal:
        with pytest.raises(RunStateError, match=f"run {run_id} is in use by process {os.getpid()}"):
            store.remove(run_id)
        journal.put("still", {})
    store.remove(run_id)


def test_a_removal_that_a_crash_cut_off_is_completed_by_the_next_one(store: RunStore, tmp_path: Path) -> None:
    runs = tmp_path / "home" / "runs"
    cut_off, other = made(store), made(store)
    store.folder(cut_off).rename(runs / f".removed-{cut_off}")
    assert [info.id for info in store.list()] == [other]
    store.remove(other)
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize(
    "run_id", ["", ".", "..", "../audit", "/etc", "ABCDEF012345", "0123456789ab/", "0123456789abc"]
)
def test_nothing_but_an_id_leads_to_a_folder(store: RunStore, run_id: str) -> None:
    made(store)
    with pytest.raises(RunStateError, match="there is no run"):
        store.remove(run_id)


def test_a_link_is_no_run(store: RunStore, tmp_path: Path) -> None:
    made(store)
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "home" / "runs" / "0123456789ab").symlink_to(outside)
    assert "0123456789ab" not in {info.id for info in store.list()}
    with pytest.raises(RunStateError, match="there is no run"):
        store.remove("0123456789ab")
    assert outside.is_dir()


def test_a_home_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(PrerequisiteError, match="cannot make run folder"):
        RunStore(tmp_path / "home").create()
