"""Removing images of ours that this home does not need: leftovers of builds, and on demand those of other homes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any

from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import STEP_SECONDS, find_image
from orchestrator.sandbox.image_interpreter import LABEL
from orchestrator.sandbox.image_lock import BUILD_SECONDS, REPOSITORY, ImageLock, building, place_of, read_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class OldImage:
    """An image of ours that this home's lock does not name."""

    id: str
    role: str
    """Of the images of one home, or `interpreter`, from which the others are made."""
    tags: tuple[str, ...]
    """Empty: nothing names it any more."""
    size_bytes: int
    """With what it shares with others."""
    is_of_another_home: bool
    """Its tag is that of another home, which may be in use; nothing here can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePruneReport:
    """What a removal did."""

    removed: tuple[OldImage, ...]
    """They were looked for again and are gone; after a dry run, what would be tried."""
    kept: tuple[OldImage, ...]
    """The engine did not let them go: a container or another image needs them."""
    of_other_homes: int
    """Images with the tag of another home that were left alone."""


def prune_images(
    engine: Engine,
    home: Path,
    *,
    other_homes: bool,
    dry_run: bool,
    tell: Callable[[Sequence[OldImage]], None],
) -> ImagePruneReport:
    """Remove old images that no container uses.

    Args:
        engine: Where they are.
        home: Whose lock says what is needed.
        other_homes: Also those with the tag of another home, which then has to build them again.
        dry_run: Remove nothing.
        tell: Called once with what is about to be removed.

    Raises:
        ImageMissing: The lock cannot be read.
        EngineUnavailable: No engine answers.
        SandboxError: The engine failed, or a build in this home does not end.
    """
    with building(home, lambda _: None):
        found = engine.call("list images", lambda client: list(client.images(filters={"label": LABEL})))
        containers = engine.call("list containers", lambda client: list(client.containers(all=True)))
        used = {str(container["ImageID"]) for container in containers}
        old = old_images(found, read_lock(home), place=place_of(home), used=used, now=time.time())
        chosen = [image for image in old if other_homes or not image.is_of_another_home]
        left_alone = len(old) - len(chosen)
        tell(chosen)
        if dry_run:
            return ImagePruneReport(removed=tuple(chosen), kept=(), of_other_homes=left_alone)
        removed = [image for image in chosen if _remove(engine, image)]
    kept = [image for image in chosen if image not in removed]
    return ImagePruneReport(removed=tuple(removed), kept=tuple(kept), of_other_homes=left_alone)


def old_images(
    found: Iterable[Mapping[str, Any]], lock: ImageLock, *, place: str, used: Collection[str], now: float
) -> list[OldImage]:
    """Which images are old, in an order in which they can be removed: what is made from another one before that.

    Args:
        found: The engine's list of images with our label.
        lock: Of this home.
        place: This home, as its tags name it.
        used: Ids of images that containers were made from.
        now: Unix time; an image without a tag may be of a build that goes on, as long as one may take.
    """
    needed = {image.image_id for image in lock.images.values()} | {one.interpreter_id for one in lock.images.values()}
    needed |= {lock.interpreter.image_id} if lock.interpreter else set()
    old = []
    for image in found:
        tags = tuple(sorted(tag for tag in image.get("RepoTags") or () if tag != "<none>:<none>"))
        is_foreign = any(not tag.startswith(f"{REPOSITORY}/") for tag in tags)
        is_fresh = not tags and float(image.get("Created", 0)) > now - BUILD_SECONDS
        if image["Id"] in needed or image["Id"] in used or is_foreign or is_fresh:
            continue
        old.append(
            OldImage(
                id=str(image["Id"]),
                role=str((image.get("Labels") or {}).get(LABEL, "")),
                tags=tags,
                size_bytes=int(image.get("Size", 0)),
                is_of_another_home=any(tag.rpartition(":")[2] != place for tag in tags),
            )
        )
    return sorted(old, key=lambda image: (image.role == "interpreter", image.tags, image.id))


def _remove(engine: Engine, image: OldImage) -> bool:
    """Whether it is gone afterwards; the engine refuses what a container or another image needs."""
    for name in image.tags or (image.id,):
        remove = methodcaller("remove_image", name)
        with suppress(SandboxError):
            engine.find(f"remove image {name}", remove, seconds=STEP_SECONDS)
    return find_image(engine, image.id) is None
