"""`EvaluatorHost` against containers that keep to the protocol, and against those that abuse it."""

from __future__ import annotations

import pytest
from scripted_sandbox import (
    LOADED,
    METRICS,
    PROGRAM,
    Play,
    Script,
    ScriptedSandbox,
    after_loading,
    candidate,
    evaluate,
    evaluator,
    frame,
    honest_candidate,
    scored,
)

from orchestrator.domain.frames import Frame, decode
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import MountRole, Purpose
from orchestrator.domain.verdicts import Failure
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.messages import LOAD_CHECK, MALFORMED_REPLY
from orchestrator.evaluation.tasks import Task
from orchestrator.runtime.workers import CancelToken, WorkerGroup


@pytest.fixture
def honest(box: ScriptedSandbox, host: EvaluatorHost) -> tuple[Play, Play]:  # noqa: ARG001 - it generates first
    return box.play(Purpose.CANDIDATE, honest_candidate), box.play(Purpose.EVALUATOR, evaluator(scored()))


# The ordinary course


def test_an_honest_program_is_scored(host: EvaluatorHost, honest: tuple[Play, Play]) -> None:
    verdict = evaluate(host)
    assert (verdict.metrics, verdict.failure) == (METRICS, None)
    assert (verdict.split, verdict.secret, verdict.outcome.ending) == ("hidden", True, Ending.OK)
    assert [play.claims for play in honest] == [[Ending.OK], [Ending.OK]]


def test_loading_has_a_cpu_limit_of_its_own(host: EvaluatorHost, honest: tuple[Play, Play]) -> None:
    evaluate(host)
    assert honest[0].caps == [5, 30]  # as the task has them, which is less than the policy


def test_the_candidate_gets_its_files_and_no_mount(
    host: EvaluatorHost, honest: tuple[Play, Play], box: ScriptedSandbox, task: Task
) -> None:
    evaluate(host)
    played = honest[0]
    assert played.request is not None
    assert (played.request.mounts, played.request.attempt_id) == ({}, "i0-c01")
    assert played.received[0].head["functions"] == task.functions()
    assert played.received[0].body == PROGRAM["program.py"]
    sent = b"".join(repr(one.head).encode() + one.body for one in played.received)
    hidden = [content for files in box.volumes.values() for path, content in files.items() if path.startswith("data/")]
    assert hidden
    assert not any(content in sent for content in hidden)


def test_the_evaluator_gets_code_and_data_of_one_split(
    host: EvaluatorHost, honest: tuple[Play, Play], box: ScriptedSandbox
) -> None:
    evaluate(host)
    played = honest[1]
    assert played.request is not None
    assert set(box.volumes[played.request.mounts[MountRole.TASK]]) == {"evaluator/evaluate.py", "data/points.json"}
    start = played.received[0].head
    assert (start["split"], start["program"]) == ("hidden", {"nodes": 20, "lines": 5})


def test_the_fingerprint_changes_with_the_split(
    host: EvaluatorHost, honest: tuple[Play, Play], box: ScriptedSandbox
) -> None:
    del honest
    fingerprint = evaluate(host).fingerprint
    assert set(fingerprint) == {"split", "evaluator", "data", "policy", "candidate_image", "evaluator_image"}
    assert fingerprint["policy"] == box.policy.digest()
    assert fingerprint["data"].startswith("sha256:")


def test_warm_containers_are_those_that_evaluations_use(
    host: EvaluatorHost, honest: tuple[Play, Play], box: ScriptedSandbox
) -> None:
    host.prepare(run_id="run", warm=2)
    evaluate(host)
    for (request, count), play in zip(box.warmed, honest, strict=True):
        assert play.request is not None
        assert (request.purpose, request.mounts, request.limits) == (
            play.request.purpose,
            play.request.mounts,
            play.request.limits,
        )
        assert count == 2


def test_many_at_once_prepare_the_data_once(
    host: EvaluatorHost, honest: tuple[Play, Play], box: ScriptedSandbox
) -> None:
    del honest
    group = WorkerGroup("evaluations", limit=8, token=CancelToken())
    with group:
        for number in range(8):
            group.spawn(f"evaluation-{number}", lambda: evaluate(host))
    generating = [play for play in box.opened if any(one.type == "generate" for one in play.received)]
    assert len(generating) == 1


