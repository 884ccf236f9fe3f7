"""Ed25519 keys (RFC 8032): the installation's, which signs the audit chain, and those of people who approve."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from orchestrator.errors import AuditError


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWords:
    """How messages call a key, and what its owner can do about it."""

    name: str
    if_seen: str
    """Others may have read it."""
    if_none: str
    """The file holds no key."""


AUDIT_KEY = KeyWords(
    name="the audit key",
    if_seen="make a new home, or `chmod 600` it",
    if_none="restore it from a copy, or move the audit folder aside",
)
PERSONAL_KEY = KeyWords(
    name="the key",
    if_seen="`chmod 600` it, or make another one if somebody has read it, and name that in the policy",
    if_none="give the file that `openssl genpkey -algorithm ed25519 -out FILE` makes",
)


def load_private_key(path: Path, words: KeyWords = AUDIT_KEY) -> Ed25519PrivateKey:
    """The key in a PEM file that only its owner can read.

    Args:
        path: Of the file.
        words: For messages.

    Raises:
        AuditError: It cannot be read, others may read it, or it holds no such key.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor).st_mode
            pem = file.read(4096) if stat.S_ISREG(found) else b""
    except OSError as error:
        msg = f"cannot read {words.name} {path}: {error.strerror}"
        raise AuditError(msg) from error
    if found & 0o077:
        mode = f"{stat.S_IMODE(found):04o}"
        msg = f"{words.name} {path} has mode {mode}, so others may have it; {words.if_seen}"
        raise AuditError(msg)
    try:
        key = load_pem_private_key(pem, password=None)
    except ValueError as error:
        raise AuditError(_no_key(path, words)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise AuditError(_no_key(path, words))
    return key


def make_private_key(path: Path) -> Ed25519PrivateKey:
    """A new key, durable at `path` with mode 0600; the caller holds a lock, so nobody else makes one.

    Raises:
        AuditError: It cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    write_durably(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)
    return key


def write_durably(path: Path, content: bytes, *, mode: int) -> None:
    """Put a whole file in place or none, with its mode set from the beginning.

    Raises:
        AuditError: It cannot be written.
    """
    draft = path.with_name(path.name + ".draft")
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror}; check the folder's permissions and the free disk space"
        raise AuditError(msg) from error


def public_pem(key: Ed25519PrivateKey) -> bytes:
    """The public half, to hand out."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: Ed25519PublicKey) -> str:
    """`sha256:` and 64 hex digits over the 32 bytes of a public key."""
    return "sha256:" + hashlib.sha256(key.public_bytes_raw()).hexdigest()


def load_public_key(pem: bytes) -> Ed25519PublicKey | None:
    """The key in a PEM text, or None if it holds no such key."""
    try:
        key = load_pem_public_key(pem)
    except ValueError:
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def sign(key: Ed25519PrivateKey, digest: str) -> str:
    """Base64 of the signature over a digest's text."""
    return base64.b64encode(key.sign(digest.encode())).decode()


def is_signed(key: Ed25519PublicKey, digest: str, signature: str) -> bool:
    """Whether the signature is the key's over this digest's text."""
    try:
        key.verify(base64.b64decode(signature, validate=True), digest.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _no_key(path: Path, words: KeyWords) -> str:
    return f"{path} holds no Ed25519 private key in PEM; {words.if_none}"
