"""The method's ports as the trusted side fills them: the view and the disclosure of a real task package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.domain.candidates import Candidate
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Disclosure
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.methods.agentic_evolve import Settings, texts
from orchestrator.methods.agentic_evolve.archive import IslandArchive
from orchestrator.methods.agentic_evolve.entries import Entry, check_verdict
from orchestrator.methods.agentic_evolve.ports import Disclosure as DisclosurePort

OUTCOME = Outcome(
    ending=Ending.OK,
    exit_code=0,
    wall_seconds=1.0,
    cpu_seconds=1.0,
    memory_peak_bytes=None,
    output=b"canary",
    output_truncated=False,
)


@pytest.fixture
def task() -> Task:
    return load_task(Path(__file__).parents[2] / "tasks" / "online_bin_packing")


def verdict(metrics: dict[str, float] | None, failure: Failure | None = None) -> Verdict:
    return Verdict(split="hidden", metrics=metrics, failure=failure, secret=True, outcome=OUTCOME)


def entry(task: Task, judged: Verdict) -> Entry:
    return Entry(
        candidate=Candidate(id="initial", payload=task.initial, description="the first"),
        verdict=judged,
        island=None,
        number=0,
    )


def test_a_tasks_metrics_reach_archive_and_summary(task: Task) -> None:
    metrics = {"fitness": 1 / 1.0655, "excess_percent": 6.55, "ast_nodes": 0.1, "deviation": 0.0}
    disclosure: DisclosurePort = TaskDisclosure(Disclosure(metric_digits=4), task)
    judged = check_verdict(verdict(metrics), task.view, "initial")
    summary = IslandArchive(entry(task, judged), task.view, bins=10).summary(disclosure)
    assert json.loads(texts.as_json(summary))["island_best"] == {
        "id": "initial",
        "metrics": metrics | {"fitness": 0.9385},
        "description": "the first",
    }


def test_a_failure_reaches_the_agent_in_the_documented_form_and_without_output(task: Task) -> None:
    failure = Failure(ending=Ending.ERROR, exception="ZeroDivisionError", file="program.py", line=3)
    shown = TaskDisclosure(Disclosure(), task).verdict(verdict(None, failure))
    assert json.loads(texts.as_json(shown)) == {
        "metrics": None,
        "failure": {
            "ending": "error",
            "exception": "ZeroDivisionError",
            "file": "program.py",
            "line": 3,
            "message": None,
        },
    }
    assert IslandArchive(entry(task, verdict(None, failure)), task.view, bins=10).best is None


def test_the_prompt_holds_the_whole_description_of_a_task(task: Task) -> None:
    for analysis in (True, False):
        prompt = texts.system_prompt(Settings(analysis=analysis), task.view)
        assert f"# Task\n\n{task.description.strip()}\n\n# Feedback\n" in prompt
