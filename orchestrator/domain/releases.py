"""A package that has left its run: what it is, what it was chosen by, and who approved of it."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE, MANIFEST_FILE, REASONING_FILE, is_tool_file
from orchestrator.domain.written_settings import WrittenSettings

MANIFEST = "manifest.json"
APPROVALS = "approvals.json"
AUDIT = "audit.json"
SBOM = "sbom.cdx.json"
LICENCES = "LICENCES.md"
README = "README.md"
PACKAGE_FOLDER = "package"
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
NAME_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,62}[A-Za-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class Approver(WrittenSettings):
    """Somebody whose word counts, known by a key."""

    name: Name
    """As approvals and messages name them."""
    public_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]
    """The 32 bytes of an Ed25519 key, in Base64, as `evolvarium approve --show-key` prints them."""

    @field_validator("public_key")
    @classmethod
    def _is_written_in_one_way(cls, public_key: str) -> str:
        """Base64 has four texts for 32 bytes, which would be four approvers."""
        written = base64.b64encode(base64.b64decode(public_key)).decode()
        if written != public_key:
            msg = f"the key is written as {written!r}"
            raise ValueError(msg)
        return public_key


class ReleaseRules(WrittenSettings):
    """Which exported packages may answer."""

    approvals: Annotated[int, Field(ge=0, le=16)] = 0
    """So many different approvers must have approved of a package; 0: none is asked for."""
    approvers: tuple[Approver, ...] = ()
    """Those whose approval counts; each has a name and a key of their own."""

    @model_validator(mode="after")
    def _approvers_are_different_and_enough(self) -> Self:
        for what in ("name", "public_key"):
            values = [getattr(approver, what) for approver in self.approvers]
            twice = next((value for value in values if values.count(value) > 1), None)
            if twice is not None:
                msg = f"two approvers have the {what} {twice!r}, so that one of them could count twice; remove one"
                raise ValueError(msg)
        if len(self.approvers) < self.approvals:
            msg = f"{self.approvals} approvals are asked for and {len(self.approvers)} approvers named; name more"
            raise ValueError(msg)
        return self


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReleasedImage(_Strict):
    """An image that the package's run used."""

    image_id: Digest
    tree_sha256: Sha256 | None
    """Equal file trees have equal digests, wherever they were built; null: when the package was exported, this image
    was no longer there."""


class Measured(_Strict):
    """Right answers on databases that played no part in making the package."""

    model: str
    right: Annotated[int, Field(ge=0)]
    questions: Annotated[int, Field(ge=1)]
    databases: tuple[str, ...]


class ReleaseManifest(_Strict):
    """What an exported package is; everything in its folder but approvals is named here with its digest."""

    format: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    """Id in its run."""
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    package: Digest
    """Of the package's content, `AgentPackage.digest`."""
    files: dict[str, Sha256]
    """Path in the folder to SHA-256, the package's own files below `package/`."""
    parents: tuple[str, ...]
    description: str
    """The evolver's words; untrusted."""
    iteration: Annotated[int, Field(ge=0)]
    models: dict[str, str]
    """Role to model, in the run."""
    answers: dict[str, Any]
    """Settings that questions were answered with, and are to be."""
    policy: dict[str, str]
    """Name and digest of the run's."""
    images: dict[str, ReleasedImage]
    """By role."""
    select: Measured
    """What it was chosen by."""
    final: tuple[Measured, ...]
    """Empty: the final databases have not been opened."""
    evolvarium: str
    """Version that exported it."""

    def content(self) -> bytes:
        """As `manifest.json`; equal manifests have equal bytes."""
        return (json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True) + "\n").encode()

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over the content: what an approval is of."""
        return "sha256:" + hashlib.sha256(self.content()).hexdigest()


class Approval(_Strict):
    """Somebody's word that a package may answer."""

    by: Name
    at: Annotated[str, Field(max_length=64)]
    """ISO 8601, UTC; by the approver's clock."""
    note: Annotated[str, Field(max_length=2000)] = ""
    manifest: Digest
    public_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]
    signature: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{86}==$")]
    """Ed25519, in Base64, over `signed_bytes`."""

    def signed_bytes(self) -> bytes:
        """What the signature is of: everything but itself."""
        document = self.model_dump(mode="json", exclude={"signature"})
        return b"evolvarium approval 1\n" + json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def is_exported(path: str) -> bool:
    """Whether a folder that a package was exported to may hold a file of this name."""
    own = path.removeprefix(f"{PACKAGE_FOLDER}/")
    if own != path:
        return own in {MANIFEST_FILE, INSTRUCTIONS_FILE, REASONING_FILE} or is_tool_file(own)
    return path in {MANIFEST, APPROVALS, AUDIT, SBOM, LICENCES, README}
