"""The images themselves, on a real engine."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.policies import Purpose
from orchestrator.errors import ImageMissing, InputError, SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.image_builder import BuildPlan, build, find_image, inspect_tree, tag_image
from orchestrator.sandbox.image_inputs import SOURCES
from orchestrator.sandbox.image_lock import LOCK_FILE, read_lock, write_lock
from orchestrator.sandbox.images import ROLES, ImageStatus, ImageStore

pytestmark = pytest.mark.docker

LIST_FILES = """
import os, stat
for root, names, files in os.walk("/"):
    names[:] = [name for name in names if os.path.join(root, name) not in ("/proc", "/sys", "/dev", "/tmp", "/work")]
    for name in names + files:
        path = os.path.join(root, name)
        mode = os.lstat(path)
        if not stat.S_ISREG(mode.st_mode) and not stat.S_ISDIR(mode.st_mode):
            continue  # links, and what the engine masks
        if mode.st_uid or mode.st_mode & 0o6022 and path != "/target":
            print(path, oct(mode.st_mode), mode.st_uid)
"""
IMPORTS = """
import sys, threading
import scipy.integrate, scipy.interpolate, scipy.linalg, scipy.optimize, scipy.stats
import numpy as np
assert scipy.optimize.minimize(lambda x: float((x[0] - 3) ** 2), [0.0]).x[0].round(3) == 3
assert abs(scipy.stats.norm.cdf(0.0) - 0.5) < 1e-12
assert scipy.linalg.solve(np.eye(2) * 2, np.ones(2)).tolist() == [0.5, 0.5]
assert scipy.integrate.quad(lambda x: x, 0, 1)[0] == 0.5
assert float(scipy.interpolate.CubicSpline([0, 1, 2], [0, 1, 8])(1)) == 1
a = np.ones((400, 400)); a @ a
import os
print(len(os.listdir("/proc/self/task")), sys.modules["scipy"].__cached__.endswith(".pyc"))
"""


@pytest.fixture
def copy_of_home(home: Path, images: ImageStore, tmp_path: Path) -> Path:
    """A home of its own with the lock of the real one."""
    assert images.locked().images
    shutil.copy(home / LOCK_FILE, tmp_path / LOCK_FILE)
    return tmp_path


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the image sources that may be changed."""
    copy = tmp_path / "sandbox_images"
    shutil.copytree(SOURCES, copy)
    return copy


@pytest.fixture
def spare_tag(engine: Engine) -> Iterator[str]:
    tag = "evolvarium/test-spare:1"
    yield tag
    engine.find("remove the tag", lambda client: client.remove_image(tag))


def test_building_again_changes_nothing_and_takes_no_time(engine: Engine, copy_of_home: Path, sources: Path) -> None:
    store = ImageStore(engine, copy_of_home, sources=sources)
    store.build()
    before = store.locked()
    told: list[str] = []
    started = time.monotonic()
    states = store.build(progress=told.append)
    assert time.monotonic() - started < 10
    assert {state.status for state in states} == {ImageStatus.LOCKED}
    assert all("already" in line for line in told)
    assert store.locked() == before


def test_every_file_of_every_image_is_as_locked(images: ImageStore) -> None:
    images.verify(deep=True)


def test_the_lock_records_what_went_in(images: ImageStore) -> None:
    lock = images.locked()
    assert lock.interpreter is not None
    if lock.interpreter.reference is None:
        names = {package.name for package in lock.interpreter.packages}
        assert {"libc6", "python3", f"python{lock.interpreter.python}-minimal"} <= names
    assert [name.split("-")[0] for name in lock.images["analysis"].wheels] == ["numpy", "scipy"]
    assert lock.images["base"].wheels == {}


@pytest.mark.parametrize("role", ROLES)
def test_an_image_runs_as_nobody_and_carries_no_environment(engine: Engine, images: ImageStore, role: str) -> None:
    found = find_image(engine, images.digest(role))
    assert found is not None
    config: dict[str, Any] = found["Config"]
    assert config["User"] == "65534"
    assert config["Env"] == ["PATH=/usr/local/bin:/usr/bin:/bin"]
    assert config["Entrypoint"] == ["python3", "-I", "-B", "/opt/evolvarium/runner"]
    assert not config["Volumes"]
    assert not config.get("ExposedPorts")


def test_an_image_holds_nothing_that_others_may_write_or_that_changes_the_user(analyse: Any) -> None:
    assert analyse(LIST_FILES).printed == b""


def test_an_image_has_no_shell_and_no_installer(analyse: Any) -> None:
    script = """
import importlib.util, os
print([name for name in os.listdir("/usr/bin") if not name.startswith("python3")])
print([name for name in ("pip", "ensurepip", "setuptools", "distutils") if importlib.util.find_spec(name)])
"""
    assert analyse(script).printed.split() == [b"[]", b"[]"]


def test_scipy_works_from_byte_code_in_one_thread(analyse: Any) -> None:
    ended = analyse(IMPORTS)
    assert ended.printed.split() == [b"1", b"True"], ended.printed


