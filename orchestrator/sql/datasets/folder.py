"""Files of a data set: found without regard to case, read within bounds, and all part of its digest.

A data set comes from anybody. Nothing outside its folder is read, whatever its names and links say, and no pipe or
device is waited for.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.errors import InputError

MAX_LIST_BYTES = 256 << 20
"""Of a file of questions or tables."""
MAX_TEXT_BYTES = 4 << 20
"""Of a description."""
MAX_NAME_BYTES = 255
"""In UTF-8; file systems take no more."""
_ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
_SHOWN_CHARACTERS = 80
Model = TypeVar("Model", bound=BaseModel)


class DataFolder:
    """The folder a data set lies in."""

    def __init__(self, root: Path) -> None:
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir fails where a name is too long
            msg = f"{shown(str(root))} is not a folder; give the folder of the data set"
            raise InputError(msg)
        self.root = root
        self._real = root.resolve()
        self._hashes: dict[str, str] = {}

    def find(self, *names: str) -> Path | None:
        """Something below the root by its name on each level, exactly or else without regard to case.

        Raises:
            InputError: A name is none (`check_name`) or cannot be looked for, or what is there leads out of the folder
                or in a circle.
        """
        path = self.root
        for name in names:
            check_name(name, str(self.root))
            found = _entry(path, name)
            if found is None:
                return None
            path = found
        self._check_inside(path)
        return path

    def read(self, path: Path, limit: int) -> str:
        """Text of a file that `find` gave, whatever its encoding; its bytes become part of the digest.

        Raises:
            InputError: It is no regular file, is too large, or leads out of the folder.
        """
        self._check_inside(path)
        try:
            raw = _content(path, limit)
        except OSError as error:
            msg = f"cannot read {str(path)!r}: {error.strerror}"
            raise InputError(msg) from error
        self._hashes[path.relative_to(self.root).as_posix()] = hashlib.sha256(raw).hexdigest()
        return decode(raw)

    def read_json(self, path: Path) -> Any:  # noqa: ANN401 - any document
        """The document in a file.

        Raises:
            InputError: As `read`, or it is not JSON; the message names the line.
        """
        return parse_json(self.read(path, MAX_LIST_BYTES), str(path))

    def digest(self) -> str:
        """`sha256:` and 64 hex digits over names and content of all that was read so far."""
        manifest = json.dumps(sorted(self._hashes.items()), separators=(",", ":")).encode()
        return "sha256:" + hashlib.sha256(manifest).hexdigest()

    def _check_inside(self, path: Path) -> None:
        try:
            real = path.resolve()
        except (OSError, RuntimeError) as error:  # the second is what pathlib makes of a circle
            msg = f"{str(path)!r} is a link that leads nowhere or in a circle; put the file itself into the data set"
            raise InputError(msg) from error
        if not real.is_relative_to(self._real):
            msg = f"{str(path)!r} leads out of {str(self.root)!r}; put the file itself into the data set"
            raise InputError(msg)


def entries(folder: Path) -> Iterator[Path]:
    """What a folder holds, in the order of the names, without what macOS adds to archives.

    Raises:
        InputError: It cannot be listed.
    """
    if not folder.is_dir():
        return
    try:
        found = sorted(e for e in folder.iterdir() if e.name != "__MACOSX" and not e.name.startswith("."))
    except OSError as error:
        msg = f"cannot list {str(folder)!r}: {error.strerror}; make it readable"
        raise InputError(msg) from error
    yield from found


def check_name(name: str, where: str) -> str:
    """Return `name` if it is that of one file or folder.

    Raises:
        InputError: It is empty, too long, holds separators or what cannot be seen, or begins with a dot.
    """
    if not is_name(name):
        msg = (
            f"{where}: {shown(name)} is no name of a database or file in it; use a plain name without '/', '\\' or '..'"
        )
        raise InputError(msg)
    return name


def is_name(name: str) -> bool:
    """Whether it can be the name of one file or folder of a data set."""
    if not 0 < len(name) <= 200 or name.startswith(".") or not name.isprintable() or set(name) & {"/", "\\"}:
        return False
    return len(name.encode()) <= MAX_NAME_BYTES


def decode(raw: bytes) -> str:
    """Text in UTF-8 or UTF-16 with a byte order mark, in UTF-8 without, or else as Windows programs write it."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):
            return raw.decode("utf-16")
    for encoding in _ENCODINGS[:-1]:
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode(_ENCODINGS[-1])


def parse_json(text: str, where: str, *, line: int | None = None) -> Any:  # noqa: ANN401 - any document
    """A JSON document.

    Args:
        text: The document.
        where: The file, for messages.
        line: Number of the one line that it takes; None: it is the whole file.

    Raises:
        InputError: It is none; the message names line and column.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}: line {line or error.lineno}, column {error.colno}"
        if "\0" in text[error.pos : error.pos + 2]:
            msg = f"{place}: it holds a NUL byte; is it damaged, or in UTF-16? fetch it again, or save it as UTF-8"
        else:
            msg = f"{place}: not JSON ({error.msg}); correct it or fetch it again"
        raise InputError(msg) from error
    except (RecursionError, ValueError) as error:
        place = where if line is None else f"{where}: line {line}"
        msg = f"{place}: nested too deep, or a number with too many digits; correct it or fetch it again"
        raise InputError(msg) from error


def validated(model: type[Model], entry: object, where: str) -> Model:
    """An entry of a list in its form.

    Raises:
        InputError: It has another form; the message names the entry, the field and the value.
    """
    try:
        return model.model_validate(entry)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        field = ".".join(map(str, detail["loc"])) or "it"
        if detail["type"] == "missing":
            msg = f"{where}: {field!r} is missing; add it"
        elif detail["type"] == "extra_forbidden":
            msg = f"{where}: {field!r} is not known; the fields are {', '.join(model.model_fields)}"
        else:
            said = str(detail["ctx"]["error"]) if detail["type"] == "value_error" else detail["msg"]
            reason = said[:1].lower() + said[1:]
            msg = f"{where}: {field} is {shown(detail['input'])}: {reason}; correct it"
        raise InputError(msg) from error


def entry_list(document: object, path: Path) -> list[object]:
    """The entries of a list.

    Raises:
        InputError: It is no list, or an empty one.
    """
    if not isinstance(document, list) or not document:
        msg = f"{path}: a list of entries is expected, not {shown(document)}; is this the right file?"
        raise InputError(msg)
    return document


def shown(value: object) -> str:
    """A value for a message."""
    text = repr(value[:_SHOWN_CHARACTERS] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _entry(folder: Path, name: str) -> Path | None:
    exact = folder / name
    try:
        if exact.exists():
            return exact
    except OSError as error:
        reason = f"{error.strerror}; use shorter names, or make it readable"
        msg = f"cannot look for {shown(name)} in {str(folder)!r}: {reason}"
        raise InputError(msg) from error
    return next((e for e in entries(folder) if _same(e.name, name)), None)


def _same(name: str, other: str) -> bool:
    return name.casefold() == other.casefold()


def _content(path: Path, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(0, f"it has over {limit} bytes")
    return content
