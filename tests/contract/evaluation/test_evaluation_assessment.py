"""`EvaluatorHost.assess`: what a task's own code says of a candidate beside its metrics."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scripted_sandbox import (
    PROGRAM,
    Answer,
    ScriptedSandbox,
    after_loading,
    candidate,
    evaluator,
    frame,
    generator,
    honest_candidate,
    scored,
)

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Purpose
from orchestrator.domain.verdicts import Assessment, Failure
from orchestrator.errors import EvaluatorCutOff, EvaluatorError, InputError, ProtocolError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import check_task, load_task

DECLARED = "assessment:\n  form: what it is\n  size: how large it is\n"
ASSESS = "\n\ndef assess(program, data, split):\n    return {'form': 'a line', 'size': 2}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = new_task(tmp_path, "small_task")
    for file, text in (("task.yaml", DECLARED), ("evaluator/evaluate.py", ASSESS)):
        with (folder / file).open("a", encoding="utf-8") as end:
            end.write(text)
    return folder


@pytest.fixture
def host(box: ScriptedSandbox, folder: Path, store: SplitStore) -> EvaluatorHost:
    box.play(Purpose.EVALUATOR, generator())
    return EvaluatorHost(box, load_task(folder), "hidden", store)


def assessed(**values: object) -> Answer:
    return frame("verdict", status="assessed", assessment=values)


def assess(host: EvaluatorHost) -> Assessment:
    return host.assess(PROGRAM, run_id="run", attempt_id="assess-i0-c01")


def test_what_the_task_declares_is_what_it_says(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    played = box.play(Purpose.EVALUATOR, evaluator(assessed(size=None, form="a line")))
    assert assess(host) == Assessment(values={"form": "a line", "size": None})
    assert played.received[0].head["mode"] == "assess"
    assert played.claims == [Ending.OK]


@pytest.mark.parametrize("limit", [Ending.TIMEOUT, Ending.MEMORY])
def test_a_limit_that_the_tasks_code_meets_is_told_and_no_error(
    host: EvaluatorHost, box: ScriptedSandbox, limit: Ending
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(), sees=limit)
    assert assess(host) == Assessment(cut_off=limit.value)
    with pytest.raises(EvaluatorCutOff, match=limit.value):
        host.evaluate(PROGRAM, run_id="run", attempt_id="i0-c01")


def test_a_candidate_that_waited_too_long_is_assessed_all_the_same(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate, sees=Ending.TIMEOUT)
    box.play(Purpose.EVALUATOR, evaluator(assessed(form="a line", size=2.5)))
    assert assess(host).values == {"form": "a line", "size": 2.5}


def test_a_program_that_fails_has_its_failure(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, candidate(frame("rejected", reason="import-not-allowed", file=None, line=None)))
    failure = assess(host).failure
    assert failure is not None
    assert failure.ending is Ending.ERROR


def test_a_program_that_meets_a_limit_is_not_believed(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, after_loading(), sees=Ending.MEMORY)
    box.play(Purpose.EVALUATOR, evaluator(assessed(form="a line", size=2)))
    assert assess(host) == Assessment(failure=Failure(ending=Ending.MEMORY))


@pytest.mark.parametrize(
    ("answer", "error", "complaint"),
    [
        (assessed(form="a line"), EvaluatorError, "`assessment` declares"),
        (assessed(form="a line", size=1, more=1), EvaluatorError, "`assessment` declares"),
        (assessed(form="a line", size=math.inf), EvaluatorError, "assesses size as inf"),
        (assessed(form=["a line"], size=1), EvaluatorError, "assesses form as"),
        (frame("verdict", status="assessed"), EvaluatorError, "assesses None"),
        (scored(), ProtocolError, "status 'scored'"),
        (frame("failed", message="KeyError: 3"), EvaluatorError, "failed: KeyError: 3"),
    ],
)
def test_what_is_not_declared_is_the_tasks_mistake(
    host: EvaluatorHost, box: ScriptedSandbox, answer: Answer, error: type[Exception], complaint: str
) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(answer))
    with pytest.raises(error, match=complaint):
        assess(host)


def test_an_assessment_is_no_score(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    box.play(Purpose.CANDIDATE, honest_candidate)
    box.play(Purpose.EVALUATOR, evaluator(assessed(form="a line", size=2)))
    with pytest.raises(ProtocolError, match="status 'assessed'"):
        host.evaluate(PROGRAM, run_id="run", attempt_id="i0-c01")


def test_a_task_without_an_assessment_says_so(box: ScriptedSandbox, tmp_path: Path, store: SplitStore) -> None:
    host = EvaluatorHost(box, load_task(new_task(tmp_path, "plain_task")), "hidden", store)
    with pytest.raises(InputError, match="'plain_task' has no assessment"):
        assess(host)


def test_a_declared_assessment_needs_its_function(folder: Path) -> None:
    assert check_task(folder) == []
    code = folder / "evaluator" / "evaluate.py"
    code.write_text(code.read_text(encoding="utf-8").removesuffix(ASSESS), encoding="utf-8")
    (problem,) = check_task(folder)
    assert "defines no function 'assess'" in problem


def test_a_final_choice_is_made_by_declared_metrics(folder: Path) -> None:
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    for size, rule, problems in (("ast_nodes", "paper", 0), ("length", "exact", 1), ("ast_nodes", "fitness", 1)):
        choice = f"final_choice: {{rule: {rule}, error: error, size: {size}}}\n"
        (folder / "task.yaml").write_text(text + choice, encoding="utf-8")
        assert len(check_task(folder)) == problems, (size, rule)
