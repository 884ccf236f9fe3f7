"""Named approvals of exported packages: signed words that a policy may ask for."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
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
from orchestrator.runtime.counts import counted
from orchestrator.runtime.user_files import kind_at
from orchestrator.storage.signing import AUDIT_KEY, PERSONAL_KEY, load_private_key

_SHOWN = 5
_UNSIGNED = base64.b64encode(bytes(64)).decode()
_NAME = "must be a name of 1 to 64 letters, digits, spaces and `._@-`, with a letter or digit at both ends"


def public_key_of(key_file: Path, *, is_homes: bool = False) -> str:
    """The public half of a key, as policies name it.

    Args:
        key_file: A PEM file with mode 0600.
        is_homes: Whether it is the key that signs a home's audit chain; for messages.

    Raises:
        PrerequisiteError: There is none, it cannot be read, others may read it, or it is of another kind.
    """
    return _public(_load_key(key_file, is_homes=is_homes))


def approve(folder: Path, *, by: str, note: str, key_file: Path, is_homes: bool = False) -> Approval:
    """Sign a package and write that beside it.

    Args:
        folder: Of the exported package.
        by: The approver's name.
        note: For people.
        key_file: The approver's Ed25519 key, a PEM file with mode 0600.
        is_homes: As for `public_key_of`.

    Raises:
        InputError: It is no intact package, cannot be written, or name or note cannot be.
        PrerequisiteError: The key cannot be used, as `public_key_of`.
    """
    release = read_release(folder)
    key = _load_key(key_file, is_homes=is_homes)
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
    found: dict[str, Approval] = {}
    for approval in release.approvals:
        if not _flaws(approval, release, policy):
            found.setdefault(approval.public_key, approval)
    return tuple(found.values())


def require_approval(release: Release, policy: Policy) -> tuple[Approval, ...]:
    """The approvals that let a package answer; none where the policy asks for none.

    Raises:
        PolicyError: There are too few; the message says of each that is there and does not count why that is.
    """
    counting = counting_approvals(release, policy)
    wanted = policy.release.approvals
    if len(counting) < wanted:
        given = {approval.public_key for approval in counting}
        others = (approver.name for approver in policy.release.approvers if approver.public_key not in given)
        asked = f"policy {policy.name!r} asks for {counted(wanted, 'approval')} of package {release.manifest.name!r}"
        parts = [
            f"{asked}, and {_counting(len(counting), release)}",
            *_uncounted(release, policy),
            f"{', '.join(others)} can give one with `evolvarium approve`",
        ]
        raise PolicyError("; ".join(parts))
    return counting


def _counting(count: int, release: Release) -> str:
    folder = repr(str(release.folder))
    if not release.approvals:
        return f"{folder} has none"
    return f"{count} of the {len(release.approvals)} in {folder} {'counts' if count == 1 else 'count'}"


def _uncounted(release: Release, policy: Policy) -> Iterator[str]:
    """Of each approval that does not count, why; the same is said once."""
    said = Counter(
        f"that by {approval.by!r} does not count: {', and '.join(flaws)}"
        for approval in release.approvals
        if (flaws := _flaws(approval, release, policy))
    )
    for text, count in list(said.items())[:_SHOWN]:
        yield text if count == 1 else f"{text} (there {counted(count, 'time')})"
    if len(said) > _SHOWN:
        yield f"{len(said) - _SHOWN} more do not count either"


def _flaws(approval: Approval, release: Release, policy: Policy) -> tuple[str, ...]:
    """Why an approval does not count; none: it does, unless its approver has given another one."""
    name_of = {approver.public_key: approver.name for approver in policy.release.approvers}
    name = name_of.get(approval.public_key)
    found: list[str] = []
    if approval.manifest != release.manifest.digest:
        found.append(f"it is of another manifest ({approval.manifest[:19]}, this is {release.manifest.digest[:19]})")
    if name is None:
        named = "names another key for" if approval.by in name_of.values() else "does not name"
        found.append(f"its key {approval.public_key} is unknown to the policy, which {named} {approval.by!r}")
    elif name != approval.by:
        found.append(f"the policy names its key {name!r}, so it had to be given with --by {name!r}")
    if not _is_signed(approval):
        found.append("its signature is broken, so it was changed since it was given")
    return tuple(found)


def _is_signed(approval: Approval) -> bool:
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(approval.public_key))
    try:
        key.verify(base64.b64decode(approval.signature), approval.signed_bytes())
    except InvalidSignature:
        return False
    return True


def _public(key: Ed25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def _load_key(path: Path, *, is_homes: bool) -> Ed25519PrivateKey:
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
    return load_private_key(path, AUDIT_KEY if is_homes else PERSONAL_KEY)
