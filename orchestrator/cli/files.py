"""Files that commands write and read for the user."""

from __future__ import annotations

from errno import ENOTDIR
from pathlib import Path
from tempfile import TemporaryFile

from orchestrator.domain.candidates import MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, FileTree
from orchestrator.errors import InputError
from orchestrator.runtime.user_files import check_target, is_folder, kind_at, read_file, read_tree, write_file


def write_tree(tree: FileTree, target: Path, *, force: bool) -> Path:
    """Write a candidate, making folders: its only file to `target` (or into that folder), several into a folder.

    Raises:
        InputError: Something is there and `force` is not given, or it cannot be written.
    """
    if len(tree) == 1 and not _is_folder(target):
        places = {target: next(iter(tree.values()))}
    else:
        places = {target / path: content for path, content in tree.items()}
    for place in places:
        require_target(place, force=force)
        link = next((folder for folder in place.parents if target in folder.parents and folder.is_symlink()), None)
        if link is not None:  # the candidate's author chose the path below `target`
            msg = f"{str(link)!r} is a symbolic link; remove it, or choose another -o"
            raise InputError(msg)
    for place, content in places.items():
        write_content(place, content, force=force)
    return target


def _is_folder(path: Path) -> bool:
    try:
        return is_folder(path)
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; choose another place with -o"
        raise InputError(msg) from error


def require_target(path: Path, *, force: bool) -> None:
    """See, before any work is done, whether a file may be written.

    Raises:
        InputError: A file is there and `force` is not given, or a link, pipe, device or folder, which nothing replaces.
    """
    try:
        check_target(path, overwrite=force)
    except FileExistsError as error:
        msg = f"{str(path)!r} exists; choose another place, or overwrite it with --force"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; remove it, or choose another place"
        raise InputError(msg) from error


def require_output_name(path: Path | None, *, command: str, page: bool = False) -> None:
    """See, before any work is done, that a name is one of what a command can write.

    Args:
        path: As given; None: nothing is written. A folder that exists may have any name.
        command: Of the program, for the message.
        page: Whether it can also write one page, `.html`.

    Raises:
        InputError: The name ends as that of another kind of file does.
    """
    suffix = "" if path is None else path.suffix.lower()
    if path is None or (page and suffix == ".html") or suffix[1:].isdigit() or not suffix or _is_folder(path):
        return
    ways = "a folder, whose name has no such ending" + (", or a page, whose name ends in '.html'" if page else "")
    msg = f"{str(path)!r} ends in {suffix!r}, and `evolvarium {command}` cannot write such a file; name {ways}"
    raise InputError(msg)


def require_folder(path: Path) -> None:
    """See, before any work is done, that a folder can be written or made; nothing is left of the attempt.

    Raises:
        InputError: It cannot.
    """
    try:
        nearest = next(folder for folder in (path, *path.parents) if kind_at(folder))
        if not is_folder(nearest):
            raise NotADirectoryError(ENOTDIR, f"{str(nearest)!r} is not a folder")
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        msg = f"cannot write into {str(path)!r}: {error.strerror}; choose another folder with -o"
        raise InputError(msg) from error


def read_program(path: Path, entry: str) -> FileTree:
    """A candidate from a file, which becomes its entry module, or from a folder, in which links are refused.

    Raises:
        InputError: It cannot be read, or is no candidate.
    """
    try:
        if not is_folder(path):
            return FileTree({entry: read_file(path, MAX_FILE_BYTES)})
        found = read_tree(path, max_files=MAX_FILES, max_bytes=MAX_TREE_BYTES)
        if not found:
            msg = f"{str(path)!r} holds no files; a candidate has 1 to {MAX_FILES}"
            raise InputError(msg)
        return FileTree(found)
    except OSError as error:
        msg = f"cannot read the program {str(path)!r}: {error.strerror}"
        raise InputError(msg) from error


def write_text(path: Path, text: str, *, force: bool) -> Path:
    """Write a file in UTF-8; otherwise as `write_content`."""
    return write_content(path, text.encode("utf-8"), force=force)


def write_content(path: Path, content: bytes, *, force: bool) -> Path:
    """Write a file, making its folder.

    Raises:
        InputError: As `require_target`, or it cannot be written.
    """
    require_target(path, force=force)
    try:
        write_file(path, content, overwrite=force)
    except OSError as error:
        msg = f"cannot write {str(path)!r}: {error.strerror}; choose another place"
        raise InputError(msg) from error
    return path
