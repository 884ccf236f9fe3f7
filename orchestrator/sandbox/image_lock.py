"""The lock of the images: which image each role runs, and what went into it.

The file is `images.lock.json` in the installation's state directory. It is replaced as a whole, by rename, and only by
the holder of the file lock beside it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import ImageMissing, PrerequisiteError, SandboxError
from orchestrator.runtime.user_files import open_regular, read_file

LOCK_FILE = "images.lock.json"
REPOSITORY = "evolvarium"
"""Every tag of ours is `REPOSITORY/ROLE:PLACE`."""
BUILD_SECONDS = 1800.0
_MAX_LOCK_BYTES = 16 << 20

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ImageId = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DebianPackage(_Strict):
    """A package of the distribution whose files are in every image."""

    name: str
    version: str
    architecture: str
    sha256: Sha256
    """Of the package file."""


class Interpreter(_Strict):
    """The image that every role starts from: the root file system with its interpreter compiled."""

    image_id: ImageId
    tag: str
    reference: str | None
    """The digest-pinned image it was made from; null: the distribution's packages."""
    packages: tuple[DebianPackage, ...]
    """Empty with a reference."""
    python: Annotated[str, Field(pattern=r"^3\.\d+$")]
    libc: Annotated[str, Field(pattern=r"^\d+\.\d+$")]
    """Version of glibc, which decides which wheels run."""
    machine: str
    """As `uname -m`."""
    inputs: dict[str, Sha256]
    """What it was made from, by name, for telling whether it is out of date."""


class LockedImage(_Strict):
    """The image of one role."""

    image_id: ImageId
    """SHA-256 of the image's configuration, which names its layers; containers are made from this and no other name."""
    tag: str
    """Keeps the engine from pruning it; must go on naming the same image."""
    tree_sha256: Sha256
    """Over path, kind, mode, owner and content of every file, without times: equal trees have equal digests."""
    size_bytes: Annotated[int, Field(ge=0)]
    interpreter_id: ImageId
    inputs: dict[str, Sha256]
    wheels: dict[str, Sha256]
    """File name to SHA-256 of each wheel unpacked in it."""
    built_at: datetime


class ImageLock(_Strict):
    """Every locked image."""

    version: Literal[1] = 1
    interpreter: Interpreter | None = None
    images: dict[Role, LockedImage] = {}

    def with_interpreter(self, interpreter: Interpreter) -> ImageLock:
        """The same lock on another interpreter."""
        return self.model_copy(update={"interpreter": interpreter})

    def with_image(self, role: str, image: LockedImage) -> ImageLock:
        """The same lock with one role's image replaced."""
        return self.model_copy(update={"images": {**self.images, role: image}})


def place_of(home: Path) -> str:
    """A home as tags name it: two homes on one engine do not move each other's tags."""
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:12]


def read_lock(home: Path) -> ImageLock:
    """The lock; empty where nothing was built yet.

    Raises:
        ImageMissing: The file is not such a lock.
    """
    path = home / LOCK_FILE
    try:
        return ImageLock.model_validate_json(read_file(path, _MAX_LOCK_BYTES))
    except FileNotFoundError:
        return ImageLock()
    except (ValidationError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it holds no image lock"
        msg = f"image lock {path} cannot be read: {reason}; remove it and run `evolvarium images build`"
        raise ImageMissing(msg) from error


def write_lock(home: Path, lock: ImageLock) -> None:
    """Replace the lock; readers see the old one or the new one, also after a crash.

    Raises:
        PrerequisiteError: It cannot be written; the old one stays.
    """
    path = home / LOCK_FILE
    temporary = path.with_name(f".{LOCK_FILE}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as handle:
            handle.write(json.dumps(lock.model_dump(mode="json"), indent=1, sort_keys=True) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
        _sync(home)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        msg = (
            f"cannot write the image lock {path}: {error.strerror}; check permissions and disk space, then build again"
        )
        raise PrerequisiteError(msg) from error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def building(home: Path, progress: Callable[[str], None], *, seconds: float = BUILD_SECONDS) -> Iterator[None]:
    """Be the only build in this state directory.

    Raises:
        SandboxError: Another build went on for longer than `seconds`.
        PrerequisiteError: The directory or the file that is locked cannot be made, or something else is in its place.
    """
    path = home / ".images.building"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        msg = f"cannot lock {path}: {error.strerror}; check permissions and disk space, or move it away"
        raise PrerequisiteError(msg) from error
    try:
        deadline = time.monotonic() + seconds
        has_told = False
        while not _taken(descriptor):
            if not has_told:
                progress("another build is going on; waiting for it")
                has_told = True
            if time.monotonic() > deadline:
                msg = f"another build has held {path} for {seconds:.0f} s; end it, then build again"
                raise SandboxError(msg)
            time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)  # drops the lock, as does the death of this process


def combined(inputs: Mapping[str, str]) -> str:
    """SHA-256 over named digests."""
    return hashlib.sha256(json.dumps(dict(inputs), sort_keys=True).encode()).hexdigest()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
