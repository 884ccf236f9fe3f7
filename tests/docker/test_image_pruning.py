"""Old images are removed; what is in use, or another home's, is not."""

from __future__ import annotations

import io
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import find_image, image_id, import_root, tag_image
from orchestrator.sandbox.image_interpreter import LABEL
from orchestrator.sandbox.image_lock import place_of
from orchestrator.sandbox.image_pruning import OldImage, prune_images

pytestmark = pytest.mark.docker
ELSEWHERE = "0123456789ab"


@pytest.fixture
def make(engine: Engine) -> Iterator[Callable[[str], str]]:
    """Makes images of one small file that carry our label and a tag of a place."""
    made: list[str] = []

    def image(place: str) -> str:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            content = secrets.token_bytes(16)
            entry = tarfile.TarInfo("content")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        plain = import_root(engine, archive.getvalue())
        body = {"Image": plain, "Cmd": ["-"], "Labels": {LABEL: "python"}, "NetworkDisabled": True}
        name = f"evolvarium-test-{secrets.token_hex(8)}"
        container = engine.create({"Name": name, **body})
        committed = engine.call("commit", lambda client: cast(Any, client).commit(container))
        engine.remove(container)
        made.append(image_id(engine, str(committed["Id"])))
        tag_image(engine, made[-1], f"evolvarium/python-{secrets.token_hex(4)}:{place}")
        return made[-1]

    yield image
    for one in made:
        with suppress(SandboxError):
            engine.find("remove an image", lambda client, one=one: client.remove_image(one, force=True))


def _refuse_to_touch(images: Sequence[OldImage], ours: set[str]) -> None:
    if {image.id for image in images} - ours:
        pytest.skip("this engine has other old images, which a test does not remove")


def test_old_images_of_this_home_go_and_others_stay(engine: Engine, tmp_path: Path, make: Callable[[str], str]) -> None:
    place = place_of(tmp_path)
    old, used, foreign = make(place), make(place), make(ELSEWHERE)
    container = engine.create({"Name": f"evolvarium-test-{secrets.token_hex(8)}", "Image": used, "Cmd": ["-"]})
    told: list[OldImage] = []
    try:
        dry = prune_images(engine, tmp_path, other_homes=False, dry_run=True, tell=told.extend)
        assert old in {image.id for image in dry.removed}
        assert not {used, foreign} & {image.id for image in dry.removed}
        assert find_image(engine, old) is not None
        _refuse_to_touch(dry.removed, {old})
        done = prune_images(engine, tmp_path, other_homes=False, dry_run=False, tell=told.extend)
        assert [image.id for image in done.removed] == [old]
        assert [image.id for image in told] == [old, old]
        assert done.of_other_homes >= 1
        assert find_image(engine, old) is None
        assert find_image(engine, used) is not None
        assert find_image(engine, foreign) is not None
    finally:
        engine.remove(container)
