"""A lock has one holder, names it, and dies with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.runtime.workers import spawn
from orchestrator.storage.locks import FileLock, holder, locked


def test_a_lock_names_its_holder_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert holder(path) is None
    lock = FileLock(path)
    assert holder(path) == os.getpid()
    lock.close()
    lock.close()
    assert holder(path) is None
    assert path.exists()


def test_a_second_holder_waits_as_long_as_it_has_patience(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = FileLock(path)
    with pytest.raises(BlockingIOError):
        FileLock(path, patience_seconds=0.05)
    second = spawn("second", lambda: FileLock(path, patience_seconds=10).close())
    assert not second.join(0.05)
    first.close()
    assert second.join(10)
    second.result()


def test_looking_who_holds_a_lock_does_not_keep_its_next_holder_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    FileLock(path).close()
    looking = spawn("looking", lambda: [holder(path) for _ in range(2000)])
    for _ in range(50):
        FileLock(path).close()
    assert looking.join(30)
    looking.result()


def test_a_lock_notices_that_its_file_was_moved(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lock = FileLock(folder / "lock")
    assert lock.is_at_its_path
    folder.rename(tmp_path / "gone")
    assert not lock.is_at_its_path
    folder.mkdir()
    (folder / "lock").touch()
    assert not lock.is_at_its_path
    lock.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(tmp_path / "lock")


def test_a_block_lets_go_however_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    def fail() -> None:
        with locked(path, patience_seconds=1):
            assert holder(path) == os.getpid()
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
    assert holder(path) is None
