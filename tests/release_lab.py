"""Exported packages made by hand, and the keys of people who approve of them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from orchestrator.bootstrap.release.folders import Release, read_release, write_release
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.policies import Policy
from orchestrator.domain.releases import Measured, ReleasedImage, ReleaseManifest
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.storage.signing import make_private_key
from tests.answering_lab import package as small_package

TREE = "7" * 64
FULL = 1000
"""Bytes of a disk that fills up; a manifest has more, the other files have fewer."""


def released_files(package: AgentPackage) -> dict[str, bytes]:
    """What an exported folder holds beside its manifest."""
    own = {f"package/{path}": content for path, content in package.tree.items()}
    return {**own, "audit.json": b"{}\n", "sbom.cdx.json": b"{}\n", "README.md": b"# p02\n", "LICENCES.md": b"# L\n"}


def manifest_of(package: AgentPackage, files: Mapping[str, bytes], **changes: Any) -> ReleaseManifest:
    """A manifest that fits."""
    fields: dict[str, Any] = {
        "name": "p02",
        "run": "20260101-000000-abcd",
        "package": package.digest,
        "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
        "parents": ("naive",),
        "description": "Counts rows.",
        "iteration": 2,
        "models": {"answerer": "offline", "evolver": "offline"},
        "answers": AnswerSettings().model_dump(mode="json"),
        "policy": {"name": "default", "digest": "sha256:" + "1" * 64},
        "images": {"tool": ReleasedImage(image_id="sha256:" + "2" * 64, tree_sha256=TREE)},
        "select": Measured(model="offline", right=3, questions=4, databases=("demo/s0",)),
        "final": (),
        "evolvarium": "0.0",
    }
    return ReleaseManifest(**{**fields, **changes})


def exported(folder: Path, package: AgentPackage | None = None, **changes: Any) -> Release:
    """An exported package in a folder."""
    package = package or small_package()
    files = released_files(package)
    write_release(folder, manifest_of(package, files, **changes), files, force=False)
    return read_release(folder)


def key_of(folder: Path, name: str) -> tuple[Path, str]:
    """A new key of somebody: its file, and its public half as policies name it."""
    path = folder / f"{name}.pem"
    return path, public_text(make_private_key(path))


def public_text(key: Ed25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def asking_policy(approvals: int, **approvers: str) -> Policy:
    """A policy that asks for approvals by people with these public keys."""
    rules = {
        "approvals": approvals,
        "approvers": [{"name": name, "public_key": key} for name, key in approvers.items()],
    }
    return Policy.model_validate({"version": 1, "name": "strict", "purposes": {}, "release": rules})


def with_long_file(at: int) -> dict[str, bytes]:
    """Files, one of which is too long for a full disk; after the last place, it is the manifest."""
    names = list(released_files(small_package()))
    contents = released_files(small_package())
    if at < len(names):
        contents[names[at]] = b"x" * FULL * 2
    return contents
