"""Fixtures around a sandbox that tests script; `scripted_sandbox` lies beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scripted_sandbox import ScriptedSandbox, generator

from orchestrator.domain.policies import Purpose
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task


@pytest.fixture
def box() -> ScriptedSandbox:
    return ScriptedSandbox()


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(new_task(tmp_path, "small_task"))


@pytest.fixture
def store(tmp_path: Path) -> SplitStore:
    return SplitStore(home=tmp_path / "home", seeds=SeedSource.installation(tmp_path / "home"))


@pytest.fixture
def host(box: ScriptedSandbox, task: Task, store: SplitStore) -> EvaluatorHost:
    """Its first evaluator container generates; tests add the others."""
    box.play(Purpose.EVALUATOR, generator())
    return EvaluatorHost(box, task, "hidden", store)
