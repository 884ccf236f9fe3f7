"""The file tree of an image: its digest, and the rules it must keep."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

_KINDS = {tarfile.REGTYPE: "file", tarfile.AREGTYPE: "file", tarfile.DIRTYPE: "dir", tarfile.SYMTYPE: "link"}
# The engine puts these into every container's export; they are no part of the image.
_ENGINES_OWN = {".dockerenv", "etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf"}
_VIRTUAL = ("dev", "proc", "sys")
WORLD_WRITABLE = frozenset({"target"})
"""The one place that others may write: an engine copies its mode to the volume that an import fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What was found in an image."""

    sha256: str
    breaches: tuple[str, ...]
    """What no image may hold, each as `path: reason`."""


def read_tree(stream: IO[bytes]) -> Tree:
    """Digest and check a container's export, read once from beginning to end."""
    lines: list[str] = []
    breaches: list[str] = []
    hard_links: dict[str, str] = {}
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            path = member.name.removeprefix("./").strip("/")
            if path in ("", ".") or path in _ENGINES_OWN or path.split("/")[0] in _VIRTUAL:
                continue
            breaches += [f"/{path}: {reason}" for reason in breaches_of(path, member)]
            content = _digest(archive, member) if member.isfile() else hard_links.get(member.linkname, "")
            hard_links[member.name] = content
            kind = "file" if member.islnk() else _KINDS.get(member.type, "special")
            target = member.linkname if member.issym() else content
            mode = 0 if member.issym() else member.mode & 0o7777
            lines.append(f"{path}\0{kind}\0{mode:o}\0{member.uid}\0{member.gid}\0{target}\n")
    return Tree(sha256=hashlib.sha256("".join(sorted(lines)).encode()).hexdigest(), breaches=tuple(breaches))


def breaches_of(path: str, member: tarfile.TarInfo) -> Iterator[str]:
    """Why an entry may not be in an image."""
    if member.isdev():
        yield "is a device or a pipe"
    if member.uid != 0:
        yield f"belongs to user {member.uid}, not to root"
    if member.mode & 0o6000:
        yield f"has mode {member.mode:o}: set-user-id or set-group-id"
    if member.mode & 0o022 and not member.issym() and path not in WORLD_WRITABLE:
        yield f"has mode {member.mode:o}: others than root may write it"


def describe(breaches: tuple[str, ...]) -> str:
    """The first few breaches, and how many more there are."""
    more = f" and {len(breaches) - 3} more" if len(breaches) > 3 else ""
    return "; ".join(breaches[:3]) + more


def _digest(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    handle = archive.extractfile(member)
    digest = hashlib.sha256()
    while handle is not None and (block := handle.read(1 << 20)):
        digest.update(block)
    return digest.hexdigest()
