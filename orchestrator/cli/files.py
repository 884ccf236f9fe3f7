"""Files that commands write and read for the user."""

from __future__ import annotations

from pathlib import Path

from orchestrator.domain.candidates import MAX_FILES, FileTree
from orchestrator.errors import InputError


def write_tree(tree: FileTree, target: Path, *, force: bool) -> Path:
    """Write a candidate: its only file to `target` (or into that folder), several files into a folder.

    Raises:
        InputError: Something is there and `force` is not given, or it cannot be written.
    """
    if len(tree) == 1 and not target.is_dir():
        places = {target: next(iter(tree.values()))}
    else:
        places = {target / path: content for path, content in tree.items()}
    for place in places:
        if place.is_symlink() or (place.exists() and not force):
            msg = f"{str(place)!r} exists; remove it, choose another -o, or overwrite it with --force"
            raise InputError(msg)
    try:
        for place, content in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    except OSError as error:
        msg = f"cannot write {str(target)!r}: {error.strerror}; choose another place with -o"
        raise InputError(msg) from error
    return target


def read_program(path: Path, entry: str) -> FileTree:
    """A candidate from a file, which becomes its entry module, or from a folder.

    Raises:
        InputError: It cannot be read, or is no candidate.
    """
    try:
        if not path.is_dir():
            return FileTree({entry: path.read_bytes()})
        found = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        if not found or len(found) > MAX_FILES:
            msg = f"{str(path)!r} holds {len(found)} files; a candidate has 1 to {MAX_FILES}"
            raise InputError(msg)
        return FileTree({file.relative_to(path).as_posix(): file.read_bytes() for file in found})
    except OSError as error:
        msg = f"cannot read the program {str(path)!r}: {error.strerror}"
        raise InputError(msg) from error


def write_text(path: Path, text: str) -> Path:
    """Write a file, making its folder.

    Raises:
        InputError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; choose another place"
        raise InputError(msg) from error
    return path