def test_an_image_with_another_runner_than_it_was_built_from_is_refused(
    engine: Engine, copy_of_home: Path, sources: Path
) -> None:
    store = ImageStore(engine, copy_of_home, sources=sources)
    assert store.digest("base")
    with (sources / "base" / "runner" / "volume.py").open("a") as handle:
        handle.write("# changed\n")
    with pytest.raises(
        ImageMissing, match=r"'base' is out of date \(changed since: runner\); run `evolvarium images build"
    ):
        ImageStore(engine, copy_of_home, sources=sources).digest("base")


def test_a_changed_runner_is_built_and_the_image_of_another_home_stays(
    engine: Engine, images: ImageStore, copy_of_home: Path, sources: Path
) -> None:
    shared = images.digest("base")
    (sources / "base" / "runner" / "extra.py").write_text("VALUE = 1\n")
    store = ImageStore(engine, copy_of_home, sources=sources)
    (state,) = store.build(["base"])
    assert state.status is ImageStatus.LOCKED
    assert state.locked != shared
    assert images.list()[0].status is ImageStatus.LOCKED
    first = read_lock(copy_of_home).images["base"]
    (sources / "base" / "runner" / "extra.py").write_text("VALUE = 2\n")
    store.build(["base"])
    assert find_image(engine, first.image_id) is None, "the replaced image of this home is left"
    engine.call("remove the image", lambda client: client.remove_image(first.tag))


def test_a_moved_tag_is_refused_and_a_build_gives_it_back(
    engine: Engine, copy_of_home: Path, images: ImageStore, spare_tag: str
) -> None:
    lock = read_lock(copy_of_home)
    write_lock(copy_of_home, lock.with_image("base", lock.images["base"].model_copy(update={"tag": spare_tag})))
    tag_image(engine, images.digest("python"), spare_tag)
    store = ImageStore(engine, copy_of_home)
    with pytest.raises(ImageMissing, match="tag moved"):
        store.digest("base")
    store.build(["base"])
    assert store.digest("base") == images.digest("base")


def test_an_image_that_the_engine_has_lost_is_refused(engine: Engine, copy_of_home: Path) -> None:
    lock = read_lock(copy_of_home)
    lost = lock.images["base"].model_copy(update={"image_id": "sha256:" + "0" * 64})
    write_lock(copy_of_home, lock.with_image("base", lost))
    with pytest.raises(ImageMissing, match="missing from the engine"):
        ImageStore(engine, copy_of_home).digest("base")


def test_files_that_differ_from_the_lock_are_found(engine: Engine, copy_of_home: Path) -> None:
    lock = read_lock(copy_of_home)
    other = lock.images["base"].model_copy(update={"tree_sha256": "0" * 64})
    write_lock(copy_of_home, lock.with_image("base", other))
    store = ImageStore(engine, copy_of_home)
    store.verify()
    with pytest.raises(ImageMissing, match="other files"):
        store.verify(deep=True)


def test_a_home_where_nothing_was_built_says_how_to_build(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ImageMissing, match="evolvarium images build"):
        ImageStore(engine, tmp_path).digest("analysis")


@pytest.mark.parametrize("base", ["debian", "debian:12", "debian@sha256:12"])
def test_a_base_that_is_not_pinned_is_refused(engine: Engine, tmp_path: Path, base: str) -> None:
    with pytest.raises(InputError, match="not pinned"):
        ImageStore(engine, tmp_path).build(base=base)


def test_an_unknown_image_is_refused(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no image 'perl'"):
        ImageStore(engine, tmp_path).build(["perl"])


def test_a_build_step_has_no_network_and_its_failure_is_told(engine: Engine, images: ImageStore) -> None:
    interpreter = images.locked().interpreter
    assert interpreter is not None
    probe = "import os, sys; sys.exit(len(os.listdir('/sys/class/net')) == 1 and 7 or 8)"
    dockerfile = f"FROM {interpreter.image_id}\nRUN {json.dumps(['python3', '-c', probe])}\n"
    plan = BuildPlan(what="a test", files={"Dockerfile": dockerfile.encode()}, directories=(), arguments={}, labels={})
    with pytest.raises(SandboxError, match=r"building a test failed.*code: 7"):
        build(engine, plan)


def test_reading_the_files_of_an_image_leaves_no_container(engine: Engine, images: ImageStore) -> None:
    before = engine.call("list containers", lambda client: client.containers(all=True))
    assert inspect_tree(engine, images.digest("base")).breaches == ()
    ids = {container["Id"] for container in before}
    after = engine.call("list containers", lambda client: client.containers(all=True))
    assert not [c for c in after if c["Id"] not in ids and c["ImageID"] == images.digest("base") and not c["Labels"]]


def test_the_purposes_of_the_shipped_policy_use_locked_images(images: ImageStore, policy: Any) -> None:
    assert {policy.purposes[purpose].image for purpose in Purpose} <= set(ROLES)
    assert all(images.digest(grant.image).startswith("sha256:") for grant in policy.purposes.values())
