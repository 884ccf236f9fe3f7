"""What docs/your-first-task.md has its reader write and type."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "your-first-task.md").read_text(encoding="utf-8")


BLOCKS = [
    (found["language"], found["text"], PAGE[: found.start()].rstrip().rpartition("\n")[2])
    for found in re.finditer(
        r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", PAGE, re.MULTILINE | re.DOTALL
    )
]
"""(language, text, line before) of every block of the page."""


def files() -> dict[str, str]:
    """Text by path."""
    named = [(re.fullmatch(r"`(cooling/[\w./]+)`:", before), text) for _, text, before in BLOCKS]
    return {found[1]: text for found, text in named if found is not None}


def write_files(folder: Path) -> None:
    """Write them below a folder that holds the new task."""
    for path, text in files().items():
        (folder / path).write_text(text, encoding="utf-8")


def commands() -> list[str]:
    """Command lines of ours in the order of the page."""
    plain = [text for language, text, _ in BLOCKS if not language]
    return [line for text in plain for line in text.splitlines() if line.startswith("evolvarium ")]


def outputs() -> list[str]:
    """What the commands print."""
    return [text for language, text, _ in BLOCKS if not language and "evolvarium " not in text]
