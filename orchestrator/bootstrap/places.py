"""Where things lie: the installation's home, task packages, policies and image sources."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import InputError, PrerequisiteError
from orchestrator.evaluation.tasks import task_folder
from orchestrator.runtime.strict_yaml import shown
from orchestrator.runtime.user_files import is_folder, kind_at

HOME_VARIABLE = "EVOLVARIUM_HOME"
_NO_PLACE = frozenset({errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG})
"""A path like this can hold no home on any disk."""
_ROOM = f"check its permissions and the free disk space, or choose another with --home or ${HOME_VARIABLE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Folders of one invocation."""

    home: Path
    """Runs, audit chain, hidden seeds and proofs of this installation; outside of every git work tree."""
    project: Path
    """Holds `tasks/`, `policies/` and `sandbox_images/`."""
    task_roots: Sequence[Path]

    def task(self, name: str) -> Path:
        """The folder of a task, by name or path.

        Raises:
            InputError: There is none; the message names close ones.
        """
        return task_folder(name, self.task_roots)


def find_places(home: Path | None, task_root: Path | None, environment: Mapping[str, str] | None = None) -> Places:
    """Places from options and the environment; makes nothing.

    Args:
        home: None: `$EVOLVARIUM_HOME`, else `evolvarium` in the XDG data directory.
        task_root: Searched before the project's own tasks; None: only those.
        environment: None: the process's own.

    Raises:
        InputError: The home is a file or lies in a git work tree, or the task root is no folder.
    """
    variables = os.environ if environment is None else environment
    if task_root is not None and not _is_folder(task_root, "the task root", "--task-root"):
        msg = f"task root {str(task_root)!r} is not a folder; give the folder that holds the task packages"
        raise InputError(msg)
    project = _project()
    roots = [project / "tasks"] if task_root is None else [task_root, project / "tasks"]
    return Places(home=_home(home, variables), project=project, task_roots=tuple(roots))


def existing_places(home: Path | None, environment: Mapping[str, str] | None = None) -> Places:
    """Places for a command that only reads: a home that was named has to be there.

    Args:
        home: None: as `find_places`; that home may be missing, since everybody begins without one.
        environment: Likewise.

    Raises:
        InputError: As `find_places`, or the named home does not exist.
    """
    if home is not None and _is_missing(home):
        msg = f"there is no home {str(home)!r}; correct --home, or leave it out"
        raise InputError(msg)
    return find_places(home, None, environment)


def writable_home(places: Places) -> Path:
    """The home, made if it is missing, readable by its owner alone.

    Raises:
        PrerequisiteError: The disk or its permissions do not let us make it or write there.
        InputError: No folder can be at its path.
    """
    try:
        places.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_writable(places.home)
    except OSError as error:
        kind = InputError if error.errno in _NO_PLACE else PrerequisiteError
        msg = f"cannot write to the home {str(places.home)!r}: {error.strerror}; {_ROOM}"
        raise kind(msg) from error
    return places.home


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        number = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(number, os.strerror(number))


def _is_missing(home: Path) -> bool:
    try:
        return kind_at(home.expanduser()) == 0
    except (OSError, RuntimeError):
        return False  # `find_places` says why it cannot be used


def _home(home: Path | None, variables: Mapping[str, str]) -> Path:
    chosen = home or Path(variables.get(HOME_VARIABLE) or _data_home(variables) / "evolvarium")
    try:
        resolved = chosen.expanduser().resolve()
        kind = kind_at(resolved)
        tree = next((folder for folder in (resolved, *resolved.parents) if kind_at(folder / ".git")), None)
    except (OSError, RuntimeError, ValueError) as error:  # an unknown user after `~`, links in a circle, a null byte
        reason = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        msg = f"the home {shown(str(chosen))} cannot be used: {reason}; choose another with --home or ${HOME_VARIABLE}"
        raise InputError(msg) from error
    if kind not in (0, stat.S_IFDIR):
        msg = f"the home {str(chosen)!r} is a file; choose a folder with --home or ${HOME_VARIABLE}"
        raise InputError(msg)
    if tree is not None:
        msg = (
            f"the home {str(chosen)!r} lies in the git work tree {str(tree)!r}, where hidden data could be committed; "
            f"choose a folder outside with --home or ${HOME_VARIABLE}"
        )
        raise InputError(msg)
    return resolved


def _is_folder(path: Path, what: str, option: str) -> bool:
    try:
        return is_folder(path)
    except OSError as error:
        msg = f"{what} {shown(str(path))} cannot be used: {error.strerror}; choose another with {option}"
        raise InputError(msg) from error


def _data_home(variables: Mapping[str, str]) -> Path:
    data_home = variables.get("XDG_DATA_HOME", "")
    return Path(data_home) if data_home.startswith("/") else Path("~/.local/share")


def _project() -> Path:
    """The checkout this package lies in; else the working directory."""
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "sandbox_images").is_dir() else Path.cwd()
