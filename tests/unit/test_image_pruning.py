"""Which images are old."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from orchestrator.sandbox.image_interpreter import LABEL
from orchestrator.sandbox.image_lock import BUILD_SECONDS, ImageLock, Interpreter, LockedImage
from orchestrator.sandbox.image_pruning import OldImage, old_images

HERE, ELSEWHERE = "0" * 12, "f" * 12
NOW = 1_000_000.0


def _id(name: str) -> str:
    return "sha256:" + name.encode().hex().ljust(64, "0")


def _found(name: str, *tags: str, role: str = "python", age: float = 2 * BUILD_SECONDS) -> dict[str, Any]:
    listed = [tag if "/" in tag else f"evolvarium/{role}:{tag}" for tag in tags] or ["<none>:<none>"]
    return {"Id": _id(name), "RepoTags": listed, "Labels": {LABEL: role}, "Created": NOW - age, "Size": 5}


def _lock(interpreter: str, python: str) -> ImageLock:
    facts: dict[str, Any] = {"reference": None, "packages": (), "python": "3.11", "libc": "2.36", "machine": "x86_64"}
    made = Interpreter(image_id=_id(interpreter), tag="t", inputs={}, **facts)
    image = LockedImage(
        image_id=_id(python),
        tag="t",
        tree_sha256="d" * 64,
        size_bytes=1,
        interpreter_id=made.image_id,
        inputs={},
        wheels={},
        built_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return ImageLock().with_interpreter(made).with_image("python", image)


def _old(*found: dict[str, Any], used: tuple[str, ...] = ()) -> list[OldImage]:
    in_use = {_id(name) for name in used}
    return old_images(found, _lock("interpreter", "now"), place=HERE, used=in_use, now=NOW)


def test_what_the_lock_names_is_not_old() -> None:
    assert _old(_found("now", HERE), _found("interpreter", HERE, role="interpreter"), _found("now", ELSEWHERE)) == []


def test_what_a_container_was_made_from_is_not_old() -> None:
    assert _old(_found("before", HERE), used=("before",)) == []


def test_what_somebody_gave_a_name_of_their_own_is_left_alone() -> None:
    assert _old(_found("before", HERE, "team/python:1")) == []


def test_an_image_without_a_tag_may_be_of_a_build_that_goes_on_as_long_as_one_may_take() -> None:
    assert _old(_found("before", age=60)) == []
    assert [image.id for image in _old(_found("before"))] == [_id("before")]


def test_an_image_with_the_tag_of_another_home_is_told_apart() -> None:
    own, other = _old(_found("a", HERE), _found("b", ELSEWHERE))
    assert (own.is_of_another_home, other.is_of_another_home) == (False, True)
    assert (own.role, own.tags, own.size_bytes) == ("python", (f"evolvarium/python:{HERE}",), 5)
    (both,) = _old(_found("c", HERE, ELSEWHERE))
    assert both.is_of_another_home


def test_the_image_that_others_are_made_from_comes_last() -> None:
    old = _old(_found("a", ELSEWHERE, role="interpreter"), _found("b", ELSEWHERE, role="sql"), _found("c", HERE))
    assert [image.role for image in old] == ["python", "sql", "interpreter"]
