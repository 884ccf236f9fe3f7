"""The lock of the images."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.errors import ImageMissing, SandboxError
from orchestrator.sandbox.image_lock import (
    LOCK_FILE,
    DebianPackage,
    ImageLock,
    Interpreter,
    LockedImage,
    building,
    read_lock,
    write_lock,
)

ID = "sha256:" + "a" * 64


@pytest.fixture
def lock() -> ImageLock:
    package = DebianPackage(name="libc6", version="2.36-9", architecture="amd64", sha256="b" * 64)
    interpreter = Interpreter(
        image_id=ID,
        tag="evolvarium/interpreter:x",
        reference=None,
        packages=(package,),
        python="3.11",
        libc="2.36",
        machine="x86_64",
        inputs={"prepare.py": "c" * 64},
    )
    image = LockedImage(
        image_id=ID,
        tag="evolvarium/base:x",
        tree_sha256="d" * 64,
        size_bytes=1,
        interpreter_id=ID,
        inputs={},
        wheels={},
        built_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return ImageLock().with_interpreter(interpreter).with_image("base", image)


def test_a_lock_reads_back_as_it_was_written(tmp_path: Path, lock: ImageLock) -> None:
    write_lock(tmp_path, lock)
    assert read_lock(tmp_path) == lock
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]


def test_a_home_without_a_lock_has_no_images(tmp_path: Path) -> None:
    assert read_lock(tmp_path) == ImageLock()


@pytest.mark.parametrize("text", ["", "{", '{"version": 2}', '{"version": 1, "more": 1}', '{"images": {"base": {}}}'])
def test_a_lock_that_is_none_is_refused_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_FILE).write_text(text)
    with pytest.raises(ImageMissing, match="evolvarium images build"):
        read_lock(tmp_path)


def test_two_builds_in_one_home_do_not_run_at_once(tmp_path: Path) -> None:
    told: list[str] = []
    with building(tmp_path, told.append):
        assert told == []
        with pytest.raises(SandboxError, match="another build"), building(tmp_path, told.append, seconds=0.2):
            pass
    assert told == ["another build is going on; waiting for it"]
    with building(tmp_path, told.append):
        assert len(told) == 1


def test_a_build_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from orchestrator.sandbox.image_lock import building\n"
        "with building(Path(sys.argv[1]), print): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=60).returncode == -9
    told: list[str] = []
    with building(tmp_path, told.append, seconds=5):
        assert told == []
