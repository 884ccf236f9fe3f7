"""What the images are made from, by digest: the way to tell that one is out of date."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import ImageMissing
from orchestrator.sandbox import image_rootfs, image_tree, image_wheels

SOURCES = Path(__file__).resolve().parents[2] / "sandbox_images"
INTERPRETER_FILE = "interpreter.Dockerfile"
TAKEN = {"tool": {"analysis": ("processes.py",)}}
"""Modules that a role's image takes from another one's runner, beside those that all take from `base`."""


def role_inputs(sources: Path, role: str) -> dict[str, str]:
    """Name to SHA-256 hex digest of what one role's image adds to the interpreter.

    Raises:
        ImageMissing: There is no such image.
    """
    directory = sources / role
    inputs = {
        "runner": file_digests(runner_files(sources, role)),
        "Dockerfile": _sha256(directory / "Dockerfile"),
        "image_tree.py": _sha256(Path(image_tree.__file__)),  # the rules it was checked against
    }
    if (directory / "requirements.lock").is_file():
        inputs["requirements.lock"] = _sha256(directory / "requirements.lock")
        inputs["image_wheels.py"] = _sha256(Path(image_wheels.__file__))  # what it leaves out of a wheel counts too
    return inputs


def interpreter_inputs(sources: Path, reference: str | None) -> dict[str, str]:
    """The same for the interpreter; `reference` as in `image_lock.Interpreter`."""
    inputs = {name: _sha256(sources / "base" / name) for name in (INTERPRETER_FILE, "prepare.py")}
    if reference is None:
        return {**inputs, "image_rootfs.py": _sha256(Path(image_rootfs.__file__))}
    return {**inputs, "reference": hashlib.sha256(reference.encode()).hexdigest()}


def changed_inputs(now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    """Names of what was added, removed or changed."""
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def runner_files(sources: Path, role: str) -> dict[str, bytes]:
    """The runner of an image: the shared modules of `base`, what it takes from others, and its own, which come first.

    Raises:
        ImageMissing: The image has no runner.
    """
    files = _modules(sources, "base")
    for other, names in TAKEN.get(role, {}).items():
        modules = _modules(sources, other)
        files |= {name: modules[name] for name in names}
    files |= _modules(sources, role)
    if not (sources / role / "runner" / "__main__.py").is_file():
        msg = f"no image {role!r}: {sources / role / 'runner' / '__main__.py'} does not exist"
        raise ImageMissing(msg)
    return files


def _modules(sources: Path, role: str) -> dict[str, bytes]:
    directory = sources / role / "runner"
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in sorted(directory.rglob("*.py"))}


def file_digests(files: Mapping[str, bytes]) -> str:
    """SHA-256 over paths and contents."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path}\0{hashlib.sha256(files[path]).hexdigest()}\n".encode())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
