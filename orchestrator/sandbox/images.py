"""The images that sandboxes run: built here, locked by digest, refused when they or their inputs differ."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from orchestrator.errors import ImageMissing, InputError, SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import BuildPlan, build, find_image, inspect_tree, tag_image
from orchestrator.sandbox.image_inputs import SOURCES, changed_inputs, interpreter_inputs, role_inputs, runner_files
from orchestrator.sandbox.image_interpreter import LABEL, build_interpreter
from orchestrator.sandbox.image_lock import (
    REPOSITORY,
    ImageLock,
    Interpreter,
    LockedImage,
    building,
    combined,
    place_of,
    read_lock,
    write_lock,
)
from orchestrator.sandbox.image_tree import describe
from orchestrator.sandbox.image_wheels import fetch_wheels

ROLES = ("base", "python", "analysis", "evaluator", "sql", "tool")
_PINNED = re.compile(r"\S+@sha256:[0-9a-f]{64}")


class ImageStatus(StrEnum):
    """How an image stands to its lock."""

    LOCKED = "locked"
    """Built, and equal to its lock."""
    UNBUILT = "not built"
    MISSING = "missing from the engine"
    MOVED = "tag moved"
    STALE = "out of date"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageState:
    """One role's image."""

    role: str
    status: ImageStatus
    locked: str | None
    """Image id in the lock; None: the role is not built."""
    found: str | None
    """Image id that its tag names in the engine now; None: no such tag."""
    detail: str
    """What differs; empty when nothing does."""


