"""What fails on our own side of an evaluation leaves the candidate unscored, and starts no program twice."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from scripted_sandbox import (
    LOADED,
    Answer,
    Script,
    ScriptedSandbox,
    after_loading,
    candidate,
    evaluate,
    evaluator,
    frame,
    generator,
    honest_candidate,
    inner,
    scored,
)

from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Purpose
from orchestrator.domain.verdicts import Failure
from orchestrator.errors import Cancelled, EvaluatorError, ProtocolError, SandboxError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.tasks import Task


@pytest.mark.parametrize(
    ("answers", "error", "complaint"),
    [
        ((), EvaluatorError, "ended without a verdict: no-result"),
        ((frame("failed", message="Traceback\n  ...\nKeyError: 3\n"),), EvaluatorError, "failed: KeyError: 3"),
        ((frame("failed"),), EvaluatorError, "it gave no reason"),
        ((frame("generated", blobs=[], last=True),), ProtocolError, "it sent a 'generated' frame"),
        ((frame("to-candidate", b"junk"),), ProtocolError, "inner frame"),
        ((frame("verdict", status="perfect"),), ProtocolError, "status 'perfect'"),
        ((frame("verdict"),), ProtocolError, "status None"),
        ((frame("verdict", status="refused", message="other"),), EvaluatorError, "refuses with 'other'"),
        ((frame("verdict", status="scored"),), EvaluatorError, "returns metrics None"),
        ((frame("verdict", status="scored", metrics={}),), EvaluatorError, "declared are"),
        ((scored(extra=1.0),), EvaluatorError, "declared are"),
        ((scored(fitness=math.nan),), EvaluatorError, "fitness = nan; it must be a finite number"),
        ((scored(error=math.inf),), EvaluatorError, "error = inf"),
        ((scored(fitness=True),), EvaluatorError, "fitness = True"),
        ((scored(fitness="1"),), EvaluatorError, "fitness = '1'"),
        ((scored(fitness=10**400),), EvaluatorError, "fitness = 1000"),
        ((scored(bias=1.5),), EvaluatorError, r"bias = 1.5; it must be a number in \[0, 1\]"),
    ],
)
def test_a_broken_evaluator_leaves_the_candidate_unscored(
    host: EvaluatorHost,
    box: ScriptedSandbox,
    answers: Iterable[Answer],
    error: type[Exception],
    complaint: str,
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(*answers))
    with pytest.raises(error, match=complaint):
        evaluate(host)


def test_an_evaluator_that_met_a_limit_has_no_say(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(scored()), sees=Ending.MEMORY)
    with pytest.raises(EvaluatorError, match="met a limit: memory"):
        evaluate(host)


@pytest.mark.parametrize(
    "first",
    [
        frame("loaded"),
        frame("inspected"),
        frame("inspected", nodes=-1, lines=1),
        frame("inspected", nodes=1.0, lines=1),
        frame("inspected", nodes=10**9, lines=1),
        frame("rejected", reason="because"),
        frame("rejected"),
    ],
)
def test_a_wrong_frame_before_the_program_runs_is_our_runners_fault(
    host: EvaluatorHost, box: ScriptedSandbox, first: Frame
) -> None:
    box.play(Purpose.CANDIDATE, candidate(first))
    with pytest.raises(ProtocolError):
        evaluate(host)


def test_a_candidate_is_not_blamed_for_the_time_its_evaluator_took(
    box: ScriptedSandbox, task: Task, store: SplitStore
) -> None:
    box.play(Purpose.EVALUATOR, generator())
    readings = iter([0.0, 5.0, 5.0, 45.0])  # around the start of the evaluator's container, and around its turn
    slow = EvaluatorHost(box, task, "hidden", store, clock=lambda: next(readings))
    box.play(Purpose.CANDIDATE, after_loading(), sees=Ending.TIMEOUT, wall_seconds=60.0)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    with pytest.raises(EvaluatorError, match=r"took 40.0 s of the candidate's 60 s \(wall_seconds\)"):
        evaluate(slow)


def test_a_candidate_is_not_blamed_for_the_time_the_evaluators_container_took_to_start(
    box: ScriptedSandbox, task: Task, store: SplitStore
) -> None:
    box.play(Purpose.EVALUATOR, generator())
    readings = iter([0.0, 58.0, 58.0, 59.0])
    slow = EvaluatorHost(box, task, "hidden", store, clock=lambda: next(readings))
    box.play(Purpose.CANDIDATE, after_loading(), sees=Ending.TIMEOUT, wall_seconds=60.0)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    with pytest.raises(SandboxError, match=r"starting the evaluator's container took 58.0 s of the candidate's 60 s"):
        evaluate(slow)


def test_a_candidate_that_took_the_time_itself_times_out(box: ScriptedSandbox, task: Task, store: SplitStore) -> None:
    box.play(Purpose.EVALUATOR, generator())
    readings = iter([0.0, 5.0, 5.0, 15.0])
    slow = EvaluatorHost(box, task, "hidden", store, clock=lambda: next(readings))
    box.play(Purpose.CANDIDATE, after_loading(), sees=Ending.TIMEOUT, wall_seconds=60.0)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    assert evaluate(slow).failure == Failure(ending=Ending.TIMEOUT)


# An engine that fails


def test_an_engine_that_fails_once_before_anything_ran_is_asked_again(
    host: EvaluatorHost, box: ScriptedSandbox
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate, opening=SandboxError("no container"))
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(scored()), opening=SandboxError("no container"))
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    assert evaluate(host).is_scored


def test_an_engine_that_fails_twice_is_an_error(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate, opening=SandboxError("no container"))
    box.play(Purpose.CANDIDATE, honest_candidate, opening=SandboxError("still no container"))
    box.play(Purpose.CANDIDATE, honest_candidate)
    with pytest.raises(SandboxError, match="still no container"):
        evaluate(host)


@pytest.mark.parametrize(
    "script",
    [
        candidate(SandboxError("gone")),
        candidate(LOADED[0], SandboxError("gone")),
        after_loading(SandboxError("gone")),
    ],
)
def test_a_program_that_has_begun_to_run_is_not_started_again(
    host: EvaluatorHost, box: ScriptedSandbox, script: Script
) -> None:
    box.play(Purpose.CANDIDATE, script)
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    with pytest.raises(SandboxError, match="gone"):
        evaluate(host)
    assert sum(bool(play.received) for play in box.opened if play.script is script) == 1
    assert not any(play.script is honest_candidate for play in box.opened)


def test_an_operators_stop_passes_through(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, after_loading(Cancelled("stop")))
    box.play(Purpose.EVALUATOR, evaluator(inner("open", instances=1)))
    with pytest.raises(Cancelled):
        evaluate(host)
