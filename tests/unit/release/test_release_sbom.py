"""The bill of materials: CycloneDX 1.5 as its schema has it, checked by hand, and the same for the same lock."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.bootstrap.release.sbom import bill_of_materials
from orchestrator.errors import ImageMissing
from orchestrator.sandbox.image_lock import DebianPackage, ImageLock, Interpreter, LockedImage

TYPES = {
    "application", "framework", "library", "container", "platform", "operating-system", "device", "device-driver",
    "firmware", "file", "machine-learning-model", "data",
}  # fmt: skip
PURL = re.compile(r"pkg:(deb/debian|pypi)/[a-z0-9.%+-][A-Za-z0-9.%+-]*@[A-Za-z0-9.%+~-]+(\?arch=[a-z0-9]+)?")


def image(**wheels: str) -> LockedImage:
    return LockedImage(
        image_id="sha256:" + "a" * 64,
        tag="evolvarium/x:y",
        tree_sha256="b" * 64,
        size_bytes=1,
        interpreter_id="sha256:" + "c" * 64,
        inputs={},
        wheels={name.replace("__", "-") + ".whl": sha256 for name, sha256 in wheels.items()},
        built_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def lock(reference: str | None = None) -> ImageLock:
    packages = (
        DebianPackage(name="libstdc++6", version="12.2.0-14+deb12u1", architecture="amd64", sha256="d" * 64),
        DebianPackage(name="zlib1g", version="1:1.2.13.dfsg-1", architecture="amd64", sha256="e" * 64),
    )
    interpreter = Interpreter(
        image_id="sha256:" + "c" * 64,
        tag="t",
        reference=reference,
        packages=() if reference else packages,
        python="3.11",
        libc="2.36",
        machine="x86_64",
        inputs={},
    )
    wheels = {"numpy__2.4.6__cp311__cp311__linux_x86_64": "f" * 64, "Odd_Name__1.0+local__py3__none__any": "0" * 64}
    return ImageLock(interpreter=interpreter, images={"tool": image(), "sql": image(), "python": image(**wheels)})


def components(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All of them, at any depth."""
    found = []
    waiting = list(document.get("components", []))
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += one.get("components", [])
    return found


def test_it_is_cyclonedx_1_5_in_shape() -> None:
    document = bill_of_materials(lock(), ["python", "tool"])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert type(document["version"]) is int
    assert document["version"] >= 1
    assert set(document) == {"bomFormat", "specVersion", "version", "metadata", "components"}
    for one in [document["metadata"]["component"], *components(document)]:
        assert one["type"] in TYPES
        assert one["name"]
        assert set(one) <= {"type", "name", "version", "bom-ref", "purl", "hashes", "properties", "components"}
        for hashed in one.get("hashes", []):
            assert hashed["alg"] == "SHA-256"
            assert re.fullmatch("[0-9a-f]{64}", hashed["content"])
        for property_ in one.get("properties", []):
            assert set(property_) == {"name", "value"}
            assert isinstance(property_["value"], str)
        assert "purl" not in one or PURL.fullmatch(one["purl"]), one
    references = [one["bom-ref"] for one in components(document)]
    assert len(set(references)) == len(references)


def test_every_image_lists_its_packages_and_wheels() -> None:
    document = bill_of_materials(lock(), ["python", "tool", "tool"])
    assert [one["name"] for one in document["components"]] == ["evolvarium/python", "evolvarium/tool"]
    python, tool = document["components"]
    assert [one.get("purl") for one in python["components"]] == [
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64",
        "pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64",
        "pkg:pypi/odd-name@1.0%2Blocal",
        "pkg:pypi/numpy@2.4.6",
    ]
    assert len(tool["components"]) == 2
    assert {"name": "evolvarium:tree-sha256", "value": "b" * 64} in tool["properties"]


def test_a_file_that_is_named_like_no_wheel_is_a_file() -> None:
    odd = lock().with_image("sql", image(strange="9" * 64))
    (found,) = [one for one in components(bill_of_materials(odd, ["sql"])) if one["type"] == "file"]
    assert (found["name"], "purl" in found, "version" in found) == ("strange.whl", False, False)


def test_the_same_lock_gives_the_same_bytes() -> None:
    first = json.dumps(bill_of_materials(lock(), ["tool", "python", "sql"]))
    again = ImageLock.model_validate_json(lock().model_dump_json())
    assert json.dumps(bill_of_materials(again, ["sql", "tool", "python"])) == first


def test_a_pinned_base_image_is_named() -> None:
    document = bill_of_materials(lock("python@sha256:1"), ["tool"])
    assert {"name": "evolvarium:base-image", "value": "python@sha256:1"} in document["components"][0]["properties"]
    assert document["components"][0]["components"] == []


def test_an_image_that_is_not_built_is_named() -> None:
    with pytest.raises(ImageMissing, match=r"'nothing' is not built; run `evolvarium images build`"):
        bill_of_materials(lock(), ["tool", "nothing"])
    with pytest.raises(ImageMissing, match="'tool' is not built"):
        bill_of_materials(ImageLock(), ["tool"])
