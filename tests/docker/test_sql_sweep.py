"""`evolvarium sql sweep` in processes of its own, on the demo shop, with real containers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.sql_sweep_documents import SqlSweepDocument
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, RUN
from orchestrator.sql.demo import write_demo
from tests.command_line import CommandLine

pytestmark = pytest.mark.docker

FILE = """
datasets:
  - {kind: jsonl, root: questions.jsonl, limit: 2}
base: {candidates: 3, rounds: 2, seed: 1}
grid: {rounds: [2, 1]}
variants: [{temperature: 0.5}]
"""


def test_a_sweep_that_is_killed_resumes_to_the_same_figures_and_changes_no_database(
    home: Path, images: ImageStore, engine: Engine, tmp_path: Path
) -> None:
    images.verify()
    (tmp_path / "home").mkdir()
    command = CommandLine.beside(home, tmp_path / "home")
    demo = write_demo(tmp_path / "shop")
    before = hashlib.sha256(demo.database.read_bytes()).digest()
    file = tmp_path / "shop" / "sweep.yaml"
    file.write_text(FILE)
    undisturbed = command.call("sql", "sweep", str(file), "-o", str(tmp_path / "written"), "--json")
    assert undisturbed.code == 0, undisturbed.err
    expected = SqlSweepDocument.model_validate(undisturbed.document)
    assert [one.label for one in expected.variants] == ["base", "T 1", "temperature 0.5"]
    assert expected.trials == 2
    assert [dataset.evaluable for dataset in expected.datasets] == [2]
    assert all(score.answered == 2 for variant in expected.variants for score in variant.scores)
    assert len(expected.panels) == 4
    assert sorted(path.name for path in (tmp_path / "written").iterdir()) == [
        "pareto.png", "pareto.svg", "sweep.csv", "sweep.md"
    ]  # fmt: skip
    run_id = command.killed_at(len(command.records(expected.run)) // 2, "sql", "sweep", str(file))
    ended = command.call("resume", run_id, "--json")
    assert ended.code == 0, ended.err
    assert _comparable(ended.document) == _comparable(undisturbed.document)
    assert hashlib.sha256(demo.database.read_bytes()).digest() == before
    for run in (expected.run, run_id):
        assert engine.containers({KIND: CONTAINER_KIND, RUN: run}) == []
    assert command.call("audit", "verify").code == 0


def _comparable(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "run": "", "files": []}
