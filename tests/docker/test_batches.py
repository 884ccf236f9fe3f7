"""A batch on a family of two tasks: killed, resumed, and assessed in containers, one of which never ends by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.sandbox.images import ImageStore
from tests.command_line import CommandLine

pytestmark = pytest.mark.docker

FAMILY = """\
version: 1
title: Two tasks
task:
  version: 1
  description: description.md
  functions:
    estimate:
      arguments: [{name: x, dtype: float64}]
      returns: {dtype: float64}
  metrics: {fitness: the higher the better, error: mean error, size: share of 1000 nodes}
  fitness: fitness
  quality: {metric: error, direction: minimize, label: mean error}
  features: [{metric: size}]
  final_choice: {rule: exact, error: error, size: size}
  splits: {hidden: {source: generated, title: ten numbers}}
  assessment: {kind: what it is, nodes: its size}
"""
MEMBER = "title: The task {name}\nlimits:\n  evaluator: {{cpu_seconds: 3}}\nparameters: {{ends: {ends}}}\n"
PROGRAM = "def estimate(x):\n    return 2.0 * x\n"
EVALUATE = """\
import json
from pathlib import Path

import numpy as np

def generate(seed, split):
    return {"x.json": json.dumps(np.random.default_rng(seed).uniform(0, 1, 10).tolist()).encode()}

def evaluate(program, data, split):
    x = json.loads((data / "x.json").read_bytes())
    with program.open(1) as instances:
        errors = [abs(instances.call("estimate", [0], x=[one])[0] - one) for one in x]
    error = float(np.mean(errors))
    return {"fitness": -error, "error": error, "size": min(1.0, program.nodes / 1000)}

def assess(program, data, split):
    ends = json.loads((Path(__file__).parent / "member.json").read_text())["parameters"]["ends"]
    while not ends:
        pass
    return {"kind": "a function", "nodes": program.nodes}
"""
OPTIONS = ("--islands", "1", "--commits", "1", "--no-analysis", "--workers", "1")


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    family = tmp_path / "roots" / "two_tasks"
    for name, ends in (("brief", "true"), ("endless", "false")):
        (family / name).mkdir(parents=True)
        (family / name / "task.yaml").write_text(MEMBER.format(name=name, ends=ends))
    for folder in ("initial", "evaluator"):
        (family / folder).mkdir()
    (family / "family.yaml").write_text(FAMILY)
    (family / "description.md").write_text("Estimate a number.\n")
    (family / "initial" / "program.py").write_text(PROGRAM)
    (family / "evaluator" / "evaluate.py").write_text(EVALUATE)
    return family.parent


@pytest.fixture
def command(home: Path, images: ImageStore, tmp_path: Path) -> CommandLine:
    images.verify()
    (tmp_path / "home").mkdir()
    return CommandLine.beside(home, tmp_path / "home")


def test_a_batch_that_was_killed_is_resumed_and_assessed(command: CommandLine, roots: Path) -> None:
    root = ("--task-root", str(roots))
    batch = command.killed_at(2, "run", "two_tasks", "--all", *OPTIONS, *root)
    ended = command.call("resume", batch, "--json", *root)
    assert ended.code == 0, ended.err
    document = ended.document
    assert (document["run"], document["state"], document["containers_left"]) == (batch, "done", 0)
    assert [member["state"] for member in document["members"]] == ["done", "done"]
    assert sorted(command.runs()) == sorted([batch, *(member["run"] for member in document["members"])])
    assert command.call("show", "latest", "--json").document == {**document, "containers_left": None}

    assessed = command.call("task", "assess", batch, "--commit", "initial", "--json", *root)
    assert assessed.code == 0, assessed.err
    brief, endless = assessed.document["runs"]
    assert (brief["task"], brief["commit"], brief["choice"]) == ("two_tasks/brief", "initial", "id")
    assert brief["assessment"]["kind"] == "a function"
    assert (brief["splits"][0]["split"], 0 < brief["splits"][0]["value"] < 1) == ("hidden", True)
    assert (endless["assessment"], endless["not_assessed"]) == (None, "timeout")
