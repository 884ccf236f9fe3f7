"""What a family of programs offers the engine: when it applies, and the next step of its search."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.llm.offline.notebook import ANALYSIS_FILE, Notebook


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The engine's next message: a reason in words, and tool calls; without any it ends the turn."""

    text: str
    calls: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """(tool, arguments)"""


class Family(Protocol):
    """Search operators for one kind of program. Holds no state: everything is read from the notebook."""

    def recognises(self, notebook: Notebook) -> bool:
        """Whether the task and the program at hand are of this kind."""
        ...

    def next_step(self, notebook: Notebook, chance: random.Random) -> Step:
        """What to do now. All randomness comes from `chance`."""
        ...

    def figures(self, notebook: Notebook) -> dict[str, Any]:
        """What a successor must know beside the files and the archive; JSON."""
        ...


def write(file: str, content: str) -> tuple[str, Mapping[str, str]]:
    """A call that replaces a file."""
    return "write", {"file": file, "content": content}


def rewrite_script(notebook: Notebook, content: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The calls that turn the current analysis script into another: edits of the lines that differ, if they are few.

    An edit that failed in the message before is not tried again.
    """
    current = notebook.files.get(ANALYSIS_FILE, "").splitlines()
    wanted = content.splitlines()
    if notebook.errors or len(current) != len(wanted):
        return (write(ANALYSIS_FILE, content),)
    changes = [(old, new) for old, new in zip(current, wanted, strict=True) if old != new]
    if len(changes) > 8 or any(current.count(old) != 1 or not old for old, _ in changes):
        return (write(ANALYSIS_FILE, content),)
    return tuple(("edit", {"file": ANALYSIS_FILE, "old": old, "new": new}) for old, new in changes)


def commit(description: str) -> tuple[str, Mapping[str, str]]:
    """A call that has the candidate evaluated."""
    return "commit", {"description": description}
