"""Where the data of splits come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.errors import InputError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.task_spec import FilesSplit
from orchestrator.evaluation.tasks import Task
from orchestrator.runtime.strict_yaml import shown
from orchestrator.runtime.user_files import kind_at


def split_store(places: Places, *, public_seed: bool, data: str | None) -> SplitStore:
    """The splits of this installation, or of the published seed.

    Args:
        places: Holds the home.
        public_seed: Generate from the published seed; otherwise from the installation's own, drawn at the first call.
        data: File or folder of those that come from files; None: there are none.

    Raises:
        InputError: `data` does not exist, or the home cannot be used.
    """
    if data is not None and not _is_there(Path(data)):
        msg = f"there is no {data!r}; the data of a split are a file, or the folder that holds it"
        raise InputError(msg)
    home = writable_home(places)
    seeds = SeedSource.public() if public_seed else SeedSource.installation(home)
    return SplitStore(home=home, seeds=seeds, data_roots=() if data is None else (Path(data),))


def unused_data(task: Task, measured: Sequence[str], data: str | None) -> str | None:
    """What to say of a file or folder that was given and that nothing reads; None: there is no such.

    Args:
        task: Declares the splits.
        measured: The splits that are measured.
        data: As it was given.

    Raises:
        InputError: The task has no such split.
    """
    if data is None or any(isinstance(task.split(name), FilesSplit) for name in measured):
        return None
    from_files = [name for name, split in task.spec.splits.items() if isinstance(split, FilesSplit)]
    if not from_files:
        return f"{data!r} is not used: no split of task {task.name!r} comes from files"
    return f"{data!r} is not used: it is for {', '.join(from_files)}, and measured is {', '.join(measured)}"


def _is_there(path: Path) -> bool:
    try:
        return kind_at(path) != 0
    except OSError as error:
        msg = f"cannot use {shown(str(path))}: {error.strerror}; give another file or folder with --data"
        raise InputError(msg) from error
