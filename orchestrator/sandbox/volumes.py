"""Data in volumes, found by the digest of its content, complete or not found at all.

Volumes can be neither renamed nor relabelled, and a volume that is being filled must never be taken for a full one. So
the data goes into a volume with a random name, and once its content has been read back and has the right digest, an
empty *index* volume is made whose name is the digest and whose label says where the data is. Creating a volume under a
name that exists returns the existing one unchanged, labels included: of two that fill at once, the first index counts
and the other one's data is removed. A crash before the index leaves data that nothing points to, which the sweep
removes.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping

from orchestrator.domain.candidates import check_path
from orchestrator.domain.frames import Frame
from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.leases import Lease
from orchestrator.sandbox.owners import DATA_KIND, DIGEST, HOLDER, INDEX_KIND, KIND, Owner

PIECE_BYTES = 4 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Volumes:
    """The data volumes of one engine. Thread-safe."""

    def __init__(self, engine: Engine, owner: Owner, lease: Lease) -> None:
        """Look on `engine`, and create in the name of `owner`."""
        self._engine = engine
        self._owner = owner
        self._lease = lease

    def find(self, digest: str) -> str | None:
        """Name of the volume that holds this content; None: none does.

        Raises:
            SandboxError: The engine failed, or `digest` is none.
        """
        index = self._engine.volume(_index_name(digest))
        if index is None:
            return None
        holder = str((index.get("Labels") or {}).get(HOLDER, ""))
        if self._is_data(holder, digest):
            return holder
        self._engine.remove_volume(_index_name(digest))  # somebody removed the data
        return None

    def new(self, digest: str) -> str:
        """A fresh, empty volume for this content; give it to `publish` or `discard`."""
        name = f"evolvarium-data-{secrets.token_hex(12)}"
        labels = self._owner.labels(DATA_KIND, self._lease.until) | {DIGEST: digest}
        self._engine.create_volume(name, labels)
        return name

    def publish(self, name: str, digest: str) -> None:
        """Let a volume, whose content has been verified, be found; it is removed if another one was first.

        Raises:
            SandboxError: The engine failed.
        """
        labels = self._owner.labels(INDEX_KIND, self._lease.until) | {DIGEST: digest, HOLDER: name}
        index = self._engine.create_volume(_index_name(digest), labels)
        if (index.get("Labels") or {}).get(HOLDER) != name:
            self.discard(name)

    def discard(self, name: str) -> None:
        """Remove a volume that was not published."""
        self._engine.remove_volume(name)

    def check(self, name: str, digest: str) -> None:
        """Make sure, after a container has been made, that it did not get an empty volume of the same name.

        The engine makes a missing volume up without a word, for instance when somebody pruned in between.

        Raises:
            SandboxError: It did.
        """
        if not self._is_data(name, digest):
            msg = f"the volume {name} of {digest} was removed meanwhile; import the data again"
            raise SandboxError(msg)

    def _is_data(self, name: str, digest: str) -> bool:
        labels = (self._engine.volume(name) or {}).get("Labels") or {} if name else {}
        return labels.get(KIND) == DATA_KIND and labels.get(DIGEST) == digest


def content_digest(files: Mapping[str, bytes]) -> str:
    """`sha256:` and 64 hex digits over the manifest of relative paths and content digests, as the importer computes it.

    Raises:
        InputError: A path is not allowed.
    """
    manifest = {check_path(path): hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def import_frames(files: Mapping[str, bytes]) -> Iterator[Frame]:
    """The frames that put files into a volume; empty files are one empty piece."""
    for path in sorted(files):
        content = memoryview(files[path])
        for offset in range(0, max(1, len(content)), PIECE_BYTES):
            head = {"type": "file", "path": path, "offset": offset, "size": len(content)}
            yield Frame(head, bytes(content[offset : offset + PIECE_BYTES]))
    yield Frame({"type": "finish"})


def _index_name(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        msg = f"{digest!r} is no digest of a volume; use what `import_volume` returned"
        raise SandboxError(msg)
    return f"evolvarium-{digest.replace(':', '-')}"