class ImageStore:
    """The images of one installation. Thread-safe."""

    def __init__(self, engine: Engine, home: Path, *, sources: Path = SOURCES) -> None:
        """Use a state directory.

        Args:
            engine: Where the images are.
            home: The installation's state directory; holds `images.lock.json`.
            sources: The folder with one folder per image.
        """
        self._engine = engine
        self._home = home
        self._sources = sources
        self._lock = threading.Lock()  # guards _checked
        self._checked: dict[str, str] = {}

    def build(
        self,
        roles: Sequence[str] = ROLES,
        progress: Callable[[str], None] = lambda _: None,
        *,
        base: str | None = None,
        refresh: bool = False,
    ) -> list[ImageState]:
        """Build what is missing or out of date, and lock it; quick when nothing is.

        Args:
            roles: Which images.
            progress: Told what happens, a line at a time.
            base: `IMAGE@sha256:DIGEST` to start from instead of the distribution's packages; needs a registry.
                None: as before, or the distribution's packages.
            refresh: Fetch the distribution's packages anew, for their security updates.

        Raises:
            InputError: An unknown role, or `base` is not pinned by digest.
            PrerequisiteError: Packages, wheels or mmdebstrap cannot be had.
            SandboxError: The engine failed, or an image breaks a rule.
        """
        unknown = sorted(set(roles) - set(ROLES))
        if unknown:
            msg = f"no image {unknown[0]!r}; there are {', '.join(ROLES)}"
            raise InputError(msg)
        if base is not None and not _PINNED.fullmatch(base):
            msg = f"base image {base!r} is not pinned; write it as IMAGE@sha256:DIGEST"
            raise InputError(msg)
        with building(self._home, progress):
            old = read_lock(self._home)
            lock = self._with_interpreter(old, base, progress, refresh=refresh)
            for role in roles:
                lock = self._with_image(lock, role, progress)
            if old.interpreter and old.interpreter != lock.interpreter:
                self._discard(old.interpreter.image_id)
            with self._lock:
                self._checked.clear()
        return [self._state(lock, role) for role in roles]

    def list(self) -> list[ImageState]:
        """Every image against its lock.

        Raises:
            ImageMissing: The lock cannot be read.
            SandboxError: The engine failed.
        """
        lock = read_lock(self._home)
        return [self._state(lock, role) for role in ROLES]

    def verify(self, *, deep: bool = False) -> None:
        """Refuse images that differ from their lock.

        Args:
            deep: Also read every file of every image, and compare; takes seconds.

        Raises:
            ImageMissing: One differs; the message says which, how, and what to do.
            SandboxError: The engine failed.
        """
        lock = read_lock(self._home)
        for role in ROLES:
            self._require(self._state(lock, role))
            if deep and inspect_tree(self._engine, lock.images[role].image_id).sha256 != lock.images[role].tree_sha256:
                msg = f"image {role!r} holds other files than its lock says; run `evolvarium images build`"
                raise ImageMissing(msg)

    def digest(self, role: str) -> str:
        """The id of the image that a role runs; checked against the lock the first time it is asked for.

        Raises:
            ImageMissing: It is not built here, or differs from its lock.
            SandboxError: The engine failed.
        """
        with self._lock:
            known = self._checked.get(role)
        if known is not None:
            return known
        state = self._state(read_lock(self._home), role)
        self._require(state)
        with self._lock:
            self._checked[role] = str(state.locked)
        return str(state.locked)

    def locked(self) -> ImageLock:
        """The whole lock, for records.

        Raises:
            ImageMissing: It cannot be read.
        """
        return read_lock(self._home)

    def _state(self, lock: ImageLock, role: str) -> ImageState:
        image = lock.images.get(role)
        if image is None or lock.interpreter is None:
            return ImageState(
                role=role, status=ImageStatus.UNBUILT, locked=None, found=None, detail="it is not in the lock"
            )
        named = find_image(self._engine, image.tag)
        found = None if named is None else str(named["Id"])
        status, detail = ImageStatus.LOCKED, ""
        inputs = role_inputs(self._sources, role)
        if _is_outdated(image, inputs, lock.interpreter):
            changed = changed_inputs(inputs, image.inputs) or ["the interpreter"]
            status, detail = ImageStatus.STALE, f"changed since: {', '.join(changed)}"
        if found != image.image_id:
            status, detail = ImageStatus.MOVED, f"tag {image.tag} names {found or 'nothing'} instead"
        if find_image(self._engine, image.image_id) is None:
            status, detail = ImageStatus.MISSING, f"the engine has no {image.image_id[:19]}"
        return ImageState(role=role, status=status, locked=image.image_id, found=found, detail=detail)

    def _require(self, state: ImageState) -> None:
        if state.status is not ImageStatus.LOCKED:
            what = f"image {state.role!r} is {state.status.value} ({state.detail})"
            msg = f"{what}; run `evolvarium images build`"
            raise ImageMissing(msg)

    def _with_interpreter(
        self, lock: ImageLock, base: str | None, progress: Callable[[str], None], *, refresh: bool
    ) -> ImageLock:
        known = lock.interpreter
        reference = base or (known.reference if known else None)
        is_current = known is not None and known.inputs == interpreter_inputs(self._sources, reference)
        if known and is_current and not refresh and find_image(self._engine, known.image_id):
            return lock
        interpreter = build_interpreter(
            self._engine, self._sources, reference=reference, tag=self._tag("interpreter"), progress=progress
        )
        lock = lock.with_interpreter(interpreter)
        write_lock(self._home, lock)
        return lock

    def _with_image(self, lock: ImageLock, role: str, progress: Callable[[str], None]) -> ImageLock:
        state = self._state(lock, role)
        if state.status is ImageStatus.LOCKED:
            progress(f"image {role!r} is built already")
            return lock
        if lock.interpreter is None:
            msg = "no interpreter is locked"
            raise SandboxError(msg)
        interpreter = lock.interpreter
        old = lock.images.get(role)
        inputs = role_inputs(self._sources, role)
        if state.status is ImageStatus.MOVED and old and not _is_outdated(old, inputs, interpreter):
            progress(f"giving image {role!r} its tag back")
            tag_image(self._engine, old.image_id, old.tag)
            return lock
        progress(f"building image {role!r}")
        wheels = fetch_wheels(
            self._sources / role / "requirements.lock",
            python=interpreter.python,
            libc=interpreter.libc,
            machine=interpreter.machine,
        )
        image = build(self._engine, self._plan(role, interpreter, dict(wheels.files), inputs))
        tree = inspect_tree(self._engine, image)
        if tree.breaches:
            msg = f"image {role!r} breaks the rules of images: {describe(tree.breaches)}; use another base"
            raise SandboxError(msg)
        found = find_image(self._engine, image) or {}
        locked = LockedImage(
            image_id=image,
            tag=self._tag(role),
            tree_sha256=tree.sha256,
            size_bytes=int(found.get("Size", 0)),
            interpreter_id=interpreter.image_id,
            inputs=inputs,
            wheels=dict(wheels.digests),
            built_at=datetime.now(UTC),
        )
        tag_image(self._engine, image, locked.tag)
        lock = lock.with_image(role, locked)
        write_lock(self._home, lock)
        if old and old.image_id != image:
            self._discard(old.image_id)
        return lock

    def _plan(
        self, role: str, interpreter: Interpreter, packages: dict[str, bytes], inputs: dict[str, str]
    ) -> BuildPlan:
        directory = self._sources / role
        files = {"Dockerfile": (directory / "Dockerfile").read_bytes()}
        files |= {f"packages/{path}": content for path, content in packages.items()}
        files |= {f"runner/{path}": content for path, content in runner_files(self._sources, role).items()}
        return BuildPlan(
            what=f"image {role!r}",
            files=files,
            directories=() if role == "base" else ("packages",),
            arguments={"INTERPRETER": interpreter.image_id},
            labels={LABEL: role, f"{LABEL}.inputs": combined(inputs)},
        )

    def _tag(self, role: str) -> str:
        return f"{REPOSITORY}/{role}:{place_of(self._home)}"

    def _discard(self, image: str) -> None:
        """Remove an image that no tag names any more; another installation's tag keeps it."""
        found = find_image(self._engine, image)
        if found is None or found.get("RepoTags"):
            return
        with suppress(SandboxError):  # a container may still run it; then it stays
            self._engine.find(f"remove image {image[:19]}", lambda client: client.remove_image(image))


def _is_outdated(image: LockedImage, inputs: dict[str, str], interpreter: Interpreter) -> bool:
    return bool(changed_inputs(inputs, image.inputs)) or image.interpreter_id != interpreter.image_id
