"""Whole runs through the command line, in processes of their own, as users start them."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.methods.agentic_evolve import read_history
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.images import ImageStore
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, RUN
from orchestrator.storage.runs import RunStore
from tests.command_line import SECONDS, CommandLine, wait_until

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
TINY = (
    *("run", "online_bin_packing", "--public-seed", "--seed", "1"),
    *("--islands", "2", "--commits", "2", "--analyses", "1"),
)
SMALLEST = (
    "run",
    "online_bin_packing",
    "--public-seed",
    "--islands",
    "1",
    "--commits",
    "1",
    "--no-analysis",
    "--final-splits",
    "none",
)


@dataclass(frozen=True)
class Installation(CommandLine):
    """A home whose images are built, and the command line that uses it."""

    def candidates(self, run_id: str) -> dict[str, tuple[str, Mapping[str, float] | None]]:
        """Digest and metrics of every candidate by id."""
        with RunStore(self.home).open(run_id, read_only=True) as journal:
            history = read_history(journal)
        return {
            entry.id: (entry.candidate.payload.digest, entry.verdict.metrics)
            for entry in (history.initial, *history.commits)
            if entry is not None
        }


@pytest.fixture(scope="module")
def installation(home: Path, images: ImageStore, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Shares the images that are built, and what is proved, with the home of all tests."""
    images.verify()
    return Installation(CommandLine.beside(home, tmp_path_factory.mktemp("installation")).home)


@pytest.fixture(scope="module")
def undisturbed(installation: Installation) -> dict[str, Any]:
    """The final object of a tiny run that nothing disturbed."""
    ended = installation.call(*TINY, "--json")
    assert ended.code == 0, ended.err
    return ended.document


@pytest.fixture
def left(engine: Engine) -> Callable[[str], int]:
    """Counts containers of a run, in any state."""
    return lambda run_id: len(engine.containers({KIND: CONTAINER_KIND, RUN: run_id}))


def test_a_run_ends_with_one_object_and_no_container(undisturbed: dict[str, Any], left: Callable[[str], int]) -> None:
    assert undisturbed["state"] == "done"
    assert undisturbed["evaluations"] == 4
    assert undisturbed["analyses"] >= 1
    assert undisturbed["best"]["metrics"]["fitness"] >= undisturbed["initial"]["metrics"]["fitness"]
    assert {verdict["split"] for verdict in undisturbed["final"]} == {"fresh"}
    assert not any(verdict["secret"] for verdict in undisturbed["final"])
    assert undisturbed["containers_left"] == left(undisturbed["run"]) == 0


def test_its_audit_records_are_intact(installation: Installation, undisturbed: dict[str, Any]) -> None:
    ended = installation.call("audit", "verify", "--json")
    assert ended.code == 0
    assert ended.document["records"] > undisturbed["evaluations"] + undisturbed["analyses"]
    assert undisturbed["run"] in (installation.home / "audit" / "chain.jsonl").read_text()


def test_the_same_seed_gives_the_same_candidates_whatever_the_number_of_workers(
    installation: Installation, undisturbed: dict[str, Any]
) -> None:
    again = installation.call(*TINY, "--workers", "1", "--final-splits", "none").document
    assert installation.candidates(again["run"]) == installation.candidates(undisturbed["run"])
    assert again["usage"] == undisturbed["usage"]


def test_a_replay_gives_the_same_archive_without_an_engine(
    installation: Installation, undisturbed: dict[str, Any]
) -> None:
    replay = ("run", "online_bin_packing", "--model", f"replay/{undisturbed['run']}")
    ended = installation.call(*replay, DOCKER_HOST="unix:///nonexistent/engine.sock")
    assert ended.code == 0, ended.err
    assert installation.candidates(ended.document["run"]) == installation.candidates(undisturbed["run"])
    assert ended.document["final"] == undisturbed["final"]


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_resumed_run_comes_to_the_same_end(
    installation: Installation, undisturbed: dict[str, Any], left: Callable[[str], int], kills: int
) -> None:
    total = len(installation.records(undisturbed["run"]))
    moments = sorted(secrets.SystemRandom().sample(range(2, total - 2), kills))
    run_id = installation.killed_at(moments[0], *TINY)
    for moment in moments[1:]:
        installation.killed_at(moment, "resume", run_id)
    ended = installation.call("resume", run_id)
    assert ended.code == 0, (moments, ended.err)
    assert installation.candidates(run_id) == installation.candidates(undisturbed["run"]), moments
    for field in ("evaluations", "analyses", "requests", "usage", "endings", "final", "stops", "best"):
        assert ended.document[field] == undisturbed[field], (field, moments)
    assert ended.document["containers_left"] == left(run_id) == 0


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT] * 4])
def test_an_interrupted_run_leaves_no_container_and_says_how_to_go_on(
    installation: Installation, left: Callable[[str], int], signals: list[signal.Signals]
) -> None:
    process = installation.start(*TINY)
    run_id = installation.new_run(process)
    wait_until(process, lambda: left(run_id) > 0)
    time.sleep(1)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.3)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, err
    assert f"evolvarium resume {run_id}" in err
    assert "Traceback" not in err
    assert left(run_id) == 0


