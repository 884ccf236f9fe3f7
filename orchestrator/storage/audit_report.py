"""Walks an audit chain and says what is wrong with it, as data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from orchestrator.errors import InputError
from orchestrator.storage.signing import fingerprint, is_signed

GENESIS = "sha256:" + "0" * 64
"""What the first entry names as the hash before it."""
MAX_LINE_BYTES = 1 << 20
"""No entry is as long; a longer line is not read whole."""
CORE_FIELDS = ("index", "previous", "key", "record", "torn")
"""What the hash is over."""
_FIELDS = {*CORE_FIELDS, "hash", "signature"}
_HEAD = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


class Signatures(StrEnum):
    """State of the signatures of a chain."""

    VALID = "valid"
    INVALID = "invalid"
    NO_KEY = "no-key"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What a walk over the chain found."""

    records: int
    """Entries that verify, from the beginning up to the first that does not."""
    head: str | None
    """Hash of the last of them; None: there is none."""
    broken_index: int | None
    """Index of the first entry that does not verify; None: all do."""
    reason: str | None
    """Why it does not."""
    signatures: Signatures
    torn_bytes: int
    """Length of an unfinished last line: a crash in the middle of a write, whose container run was not acknowledged, or
    a cut of the last entry. Only an outside head tells them apart."""
    expected_head_found: bool | None
    """Whether the outside head is in the chain; None: none was given."""
    remarks: tuple[str, ...]
    """What the reader should know, in plain words."""

    @property
    def is_broken(self) -> bool:
        """Whether something contradicts the chain; without a public key it may be neither broken nor intact."""
        has_fault = self.broken_index is not None or self.signatures is Signatures.INVALID
        return has_fault or self.expected_head_found is False

    @property
    def is_intact(self) -> bool:
        """Whether there are records and nothing contradicts them, as far as this can be seen from what was given."""
        return not self.is_broken and self.signatures is Signatures.VALID


class ChainWalk:
    """Checks one line after the other."""

    def __init__(self, key: Ed25519PublicKey | None, expected_head: str | None, *, has_lost_file: bool = False) -> None:
        """Start before the first line.

        Args:
            key: None: it is missing or unreadable.
            expected_head: As `parse_head` gives it; None: none is kept elsewhere.
            has_lost_file: There is no chain where its keys are; the first one is written right after them.
        """
        self._key = key
        self._has_lost_file = has_lost_file
        self._expected_head = expected_head
        self._found = False
        self._count = 0
        self._previous = GENESIS
        self._reason = "the chain is missing, although its keys are there: it was removed" if has_lost_file else None
        self._bad_signature = False
        self._torn_bytes = 0

    def step(self, line: bytes) -> bool:
        """Check the next line; whether to go on."""
        if not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
            self._torn_bytes = len(line)
            return False
        entry = _parse(line)
        self._reason = self._fault(entry, line)
        if entry is None or self._reason is not None:
            return False
        self._count += 1
        self._previous = entry["hash"]
        self._found = self._found or self._previous == self._expected_head
        return True

    def report(self) -> AuditReport:
        """What was found."""
        return AuditReport(
            records=self._count,
            head=self._previous if self._count else None,
            broken_index=None if self._reason is None else self._count,
            reason=self._reason,
            signatures=self._signatures(),
            torn_bytes=self._torn_bytes,
            expected_head_found=None if self._expected_head is None else self._found,
            remarks=tuple(self._remarks()),
        )

    def _fault(self, entry: Mapping[str, Any] | None, line: bytes) -> str | None:
        if entry is None or set(entry) != _FIELDS or canonical(entry) + b"\n" != line:
            return "it is not an entry in canonical form"
        if entry["index"] != self._count:
            return f"its index is {entry['index']!r}: entries were removed, added or moved"
        if entry["previous"] != self._previous:
            return "it does not name the hash of the entry before it"
        if entry["hash"] != entry_hash(entry):
            return "its content differs from its hash"
        if not self._is_signed(entry):
            self._bad_signature = True
            return "its signature is not by the key in public.pem"
        return None

    def _is_signed(self, entry: Mapping[str, Any]) -> bool:
        if self._key is None:
            return True  # unknown, which the report says
        if entry["key"] != fingerprint(self._key):
            return False
        return is_signed(self._key, entry["hash"], str(entry["signature"]))

    def _signatures(self) -> Signatures:
        if self._bad_signature:
            return Signatures.INVALID
        if not self._count and (self._reason is None or self._has_lost_file):
            return Signatures.EMPTY
        return Signatures.NO_KEY if self._key is None else Signatures.VALID

    def _remarks(self) -> list[str]:
        remarks = []
        if not self._count and self._reason is None:
            remarks.append(
                "there is no chain to examine: no container has run in this home yet, or all its records were removed"
            )
        if self._expected_head is None:
            remarks.append("no outside head was given: entries cut off at the end cannot be detected")
        elif not self._found:
            remarks.append(f"the outside head {self._expected_head} is not in the chain: it was cut off or rewritten")
        if self._torn_bytes:
            remarks.append(
                f"the last line is unfinished ({self._torn_bytes} bytes): a crash while writing, or a cut of the last "
                "record; only an outside head of after that record tells them apart"
            )
        if self._key is None and self._count:
            remarks.append("public.pem is missing or unreadable: the signatures were not checked")
        return remarks


def parse_head(text: str) -> str:
    """The hash of a head that was kept elsewhere, with or without `sha256:` before it.

    Raises:
        InputError: The text is no such hash, so it says nothing of any chain.
    """
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        msg = (
            f"{text[:80]!r} is no head of an audit chain; give the `head` that `evolvarium audit head` printed, "
            "`sha256:` and 64 hex digits"
        )
        raise InputError(msg)
    return f"sha256:{match[1].lower()}"


def canonical(value: Mapping[str, Any]) -> bytes:
    """The one way to write a JSON object: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def entry_hash(entry: Mapping[str, Any]) -> str:
    """`sha256:` and 64 hex digits over the core of an entry."""
    core = {name: entry[name] for name in CORE_FIELDS}
    return "sha256:" + hashlib.sha256(canonical(core)).hexdigest()


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
