"""The import runner: fills a volume from frames and says what is really on the disk."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.candidates import FileTree

if TYPE_CHECKING:
    from conftest import Launch

FILES = {"evaluator/evaluate.py": b"x = 1\n", "data/a.bin": bytes(range(256)) * 40, "data/empty": b"", "readme": b"hi"}


def test_the_digest_is_that_of_the_file_tree(launch: Launch, tmp_path: Path) -> None:
    runner = launch("base", "--target", str(tmp_path))
    for path, content in FILES.items():
        for offset in range(0, max(1, len(content)), 1000):
            head = {"type": "file", "path": path, "offset": offset, "size": len(content)}
            runner.send(head, content[offset : offset + 1000])
    stored = runner.ask({"type": "finish"})
    assert stored.head == {"type": "stored", "digest": FileTree(FILES).digest}
    assert {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == FILES
    assert runner.end() == (0, "")


def test_files_are_readable_for_all_and_writable_for_nobody(launch: Launch, tmp_path: Path) -> None:
    runner = launch("base", "--target", str(tmp_path))
    runner.send({"type": "file", "path": "a/b", "offset": 0, "size": 1}, b"x")
    runner.ask({"type": "finish"})
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o555


@pytest.mark.parametrize(
    "path", ["../a", "/a", "a/../../b", "", "a//b", "a/.", ".hidden", "a\0b", "x" * 65, "a/" * 8 + "b", 3]
)
def test_a_path_that_is_not_allowed_ends_the_runner_and_writes_nothing(
    launch: Launch, tmp_path: Path, path: object
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    runner = launch("base", "--target", str(target))
    runner.send({"type": "file", "path": path, "offset": 0, "size": 1}, b"x")
    assert runner.receive() is None
    assert runner.end()[0] == 76
    assert list(tmp_path.rglob("*")) == [target]


@pytest.mark.parametrize(("offset", "size"), [(1, 3), (0, 1), (-1, 2), (0, True), ("0", 2), (0, None)])
def test_a_piece_that_does_not_fit_is_refused(launch: Launch, tmp_path: Path, offset: object, size: object) -> None:
    runner = launch("base", "--target", str(tmp_path))
    runner.send({"type": "file", "path": "a", "offset": offset, "size": size}, b"xx")
    assert runner.receive() is None
    assert runner.end()[0] == 76


def test_an_incomplete_file_is_refused_at_the_end(launch: Launch, tmp_path: Path) -> None:
    runner = launch("base", "--target", str(tmp_path))
    runner.send({"type": "file", "path": "a", "offset": 0, "size": 3}, b"xx")
    runner.send({"type": "finish"})
    assert runner.receive() is None
    assert runner.end() == (76, "runner: 'a' still misses 1 bytes\n")


def test_a_file_that_comes_twice_is_refused(launch: Launch, tmp_path: Path) -> None:
    runner = launch("base", "--target", str(tmp_path))
    for content in (b"x", b"y"):
        runner.send({"type": "file", "path": "a", "offset": 0, "size": 1}, content)
    assert runner.receive() is None
    assert runner.end()[0] == 74
    assert (tmp_path / "a").read_bytes() == b"x"


@pytest.mark.parametrize("path", ["link", "link/a"])
def test_a_link_that_lies_in_the_volume_is_not_followed(launch: Launch, tmp_path: Path, path: str) -> None:
    target, outside = tmp_path / "target", tmp_path / "outside"
    target.mkdir()
    outside.mkdir()
    (target / "link").symlink_to(outside)
    runner = launch("base", "--target", str(target))
    runner.send({"type": "file", "path": path, "offset": 0, "size": 1}, b"x")
    assert runner.receive() is None
    assert runner.end()[0] == 74
    assert not list(outside.iterdir())


def test_what_no_frame_brought_changes_the_digest(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "stray").write_bytes(b"?")
    runner = launch("base", "--target", str(tmp_path))
    runner.send({"type": "file", "path": "a", "offset": 0, "size": 1}, b"x")
    stored = runner.ask({"type": "finish"})
    assert stored.head["digest"] == FileTree({"a": b"x", "stray": b"?"}).digest != FileTree({"a": b"x"}).digest
