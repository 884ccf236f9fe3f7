"""docs/your-first-task.md from an empty folder to the end, with the figures that it promises."""

from __future__ import annotations

import filecmp
import re
import shlex
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.first_task_page import commands, outputs, write_files

pytestmark = pytest.mark.docker


def without_ids(text: str) -> list[str]:
    """The lines without what differs from run to run: its id, and blanks that only fill a column."""
    lines = (" ".join(re.sub(r"\b[0-9a-f]{12}\b", "ID", line).split()) for line in text.splitlines())
    return [line for line in lines if line.strip("─ ")]


@pytest.mark.usefixtures("images")
def test_a_new_user_gets_what_the_page_says(home: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    line = CommandLine.beside(home, tmp_path / "home")
    said: list[str] = []
    for command in commands():
        ended = line.call(*shlex.split(command)[1:], folder=tmp_path)
        assert ended.code == 0, ended.err
        said += without_ids(ended.out + ended.err)
        if command.startswith("evolvarium task new"):
            write_files(tmp_path)
    promised = [text for output in outputs() for text in without_ids(output)]
    assert promised
    assert [text for text in promised if text not in said] == []
    changed = filecmp.dircmp(tmp_path / "cooling" / "initial", tmp_path / "best")
    assert (changed.left_only, changed.right_only) == ([], [])
    assert changed.diff_files == ["model.py"]
