"""Which images an exported package was chosen with."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrator.bootstrap.release.export import released_images
from orchestrator.sandbox.image_lock import ImageLock, LockedImage


def locked(digit: str) -> LockedImage:
    return LockedImage(
        image_id="sha256:" + digit * 64,
        tag=f"evolvarium/tool:{digit}",
        tree_sha256=digit * 64,
        size_bytes=1,
        interpreter_id="sha256:" + "0" * 64,
        inputs={},
        wheels={},
        built_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_an_image_that_was_built_since_the_run_lends_it_nothing() -> None:
    lock = ImageLock(images={"tool": locked("2"), "sql": locked("3")})
    found = released_images(lock, {"tool": "sha256:" + "1" * 64, "sql": "sha256:" + "3" * 64})
    assert (found["tool"].image_id, found["tool"].tree_sha256) == ("sha256:" + "1" * 64, None)
    assert (found["sql"].image_id, found["sql"].tree_sha256) == ("sha256:" + "3" * 64, "3" * 64)


def test_without_a_lock_every_tree_is_unknown() -> None:
    found = released_images(ImageLock(), {"tool": "sha256:" + "1" * 64})
    assert found["tool"].tree_sha256 is None
