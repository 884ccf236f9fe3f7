"""Packages in folders on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.bootstrap.release.folders import read_release
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.candidates import MAX_FILES, MAX_TREE_BYTES
from orchestrator.domain.releases import MANIFEST
from orchestrator.errors import InputError
from orchestrator.methods.robophd.members import check_initial_id
from orchestrator.methods.robophd.naive import NAIVE, naive_package
from orchestrator.runtime.user_files import kind_at, read_tree


def load_package(folder: Path) -> AgentPackage:
    """The package in a folder: as it is, or as `evolvarium export` wrote it.

    Raises:
        InputError: It cannot be read, is no package, or was changed since it was exported; the message names the
            folder.
    """
    try:
        if kind_at(folder / MANIFEST):
            return read_release(folder).package
    except OSError as error:
        msg = f"cannot read the package {str(folder)!r}: {error.strerror}; give a folder made by `export`"
        raise InputError(msg) from error
    try:
        return AgentPackage.load(read_tree(folder, max_files=MAX_FILES, max_bytes=MAX_TREE_BYTES))
    except OSError as error:
        msg = f"cannot read the package {str(folder)!r}: {error.strerror}; give a folder with agent.json in it"
        raise InputError(msg) from error
    except InputError as error:
        msg = f"package {str(folder)!r}: {error}"
        raise InputError(msg) from error


def initial_packages(folders: Sequence[str]) -> dict[str, AgentPackage]:
    """The naive package, and those in folders under the folders' names.

    Raises:
        InputError: A folder holds no package, or its name cannot be one.
    """
    packages = {NAIVE: naive_package()}
    for folder in map(Path, folders):
        name = check_initial_id(folder.resolve().name)
        if name in packages:
            msg = f"there are two packages called {name!r}; rename the folder of one of them"
            raise InputError(msg)
        packages[name] = load_package(folder)
    return packages
