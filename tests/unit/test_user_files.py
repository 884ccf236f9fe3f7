"""Paths that people give: pipes, devices and links neither hang a command nor lead it astray."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.files import read_program, require_target, write_text, write_tree
from orchestrator.domain.candidates import FileTree
from orchestrator.errors import InputError, PolicyError
from orchestrator.runtime.user_files import read_file
from orchestrator.sandbox.policy_files import load_policy


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


READERS: list[Callable[[Path], object]] = [lambda path: read_program(path, "program.py"), load_policy]


@pytest.mark.parametrize("read", READERS)
def test_a_pipe_or_device_is_refused_and_not_waited_for(read: Callable[[Path], object], pipe: Path) -> None:
    for path in (pipe, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises((InputError, PolicyError), match="it is not a regular file"):
            read(path)


def test_a_link_to_a_regular_file_is_read_where_links_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "link").symlink_to("a")
    assert read_file(tmp_path / "link", 7) == b"content"
    with pytest.raises(OSError, match="symbolic links"):
        read_file(tmp_path / "link", 7, follow=False)
    with pytest.raises(OSError, match="over 6 bytes"):
        read_file(tmp_path / "a", 6)


@pytest.mark.parametrize("name", ["leak.txt", "pkg/leak.txt", "folder"])
def test_a_link_in_a_candidates_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "key.pem").write_text("secret")
    program = tmp_path / "program"
    (program / "pkg").mkdir(parents=True)
    (program / "program.py").write_text("")
    (program / name).symlink_to(tmp_path if name == "folder" else tmp_path / "key.pem")
    with pytest.raises(InputError, match=f"'{name}' in it is a symbolic link"):
        read_program(program, "program.py")
    (program / name).unlink()
    assert set(read_program(program, "program.py")) == {"program.py"}


def test_a_pipe_in_a_candidates_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    os.mkfifo(tmp_path / "program" / "pipe.py")
    with pytest.raises(InputError, match="is neither a file nor a folder"):
        read_program(tmp_path / "program", "program.py")


def test_nothing_is_written_through_a_link_or_into_a_pipe(tmp_path: Path, pipe: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(kept)
    dangling.symlink_to(tmp_path / "new")
    for path in (link, dangling, pipe, Path("/dev/null")):
        with pytest.raises(InputError, match=r"symbolic link|not a regular file"):
            write_text(path, "x", force=True)
        with pytest.raises(InputError, match=r"symbolic link|not a regular file"):
            require_target(path, force=True)
    assert kept.read_text() == "kept"
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_there_is_overwritten_only_when_asked(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "long text", force=False)
    with pytest.raises(InputError, match="exists; choose another place, or overwrite it with --force"):
        write_text(tmp_path / "a", "x", force=False)
    write_text(tmp_path / "a", "x", force=True)
    assert (tmp_path / "a").read_text() == "x"


def test_a_candidate_is_not_written_through_a_link_below_its_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "pkg").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a symbolic link"):
        write_tree(FileTree({"a.py": b"", "pkg/b.py": b""}), tmp_path / "out", force=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []
