"""Exported packages are written whole or not at all, and replace nothing but an exported package."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.bootstrap.release.folders import read_release, require_room, write_release
from orchestrator.domain.releases import is_exported
from orchestrator.errors import InputError
from tests.answering_lab import package
from tests.release_lab import FULL, exported, manifest_of, released_files, with_long_file

ROOT = Path(__file__).parents[3]
READ_ONLY = Path("/proc/evolvarium-none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return exported(tmp_path / "p02").folder


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = released_files(package("Other words."))
    with pytest.raises(InputError, match=r"is not empty; .*--force"):
        write_release(folder, manifest_of(package("Other words."), files), files, force=False)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"file': Not a directory"):
        require_room(tmp_path / "file", force=True)
    (tmp_path / "bare" / "sub").mkdir(parents=True)
    require_room(tmp_path / "bare", force=False)
    require_room(tmp_path / "absent", force=False)


def test_force_replaces_a_package_with_all_of_its_files(tmp_path: Path) -> None:
    several = package()
    more = {**several.tree, "tools/helper.py": b"", "reasoning.md": b"why"}
    folder = exported(tmp_path / "p02", type(several).load(more)).folder
    (folder / "approvals.json").write_text("[]")
    files = released_files(several)
    write_release(folder, manifest_of(several, files), files, force=True)
    assert read_release(folder).package == several
    assert not (folder / "package/tools/helper.py").exists()
    assert not (folder / "approvals.json").exists()


@pytest.mark.parametrize(
    "stranger", ["thesis.tex", "package/data.csv", "package/tools/deeper/x.py", "tools/analyze.py"]
)
def test_force_replaces_nothing_but_a_package(folder: Path, stranger: str) -> None:
    (folder / stranger).parent.mkdir(exist_ok=True)
    (folder / stranger).write_text("mine")
    files = released_files(package())
    with pytest.raises(InputError, match=rf"holds '{stranger}', which is no part of an exported package"):
        write_release(folder, manifest_of(package(), files), files, force=True)
    assert (folder / stranger).read_text() == "mine"
    assert (folder / "manifest.json").exists()


def test_force_does_not_follow_a_link_in_the_folder(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "package", tmp_path / "kept")
    shutil.rmtree(folder / "package")
    (folder / "package").symlink_to(tmp_path / "kept")
    files = released_files(package())
    with pytest.raises(InputError, match="holds 'package'"):
        write_release(folder, manifest_of(package(), files), files, force=True)
    assert (tmp_path / "kept/agent.json").exists()


@contextmanager
def full_disk(file_bytes: int) -> Iterator[None]:
    """No file can be longer: what is over is not written, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("force", [False, True])
def test_a_disk_that_fills_up_leaves_nothing_that_reads_as_whole(tmp_path: Path, force: bool) -> None:
    for at in range(3, len(released_files(package())) + 1):  # the package's own files cannot be changed
        folder = exported(tmp_path / str(at)).folder if force else tmp_path / str(at)
        files = with_long_file(at)
        manifest = manifest_of(package(), files)
        assert max(map(len, [*files.values(), manifest.content()])) > FULL
        with full_disk(FULL), pytest.raises(InputError, match=rf"{at}': File too large; choose another folder"):
            write_release(folder, manifest, files, force=force)
        assert [path for path in folder.rglob("*") if path.is_file()] == []
        with pytest.raises(InputError, match=r"holds no manifest\.json"):
            read_release(folder)
        write_release(folder, manifest, files, force=False)  # nothing is in the way of the next attempt
        read_release(folder)


KILLED = """
import resource, signal, sys
from pathlib import Path
from orchestrator.bootstrap.release.folders import write_release
from tests.answering_lab import package
from tests.release_lab import FULL, manifest_of, with_long_file
files = with_long_file(int(sys.argv[2]))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, FULL))
write_release(Path(sys.argv[1]), manifest_of(package(), files), files, force=True)
"""


@pytest.mark.parametrize("at", [3, 7])
def test_a_process_that_is_killed_leaves_nothing_that_reads_as_whole(folder: Path, at: int) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(at)], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGXFSZ
    assert (folder / "package/agent.json").exists()
    with pytest.raises(InputError, match=r"is no exported package|manifest\.json: "):
        read_release(folder)
    files = released_files(package())
    write_release(folder, manifest_of(package(), files), files, force=True)
    read_release(folder)


def test_a_place_that_cannot_be_written_is_named() -> None:
    files = released_files(package())
    with pytest.raises(InputError, match=rf"cannot write the package into '{READ_ONLY}': .*; choose another folder"):
        write_release(READ_ONLY, manifest_of(package(), files), files, force=False)


def test_the_manifest_is_json_that_names_every_file(folder: Path) -> None:
    document = json.loads((folder / "manifest.json").read_text())
    names = {os.path.relpath(path, folder) for path in folder.rglob("*") if path.is_file()}
    assert set(document["files"]) == names - {"manifest.json"}
    assert all(map(is_exported, names))
