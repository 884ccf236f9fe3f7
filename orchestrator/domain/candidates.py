"""A candidate: a content-addressed tree of files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from orchestrator.errors import InputError

MAX_FILES = 64
MAX_FILE_BYTES = 1 << 20
MAX_TREE_BYTES = 4 << 20
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def check_path(path: str) -> str:
    """Return `path` if it is a safe relative POSIX path.

    Raises:
        InputError: The path is empty, absolute, too deep, or holds anything but letters, digits, `_`, `.` and `-`.
    """
    segments = path.split("/")
    if len(segments) > 8 or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        msg = f"file path {path!r} is not allowed; use relative names of letters, digits, '_', '.' and '-'"
        raise InputError(msg)
    return path


def _parents(path: str) -> Iterator[str]:
    segments = path.split("/")
    return ("/".join(segments[:depth]) for depth in range(1, len(segments)))


@dataclass(frozen=True, slots=True)
class FileTree(Mapping[str, bytes]):
    """Files by relative path, byte for byte; equal trees have equal digests.

    Raises:
        InputError: A path is not allowed or lies in a file, or the tree is over 64 files, 1 MiB a file or 4 MiB in all.
    """

    files: Mapping[str, bytes]
    digest: str = field(init=False)
    """`sha256:` and 64 hex digits over the manifest."""

    def __post_init__(self) -> None:
        """Check the bounds once and freeze."""
        ordered = {check_path(path): bytes(self.files[path]) for path in sorted(self.files)}
        if len(ordered) > MAX_FILES or sum(map(len, ordered.values())) > MAX_TREE_BYTES:
            msg = f"a candidate holds at most {MAX_FILES} files and {MAX_TREE_BYTES} bytes, got {len(ordered)} files"
            raise InputError(msg)
        for path, content in ordered.items():
            if len(content) > MAX_FILE_BYTES:
                msg = f"{path!r} has {len(content)} bytes, at most {MAX_FILE_BYTES} are allowed"
                raise InputError(msg)
            folder = next((parent for parent in _parents(path) if parent in ordered), None)
            if folder is not None:
                msg = f"{folder!r} cannot be a file, since {path!r} lies in it; rename one of them"
                raise InputError(msg)
        object.__setattr__(self, "files", MappingProxyType(ordered))
        canonical = json.dumps(self.manifest(), sort_keys=True, separators=(",", ":")).encode()
        object.__setattr__(self, "digest", "sha256:" + hashlib.sha256(canonical).hexdigest())

    def manifest(self) -> dict[str, str]:
        """Path to the SHA-256 hex digest of its content."""
        return {path: hashlib.sha256(content).hexdigest() for path, content in self.files.items()}

    def __getitem__(self, path: str) -> bytes:
        return self.files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTree) and self.digest == other.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One proposal."""

    id: str
    """Within its run, for instance `i1-c07`; `initial` for the initial program."""
    payload: FileTree
    parents: tuple[str, ...] = ()
    """Ids of the candidates it was made from, as far as known."""
    description: str = ""
    """The author's words; untrusted text."""