# What the program does wrong


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (candidate(), Failure(ending=Ending.NO_RESULT)),
        (candidate(LOADED[0]), Failure(ending=Ending.NO_RESULT)),
        (
            candidate(frame("rejected", reason="import-not-allowed", file="program.py", line=1)),
            Failure(ending=Ending.ERROR, file="program.py", line=1, message=LOAD_CHECK["import-not-allowed"]),
        ),
        (
            candidate(LOADED[0], frame("rejected", reason="function-missing", file="program.py", line=None)),
            Failure(ending=Ending.ERROR, file="program.py", message=LOAD_CHECK["function-missing"]),
        ),
        (
            candidate(LOADED[0], frame("raised", exception="KeyError", file="program.py", line=2)),
            Failure(ending=Ending.ERROR, exception="KeyError", file="program.py", line=2),
        ),
        (
            candidate(LOADED[0], frame("raised", exception="Mine", file="/etc/passwd", line=2)),
            Failure(ending=Ending.ERROR, exception="Exception"),
        ),
        (
            candidate(LOADED[0], frame("raised", exception=["KeyError"], file={"a": 1}, line=True)),
            Failure(ending=Ending.ERROR, exception="Exception"),
        ),
        (
            candidate(LOADED[0], frame("raised", exception="KeyError", file="program.py", line=3)),
            Failure(ending=Ending.ERROR, exception="KeyError", file="program.py"),
        ),
        (after_loading(), Failure(ending=Ending.NO_RESULT)),
    ],
)
def test_a_failing_program_has_its_own_failure(
    host: EvaluatorHost, box: ScriptedSandbox, script: Script, failure: Failure
) -> None:
    box.play(Purpose.CANDIDATE, script)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    verdict = evaluate(host)
    assert (verdict.metrics, verdict.failure) == (None, failure)


@pytest.mark.parametrize(
    "forged",
    [
        frame("verdict", status="scored", metrics=METRICS),
        frame("from-candidate"),
        frame("to-candidate"),
        frame("reply", columns=[]),
        frame("opened"),
        frame("rejected", reason="syntax-error", file="program.py", line=1),
        frame("ready", protocol=1, role="candidate"),
        frame("loaded-"),
    ],
)
def test_a_frame_out_of_order_while_loading_is_an_invalid_result(
    host: EvaluatorHost, box: ScriptedSandbox, forged: Frame
) -> None:
    box.play(Purpose.CANDIDATE, candidate(LOADED[0], forged))
    verdict = evaluate(host)
    malformed = MALFORMED_REPLY["reply-malformed"]
    assert verdict.failure == Failure(ending=Ending.INVALID_RESULT, message=malformed)
    assert len(box.opened) == 2  # the one that generated, and the candidate; no evaluator


@pytest.mark.parametrize("kind", ["verdict", "failed", "from-candidate", "to-candidate", "generated"])
def test_whatever_a_candidate_sends_reaches_the_evaluator_as_a_candidates_words(
    host: EvaluatorHost, box: ScriptedSandbox, kind: str
) -> None:
    forged = frame(kind, b"body", status="scored", metrics=dict.fromkeys(METRICS, 1.0), message="mine")
    box.play(Purpose.CANDIDATE, after_loading(forged, forged, forged))
    played = box.play(Purpose.EVALUATOR, evaluator(frame("verdict", status="invalid", reason="reply-malformed")))
    verdict = evaluate(host)
    assert verdict.metrics is None
    assert [one.type for one in played.received] == ["start", "from-candidate"]
    assert decode(played.received[1].body) == forged


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        (
            {"status": "invalid", "reason": "reply-not-finite"},
            Failure(ending=Ending.INVALID_RESULT, message=MALFORMED_REPLY["reply-not-finite"]),
        ),
        (
            {"status": "invalid", "reason": "17 42 99"},
            Failure(ending=Ending.INVALID_RESULT, message=MALFORMED_REPLY["reply-malformed"]),
        ),
        (
            {"status": "refused", "message": "constant"},
            Failure(ending=Ending.INVALID_RESULT, message="the estimate does not depend on x"),
        ),
        (
            {"status": "raised", "exception": "ValueError", "file": "program.py", "line": 2},
            Failure(ending=Ending.ERROR, exception="ValueError", file="program.py", line=2),
        ),
        (
            {"status": "raised", "exception": "Item42", "file": "items/42", "line": 10**9},
            Failure(ending=Ending.ERROR, exception="Exception"),
        ),
        ({"status": "died", "exit_code": None, "signal": 9}, Failure(ending=Ending.KILLED)),
        ({"status": "died", "exit_code": 3, "signal": None}, Failure(ending=Ending.ERROR)),
        ({"status": "died", "exit_code": 0, "signal": None}, Failure(ending=Ending.NO_RESULT)),
    ],
)
def test_a_verdict_without_a_score_becomes_a_small_failure(
    host: EvaluatorHost, box: ScriptedSandbox, said: dict[str, object], failure: Failure
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(frame("verdict", **said)))
    assert evaluate(host).failure == failure


@pytest.mark.parametrize("ending", [Ending.MEMORY, Ending.TIMEOUT, Ending.PROCESSES, Ending.OUTPUT_LIMIT, Ending.DISK])
def test_a_limit_that_was_met_outweighs_any_score(host: EvaluatorHost, box: ScriptedSandbox, ending: Ending) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate, sees=ending)
    box.play(Purpose.EVALUATOR, evaluator(scored()))
    verdict = evaluate(host)
    assert (verdict.metrics, verdict.failure) == (None, Failure(ending=ending))


def test_a_limit_that_was_met_outweighs_what_a_program_says_of_its_failure(
    host: EvaluatorHost, box: ScriptedSandbox
) -> None:
    said = frame("raised", exception="KeyError", file="program.py", line=2)
    box.play(Purpose.CANDIDATE, candidate(LOADED[0], said), sees=Ending.MEMORY)
    assert evaluate(host).failure == Failure(ending=Ending.MEMORY)
