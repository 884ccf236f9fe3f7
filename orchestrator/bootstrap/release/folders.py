"""Exported packages on the disk: written whole, and read back only if every byte is what the manifest says."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.candidates import MAX_FILES, MAX_TREE_BYTES
from orchestrator.domain.releases import (
    APPROVALS,
    MANIFEST,
    PACKAGE_FOLDER,
    Approval,
    ReleaseManifest,
    is_exported,
)
from orchestrator.errors import InputError
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.user_files import kind_at, read_tree, write_file

_MAX_BYTES = MAX_TREE_BYTES + (32 << 20)
_MAX_FILES = MAX_FILES + 64
_APPROVALS = TypeAdapter(list[Approval])
_AGAIN = "get it again from whoever exported it, or export it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An exported package whose files are what its manifest says."""

    folder: Path
    manifest: ReleaseManifest
    package: AgentPackage
    approvals: tuple[Approval, ...]
    """As they stand in the folder; whether they count is for the policy to say."""


def require_room(folder: Path, *, force: bool) -> None:
    """See that a package may be written into a folder, before any work is done.

    Args:
        folder: Need not be there.
        force: Whether a package that is there, whole or not, may be replaced.

    Raises:
        InputError: It holds files that may not be replaced, or cannot be looked into.
    """
    try:
        stranger = next((name for name in _names(folder) if not (force and is_exported(name))), None)
    except OSError as error:
        raise _unwritten(folder, error) from error
    if stranger is None:
        return
    if force:
        msg = f"{str(folder)!r} holds {stranger!r}, which is no part of an exported package; choose another folder"
        raise InputError(msg)
    msg = f"{str(folder)!r} is not empty; choose another folder, or replace the package in it with --force"
    raise InputError(msg)


def write_release(folder: Path, manifest: ReleaseManifest, files: Mapping[str, bytes], *, force: bool) -> None:
    """Write everything, the manifest last; a package that was there is gone before, with its approvals.

    Args:
        folder: Where to; made.
        manifest: Names all files.
        files: Path in the folder to content.
        force: As for `require_room`.

    Raises:
        InputError: As `require_room`, or it cannot be written; nothing is left of the attempt.
    """
    require_room(folder, force=force)
    begun: list[Path] = []
    try:
        for name in sorted(_names(folder), key=lambda name: name != MANIFEST):  # what is half gone is no package
            (folder / name).unlink()
        for path, content in {**files, MANIFEST: manifest.content()}.items():
            begun.append(folder / path)
            write_file(folder / path, content, overwrite=False)
    except OSError as error:
        for place in reversed(begun):
            with suppress(OSError):
                place.unlink()
        raise _unwritten(folder, error) from error


def read_release(folder: Path) -> Release:
    """An exported package.

    Raises:
        InputError: It cannot be read, or a file is missing, was added or was changed; the message names it.
    """
    try:
        files = read_tree(folder, max_files=_MAX_FILES, max_bytes=_MAX_BYTES)
        unread = next((name for name in _names(folder) if name not in files), None)
    except OSError as error:
        msg = f"cannot read the package {str(folder)!r}: {error.strerror or error}; give a folder made by `export`"
        raise InputError(msg) from error
    approvals = _approvals(folder, files.pop(APPROVALS, b"[]"))
    if MANIFEST not in files:
        msg = f"{str(folder)!r} holds no {MANIFEST}, so it is no exported package; `evolvarium export RUN` makes one"
        raise InputError(msg)
    manifest = _manifest(folder, files.pop(MANIFEST))
    found = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    if unread is not None:
        found[unread] = ""
    for path in sorted({*found, *manifest.files}):
        if found.get(path) != manifest.files.get(path):
            what = "is missing" if path not in found else "was added" if path not in manifest.files else "was changed"
            msg = f"package {str(folder)!r}: {path!r} {what} since it was exported; {_AGAIN}"
            raise InputError(msg)
    return Release(folder=folder, manifest=manifest, package=_package(folder, manifest, files), approvals=approvals)


def add_approval(release: Release, approval: Approval) -> None:
    """Write an approval beside those of other keys; what is of another manifest, or of the same key, is left out.

    Raises:
        InputError: It cannot be written; those that were there stay.
    """
    kept = [
        one for one in release.approvals if one.manifest == approval.manifest and one.public_key != approval.public_key
    ]
    documents = [one.model_dump(mode="json") for one in (*kept, approval)]
    place = release.folder / APPROVALS
    draft = place.with_name(f".{APPROVALS}.{secrets.token_hex(8)}")
    try:
        try:
            write_file(draft, (json.dumps(documents, indent=2) + "\n").encode(), overwrite=False)
            draft.replace(place)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or error
        msg = f"cannot write the approval into {str(release.folder)!r}: {reason}; check permissions and disk space"
        raise InputError(msg) from error


def _names(folder: Path) -> Iterator[str]:
    """Of everything below a folder but folders, links to some included; none: it is not there."""
    if not kind_at(folder):
        return
    for root, folders, files in os.walk(folder, onerror=_stop):
        links = [name for name in folders if Path(root, name).is_symlink()]
        yield from (os.path.relpath(Path(root, name), folder) for name in sorted((*links, *files)))


def _stop(error: OSError) -> None:
    raise error


def _unwritten(folder: Path, error: OSError) -> InputError:
    msg = f"cannot write the package into {str(folder)!r}: {error.strerror or error}; choose another folder"
    return InputError(msg)


def _manifest(folder: Path, content: bytes) -> ReleaseManifest:
    try:
        manifest = ReleaseManifest.model_validate_json(content)
    except ValidationError as error:
        msg = f"{folder / MANIFEST}: {complaint(error.errors(include_url=False)[0])}; {_AGAIN}"
        raise InputError(msg) from error
    if manifest.content() != content:
        msg = f"{folder / MANIFEST} was changed since it was exported; {_AGAIN}"
        raise InputError(msg)
    return manifest


def _package(folder: Path, manifest: ReleaseManifest, files: Mapping[str, bytes]) -> AgentPackage:
    prefix = f"{PACKAGE_FOLDER}/"
    mine = {path.removeprefix(prefix): content for path, content in files.items() if path.startswith(prefix)}
    try:
        package = AgentPackage.load(mine)
    except InputError as error:
        msg = f"package {str(folder)!r}: {error}"
        raise InputError(msg) from error
    if package.digest != manifest.package:
        msg = (
            f"package {str(folder)!r}: the manifest names {manifest.package}, the files give {package.digest}; {_AGAIN}"
        )
        raise InputError(msg)
    return package


def _approvals(folder: Path, content: bytes) -> tuple[Approval, ...]:
    try:
        return tuple(_APPROVALS.validate_json(content))
    except ValidationError as error:
        msg = f"{folder / APPROVALS}: {complaint(error.errors(include_url=False)[0])}; remove it, and approve again"
        raise InputError(msg) from error
