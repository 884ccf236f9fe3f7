"""The installation's secret, and the seeds of hidden splits that follow from it.

Agents have tried to rebuild hidden instances by scanning seeds, so a seed in a repository is no secret. Each
installation draws its own 128 bits once. `--public-seed` uses a published key instead, for results that others can
compare; verdicts then say that they are not secret.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from orchestrator.errors import PrerequisiteError
from orchestrator.evaluation.private import private_folder, read_private, write_private

KEY_FILE = "installation.seed"
KEY_BYTES = 16
_PUBLIC_KEY = hashlib.sha256(b"evolvarium public seed 1").digest()[:KEY_BYTES]
_PURPOSE = b"evolvarium/split-seed/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSource:
    """Gives every task and split its own seed."""

    key: bytes = field(repr=False)
    """128 bits."""
    is_secret: bool
    """Whether nobody outside this installation can know the key."""

    @classmethod
    def public(cls) -> Self:
        """The published key, the same everywhere."""
        return cls(key=_PUBLIC_KEY, is_secret=False)

    @classmethod
    def installation(cls, home: Path) -> Self:
        """The key in `home`, drawn at random on the first call.

        Raises:
            PrerequisiteError: The file is damaged, or somebody else may read or has written it.
        """
        path = private_folder(home / "secrets") / KEY_FILE
        if read_private(path, 64) is None:
            write_private(path, secrets.token_bytes(KEY_BYTES).hex().encode() + b"\n")
        content = read_private(path, 64) or b""
        try:
            key = bytes.fromhex(content.decode("ascii"))
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            msg = f"{str(path)!r} does not hold {2 * KEY_BYTES} hex digits; restore it, or remove it to draw another"
            raise PrerequisiteError(msg)
        return cls(key=key, is_secret=True)

    def seed(self, task: str, split: str) -> int:
        """128 bits that tell nothing of the key or of another split's seed (HMAC-SHA-256)."""
        message = b"\0".join([_PURPOSE, task.encode(), split.encode()])
        return int.from_bytes(hmac.digest(self.key, message, "sha256")[:KEY_BYTES])
