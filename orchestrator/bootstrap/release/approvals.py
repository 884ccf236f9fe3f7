"""Named approvals of exported packages: signed words that a policy may ask for."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ValidationError

from orchestrator.bootstrap.release.folders import Release, add_approval, read_release
from orchestrator.domain.policies import Policy
from orchestrator.domain.releases import NAME_PATTERN, Approval
from orchestrator.errors import InputError, PolicyError, PrerequisiteError
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.user_files import kind_at
from orchestrator.storage.signing import load_private_key

_UNSIGNED = base64.b64encode(bytes(64)).decode()
_NAME = "must be a name of 1 to 64 letters, digits, spaces and `._@-`, with a letter or digit at both ends"


def public_key_of(key_file: Path) -> str:
    """The public half of a key, as policies name it.

    Raises:
        PrerequisiteError: There is none, it cannot be read, others may read it, or it is of another kind.
    """
    return _public(_load_key(key_file))


def approve(folder: Path, *, by: str, note: str, key_file: Path) -> Approval:
    """Sign a package and write that beside it.

    Args:
        folder: Of the exported package.
        by: The approver's name.
        note: For people.
        key_file: The approver's Ed25519 key, a PEM file with mode 0600.

    Raises:
        InputError: It is no intact package, cannot be written, or name or note cannot be.
        PrerequisiteError: The key cannot be used, as `public_key_of`.
    """
    release = read_release(folder)
    key = _load_key(key_file)
    try:
        unsigned = Approval(
            by=by,
            at=datetime.now(tz=UTC).isoformat(timespec="seconds"),
            note=note,
            manifest=release.manifest.digest,
            public_key=_public(key),
            signature=_UNSIGNED,
        )
    except ValidationError as error:
        msg = complaint(error.errors(include_url=False)[0], {NAME_PATTERN: _NAME})
        raise InputError(msg) from error
    signature = base64.b64encode(key.sign(unsigned.signed_bytes())).decode()
    approval = unsigned.model_copy(update={"signature": signature})
    add_approval(release, approval)
    return approval


def counting_approvals(release: Release, policy: Policy) -> tuple[Approval, ...]:
    """Approvals that a policy counts: of this manifest, signed with the key of an approver it names; one of each."""
    names = {approver.public_key: approver.name for approver in policy.release.approvers}
    found: dict[str, Approval] = {}
    for approval in release.approvals:
        is_known = names.get(approval.public_key) == approval.by
        if is_known and approval.manifest == release.manifest.digest and _is_signed(approval):
            found.setdefault(approval.public_key, approval)
    return tuple(found.values())


def require_approval(release: Release, policy: Policy) -> tuple[Approval, ...]:
    """The approvals that let a package answer; none where the policy asks for none.

    Raises:
        PolicyError: There are too few.
    """
    counting = counting_approvals(release, policy)
    wanted = policy.release.approvals
    if len(counting) < wanted:
        names = ", ".join(approver.name for approver in policy.release.approvers)
        msg = (
            f"policy {policy.name!r} asks for {wanted} approvals of package {release.manifest.name!r}, and "
            f"{len(counting)} of those in {str(release.folder)!r} count; {names} can give one with `evolvarium approve`"
        )
        raise PolicyError(msg)
    return counting


def _is_signed(approval: Approval) -> bool:
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(approval.public_key))
    try:
        key.verify(base64.b64decode(approval.signature), approval.signed_bytes())
    except InvalidSignature:
        return False
    return True


def _public(key: Ed25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def _load_key(path: Path) -> Ed25519PrivateKey:
    try:
        is_there = kind_at(path) != 0
    except OSError:
        is_there = True  # and loading it says what is wrong
    if not is_there:
        msg = (
            f"there is no key {str(path)!r}; `evolvarium doctor` makes that of a home, and "
            "`openssl genpkey -algorithm ed25519 -out FILE` one for --key (mode 0600)"
        )
        raise PrerequisiteError(msg)
    return load_private_key(path)
