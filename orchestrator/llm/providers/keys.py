"""Keys: from the environment, or from a file that nobody else can read. No message ever holds what was found there."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from orchestrator.domain.model_access import KeySource
from orchestrator.errors import PrerequisiteError
from orchestrator.llm.providers.wire import Secret

MAX_KEY_BYTES = 4096
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # opening a pipe waits for nobody


def read_key(source: KeySource | None, environment: Mapping[str, str]) -> Secret | None:
    """A key from where it is said to be; None: from nowhere, since none is needed.

    Args:
        source: Variable or file.
        environment: Of the process.

    Raises:
        PrerequisiteError: There is none, it cannot be one, or others can read it; says what to do, and never the key.
    """
    if source is None:
        return None
    if source.env is not None:
        return _from_variable(source.env, environment)
    return _from_file(Path(source.file or ""))


def source_name(source: KeySource) -> str:
    """For messages."""
    return f"the environment variable {source.env}" if source.env is not None else f"the file {source.file!r}"


def _from_variable(name: str, environment: Mapping[str, str]) -> Secret:
    value = environment.get(name, "")
    if not value:
        state = "empty" if name in environment else "not set"
        msg = (
            f"{name} is {state}; set it to the key (export {name}=...), or name another source: `key` in a --models "
            "file, or --key-env NAME beside --base-url"
        )
        raise PrerequisiteError(msg)
    return _checked(value, f"the environment variable {name}")


def _from_file(path: Path) -> Secret:
    shown = f"the key file {str(path)!r}"
    try:
        raw = _content(path)
    except OSError as error:
        reason = error.strerror
    except ValueError as error:
        reason = str(error)
    else:
        try:
            return _checked(raw.decode("ascii"), shown)
        except UnicodeDecodeError:
            reason = None
    if reason is None:  # outside of the handler, whose exception holds the content
        raise PrerequisiteError(_unfit(shown))
    msg = f"{shown} cannot be used: {reason}"
    raise PrerequisiteError(msg)


def _content(path: Path) -> bytes:
    """Bytes of a file, which is looked at once it is open, so that nobody can put another in its place meanwhile.

    Raises:
        OSError: It cannot be opened or read.
        ValueError: It is no file for a key; says why, and the way out.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        kind = "it is a link to nothing" if path.is_symlink() else "it is missing"
        msg = f"{kind}; put the key there, then run `chmod 600 {shlex.quote(str(path))}`"
        raise ValueError(msg) from None
    try:
        _check(os.fstat(descriptor), path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            raw = file.read(MAX_KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > MAX_KEY_BYTES:
        msg = f"it has over {MAX_KEY_BYTES} bytes, so it is no key; put the key alone there"
        raise ValueError(msg)
    return raw


def _check(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        msg = "it is a folder; name the file in it"
    elif not stat.S_ISREG(status.st_mode):
        msg = "it is not a regular file; put the key into one"
    elif status.st_uid not in (0, os.geteuid()):
        msg = f"it belongs to another user (uid {status.st_uid}); make a file of your own, then run `chmod 600` on it"
    elif status.st_mode & 0o077:
        msg = (
            f"others can get at it (mode {stat.S_IMODE(status.st_mode):03o}); run `chmod 600 {shlex.quote(str(path))}`"
        )
    else:
        return
    raise ValueError(msg)


def _checked(value: str, where: str) -> Secret:
    key = value.removesuffix("\n").removesuffix("\r")
    if not key:
        msg = f"{where} is empty; put the key there"
        raise PrerequisiteError(msg)
    if len(key) > MAX_KEY_BYTES:
        msg = f"{where} has over {MAX_KEY_BYTES} bytes, so it is no key; put the key alone there"
        raise PrerequisiteError(msg)
    if not all("!" <= character <= "~" for character in key):
        raise PrerequisiteError(_unfit(where))
    return Secret(key)


def _unfit(where: str) -> str:
    return (
        f"{where} holds characters that are in no key (spaces, line breaks, or others that no header can carry); "
        "put the key alone there, in one line"
    )
