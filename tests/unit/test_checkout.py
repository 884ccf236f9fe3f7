"""What people make in a checkout does not break its checks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.evaluation.new_task import new_task

ROOT = Path(__file__).parents[2]


def _ruff(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but its settings."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ("orchestrator", "sandbox_images", "tasks", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "empty.py").write_text("")
    return tmp_path


def test_only_our_own_folders_are_linted(checkout: Path) -> None:
    (checkout / "winner.py").write_text("import os, sys\nx=1")
    (checkout / "my_task").mkdir()
    (checkout / "my_task" / "program.py").write_text("import os")
    for arguments in (("check",), ("format", "--check")):
        done = _ruff(checkout, *arguments)
        assert done.returncode == 0, done.stdout
    (checkout / "tests" / "empty.py").write_text("import os\n")
    assert _ruff(checkout, "check").returncode == 1


def test_a_new_task_among_ours_passes_the_linter(checkout: Path) -> None:
    new_task(checkout / "tasks", "my_task")
    new_task(checkout / "tasks", "my_task_of_two", two_modules=True)
    for arguments in (("check",), ("format", "--check")):
        done = _ruff(checkout, *arguments)
        assert done.returncode == 0, done.stdout


def test_git_does_not_see_what_the_readme_has_people_make() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/comparison/", "/my_task/", "/report/", "/verdict.xml", "/winner.py"} <= set(ignored)
