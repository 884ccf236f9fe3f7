"""`answer` uses a package without any code that evolves packages, and refuses before it starts anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.release.answering import Asked, answer_with_package
from orchestrator.bootstrap.release.approvals import approve
from orchestrator.bootstrap.release.folders import Release, read_release
from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.domain.policies import Policy
from orchestrator.errors import EngineUnavailable, InputError, PolicyError
from orchestrator.llm.offline import OfflineModel
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.policy_files import load_policy
from tests.release_lab import asking_policy, exported, key_of

ROOT = Path(__file__).parents[3]
ROBOPHD = "orchestrator.methods.robophd"
ALLOWED = {"", ".answering", ".settings", ".ports", ".events", ".questions", ".keys"}


def test_no_module_that_evolves_packages_is_loaded() -> None:
    script = (
        "import json, sys, orchestrator.bootstrap.release.answering;"
        "import orchestrator.bootstrap.models;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = json.loads(ended.stdout)
    assert f"{ROBOPHD}.answering.answers" in loaded
    mine = {name.removeprefix(ROBOPHD) for name in loaded if name.startswith(ROBOPHD)}
    assert {name for name in mine if not name.startswith(".answering.")} <= ALLOWED
    for part in ("bootstrap.robophd", "methods.agentic_evolve", "cli", "bootstrap.search"):
        assert [name for name in loaded if name.startswith(f"orchestrator.{part}")] == [], part


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return exported(tmp_path / "p02")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    path.write_bytes(b"no database, and nothing looks into it here")
    return path


def ask(release: Release, database: Path, policy: Policy, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")
    asked = Asked(
        release=release,
        path=database,
        question="How many?",
        evidence="",
        model=OfflineModel(),
        seed=0,
        budget=SqlBudget(),
    )
    opener = OpenFor(places=find_places(home, None), policy=policy, token=CancelToken(), note=lambda _: None)
    answer_with_package(asked, opener)


def test_what_is_not_approved_of_starts_nothing(
    release: Release, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    key_file, public = key_of(tmp_path, "ann")
    default = load_policy(ROOT / "policies/default.yaml")
    policy = default.model_copy(update={"release": asking_policy(1, ann=public).release})
    with pytest.raises(PolicyError, match="asks for 1 approval of package 'p02'"):
        ask(release, database, policy, home, monkeypatch)
    assert not home.exists()
    approve(release.folder, by="ann", note="", key_file=key_file)
    with pytest.raises(EngineUnavailable):
        ask(read_release(release.folder), database, policy, home, monkeypatch)


def test_a_policy_without_tools_and_settings_of_another_version_are_refused(
    release: Release, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with pytest.raises(PolicyError, match="'strict' grants no `tool`"):
        ask(release, database, asking_policy(0), home, monkeypatch)
    other = exported(tmp_path / "other", answers={"corrections": 2, "of_the_future": 1})
    with pytest.raises(InputError, match=r"other' was exported with settings of another version; export it again"):
        ask(other, database, load_policy(ROOT / "policies/default.yaml"), home, monkeypatch)
    with pytest.raises(InputError, match="there is no file"):
        ask(release, tmp_path / "none.sqlite", asking_policy(0), home, monkeypatch)
    assert not home.exists()