def test_an_evaluation_gives_a_verdict_and_an_exit_code(installation: Installation, tmp_path: Path) -> None:
    program = ROOT / "tasks" / "online_bin_packing" / "initial" / "program.py"
    evaluate = ("evaluate", "online_bin_packing", str(program), "--public-seed")
    report = tmp_path / "junit.xml"
    passed = installation.call(*evaluate, "--threshold", "8", "--junit", str(report))
    assert (passed.code, passed.document["passed"]) == (0, True)
    assert 'failures="0"' in report.read_text()
    assert installation.call(*evaluate, "--threshold", "1").code == 1


@pytest.mark.parametrize(
    ("source", "ending"),
    [
        ("import os\ndef priority(item, bins):\n    return bins\n", "error"),
        ("def priority(item, bins):\n    return bins * float('nan')\n", "invalid-result"),
        ("def priority(item, bins):\n    raise MemoryError\n", "error"),
    ],
)
def test_a_program_that_fails_gets_its_ending_and_exit_code_1(
    installation: Installation, tmp_path: Path, source: str, ending: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(source)
    ended = installation.call("evaluate", "online_bin_packing", str(program), "--public-seed")
    assert ended.code == 1, ended.err
    assert ended.document["metrics"] is None
    assert ended.document["failure"]["ending"] == ending


def test_a_split_whose_file_is_missing_is_a_missing_prerequisite(installation: Installation) -> None:
    program = ROOT / "tasks" / "online_bin_packing" / "initial" / "program.py"
    ended = installation.call("evaluate", "online_bin_packing", str(program), "--split", "or1")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.count("\n") == 1


def test_a_file_with_wrong_content_is_wrong_input_before_a_run_begins(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "binpack1.txt"
    file.write_text("something else\n")
    known = installation.runs()
    ended = installation.call(*SMALLEST[:-2], "--data", str(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert f"{str(file)!r} cannot be used for task 'online_bin_packing': the number of instances must be" in line
    assert installation.runs() == known


def test_a_failing_evaluator_leaves_no_run_behind_that_could_not_be_resumed(
    installation: Installation, tmp_path: Path
) -> None:
    assert installation.call("task", "new", "my_task", "--into", str(tmp_path)).code == 0
    code = tmp_path / "my_task" / "evaluator" / "evaluate.py"
    code.write_text(code.read_text().replace("truth = ", "truth = 1 // 0 + "))
    known = installation.runs()
    ended = installation.call("run", str(tmp_path / "my_task"), "--commits", "1", "--islands", "1")
    assert ended.code == 5
    assert "nothing was recorded of the run, so none is kept: start it again" in ended.err
    assert "ZeroDivisionError" in ended.err
    assert installation.runs() == known


def test_a_budget_that_covers_nothing_is_exit_code_4_and_the_run_is_kept(installation: Installation) -> None:
    ended = installation.call(*SMALLEST, "--budget-tokens", "1000")
    assert ended.code == 4, ended.err
    assert ended.document["state"] == "budget-spent"
    assert (ended.document["evaluations"], ended.document["containers_left"]) == (0, 0)
    assert ended.document["run"] in installation.runs()


def test_a_run_goes_on_under_another_policy_only_when_told_to(installation: Installation, tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    text = (ROOT / "policies" / "default.yaml").read_text()
    policy.write_text(text)
    run_id = installation.call(*SMALLEST, "--policy", str(policy)).document["run"]
    policy.write_text(text.replace("pids: 64", "pids: 63"))
    refused = installation.call("resume", run_id)
    assert refused.code == 2
    assert "policy 'default' has changed" in refused.err
    accepted = installation.call("resume", run_id, "--accept-policy-change")
    assert accepted.code == 0, accepted.err
    assert f"run {run_id} is done already\n" in accepted.err
    assert "island 0: " not in accepted.err, "what it told long ago is not told again"
    assert installation.call("resume", run_id).code == 0


def test_the_doctor_finds_an_installation_that_works_ready(installation: Installation) -> None:
    ended = installation.call("doctor", "--json")
    assert ended.code == 0, ended.err
    assert ended.document["ready"] is True
    assert all(finding["remedy"] for finding in ended.document["findings"] if finding["status"] != "ok")


def test_a_run_in_use_cannot_be_resumed_or_removed(installation: Installation) -> None:
    process = installation.start("run", "online_bin_packing", "--public-seed", "--commits", "30")  # outlasts the test
    try:
        run_id = installation.new_run(process)
        assert installation.call("resume", run_id).code == 2
        assert installation.call("runs", "remove", run_id, "--yes").code == 2
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
