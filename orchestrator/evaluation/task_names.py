"""Names of tasks as messages show them, and those that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from orchestrator.evaluation.task_document import TASK_FILE

_MOST = 3
_FOLDERS_SEEN = 1000


def listed(names: Iterable[str]) -> str:
    """Names with commas between; those of a family's members are one, `family/...`."""
    short = (f"{name.partition('/')[0]}/..." if "/" in name else name for name in names)
    return ", ".join(dict.fromkeys(short)) or "none"


def meant_names(name: str, known: Sequence[str], here: Path) -> list[str]:
    """What may have been meant by a name that is no task's, the most likely first.

    Args:
        name: As it was given.
        known: Names of tasks, or `family/member`.
        here: The working directory, whose task packages are named with `./`.
    """
    members = [one for one in known if one.rpartition("/")[2].lower() == name.lower()]
    close = [] if members else get_close_matches(name, known, n=_MOST)
    bare = name.removeprefix("./")
    folders = [] if "/" in bare else get_close_matches(bare, _packages(here), n=_MOST)
    return list(dict.fromkeys([*members, *close, *(f"./{folder}" for folder in folders)]))[:_MOST]


def _packages(here: Path) -> list[str]:
    try:
        return sorted(file.parent.name for file in here.glob(f"*/{TASK_FILE}"))[:_FOLDERS_SEEN]
    except OSError:
        return []
