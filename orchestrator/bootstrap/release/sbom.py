"""What images are made of, as CycloneDX 1.5 JSON (https://cyclonedx.org/docs/1.5/json/), from the image lock alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from orchestrator.errors import ImageMissing
from orchestrator.sandbox.image_lock import DebianPackage, ImageLock, LockedImage

_WHEEL = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)-.+\.whl")


def bill_of_materials(lock: ImageLock, roles: Iterable[str]) -> dict[str, Any]:
    """Images with the distribution's packages and the wheels in each; the same for the same lock.

    Args:
        lock: Of the home.
        roles: Of the images.

    Raises:
        ImageMissing: One is not built.
    """
    names = sorted(set(roles))
    missing = [role for role in names if role not in lock.images]
    if missing or lock.interpreter is None:
        msg = f"image {', '.join(missing) or 'interpreter'!r} is not built; run `evolvarium images build`"
        raise ImageMissing(msg)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "evolvarium sandbox images"}},
        "components": [_image(role, lock.images[role], lock) for role in names],
    }


def _image(role: str, image: LockedImage, lock: ImageLock) -> dict[str, Any]:
    interpreter = lock.interpreter
    packages = () if interpreter is None else interpreter.packages
    reference = None if interpreter is None else interpreter.reference
    properties = [
        {"name": "evolvarium:tree-sha256", "value": image.tree_sha256},
        *([{"name": "evolvarium:base-image", "value": reference}] if reference else []),
    ]
    return {
        "type": "container",
        "bom-ref": f"image:{role}",
        "name": f"evolvarium/{role}",
        "version": image.image_id,
        "hashes": [_hash(image.image_id.removeprefix("sha256:"))],
        "properties": properties,
        "components": [*(_debian(role, package) for package in packages), *_wheels(role, image)],
    }


def _debian(role: str, package: DebianPackage) -> dict[str, Any]:
    purl = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}?arch={package.architecture}"
    return {
        "type": "library",
        "bom-ref": f"{role}:{purl}",
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "hashes": [_hash(package.sha256)],
    }


def _wheels(role: str, image: LockedImage) -> Iterator[dict[str, Any]]:
    for file, sha256 in sorted(image.wheels.items()):
        match = _WHEEL.fullmatch(file)
        if match is None:
            yield {"type": "file", "bom-ref": f"{role}:{file}", "name": file, "hashes": [_hash(sha256)]}
            continue
        purl = f"pkg:pypi/{quote(match['name'].lower().replace('_', '-'))}@{quote(match['version'])}"
        yield {
            "type": "library",
            "bom-ref": f"{role}:{purl}",
            "name": match["name"],
            "version": match["version"],
            "purl": purl,
            "hashes": [_hash(sha256)],
        }


def _hash(sha256: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": sha256}
