"""What may reach a model: a table of cases, and the property that nothing of a candidate's own words does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Disclosure
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.claims import EXCEPTION_NAMES
from orchestrator.evaluation.disclosure import DisclosedFailure, Feedback, TaskDisclosure, analysis_text, disclose
from orchestrator.evaluation.messages import OWN_MESSAGES
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.ports import AnalysisResult

OPEN = Disclosure()
STRICT = Disclosure(metric_digits=4, failure_line=False, evaluator_messages=False)
METRICS = {"fitness": 0.123456789, "error": 7.1, "ast_nodes": 0.25, "bias": 0.5}
OWN_TEXT = "a returned value is not finite"
REFUSAL = "the estimate does not depend on x"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return load_task(new_task(tmp_path_factory.mktemp("tasks"), "small_task"))


def outcome(output: bytes = b"") -> Outcome:
    return Outcome(
        ending=Ending.OK,
        exit_code=0,
        wall_seconds=1.0,
        cpu_seconds=1.0,
        memory_peak_bytes=1,
        output=output,
        output_truncated=False,
        detail="secret detail",
    )


def verdict(
    *, metrics: Mapping[str, float] | None = None, failure: Failure | None = None, output: bytes = b""
) -> Verdict:
    return Verdict(
        split="hidden",
        metrics=metrics,
        failure=failure,
        secret=True,
        outcome=outcome(output),
        fingerprint={"data": "sha256:secret"},
    )


def failed(**fields: object) -> DisclosedFailure:
    return DisclosedFailure(**{"exception": None, "file": None, "line": None, "message": None, **fields})  # type: ignore[arg-type]


RAISED = Failure(ending=Ending.ERROR, exception="KeyError", file="program.py", line=3)

CASES = [
    (RAISED, OPEN, failed(ending="error", exception="KeyError", file="program.py", line=3)),
    (RAISED, STRICT, failed(ending="error", exception="KeyError", file="program.py")),
    (
        Failure(ending=Ending.ERROR, exception="Leak_4711", file="program.py", line=3),
        OPEN,
        failed(ending="error", exception="Exception", file="program.py", line=3),
    ),
    (
        Failure(ending=Ending.ERROR, exception="OSError", file="items_42_17.py", line=3),
        OPEN,
        failed(ending="error", exception="OSError"),
    ),
    (
        Failure(ending=Ending.ERROR, exception="OSError", file="program.py", line=1 << 40),
        OPEN,
        failed(ending="error", exception="OSError", file="program.py"),
    ),
    (
        Failure(ending=Ending.INVALID_RESULT, message=OWN_TEXT),
        STRICT,
        failed(ending="invalid-result", message=OWN_TEXT),
    ),
    (Failure(ending=Ending.INVALID_RESULT, message=REFUSAL), OPEN, failed(ending="invalid-result", message=REFUSAL)),
    (Failure(ending=Ending.INVALID_RESULT, message=REFUSAL), STRICT, failed(ending="invalid-result")),
    (Failure(ending=Ending.INVALID_RESULT, message="42 17 99"), OPEN, failed(ending="invalid-result")),
    (Failure(ending=Ending.TIMEOUT), OPEN, failed(ending="timeout")),
]


@pytest.mark.parametrize(("failure", "disclosure", "expected"), CASES)
def test_of_a_failure_only_fixed_words_and_a_place_are_told(
    task: Task, failure: Failure, disclosure: Disclosure, expected: DisclosedFailure
) -> None:
    assert disclose(verdict(failure=failure), disclosure, task) == Feedback(metrics=None, failure=expected)


def test_metrics_are_told_unrounded_unless_the_policy_rounds_them(task: Task) -> None:
    scored = verdict(metrics=METRICS)
    assert disclose(scored, OPEN, task) == Feedback(metrics=METRICS, failure=None)
    assert disclose(scored, STRICT, task).metrics == METRICS | {"fitness": 0.1235}


def test_a_metric_that_the_task_does_not_declare_is_left_out(task: Task) -> None:
    told = disclose(verdict(metrics=METRICS | {"item_1": 42.0, "bias": math.nan}), OPEN, task).metrics
    assert told == {name: METRICS[name] for name in ("fitness", "error", "ast_nodes")}


def test_what_a_formal_evaluation_printed_is_withheld(task: Task) -> None:
    for case in (verdict(metrics=METRICS, output=b"CANARY"), verdict(failure=RAISED, output=b"CANARY")):
        told = repr(TaskDisclosure(OPEN, task).verdict(case))
        assert "CANARY" not in told
        assert "secret" not in told


def test_what_methods_are_given_is_plain_json(task: Task) -> None:
    told = TaskDisclosure(OPEN, task).verdict(verdict(failure=RAISED))
    assert json.loads(json.dumps(told)) == {
        "metrics": None,
        "failure": {"ending": "error", "exception": "KeyError", "file": "program.py", "line": 3, "message": None},
    }


anything = st.none() | st.text()
failures = st.builds(
    Failure,
    ending=st.sampled_from([ending for ending in Ending if ending is not Ending.OK]),
    exception=anything,
    file=anything,
    line=st.none() | st.integers(),
    message=anything,
)


@given(failures, st.sampled_from([OPEN, STRICT]), st.binary())
def test_no_text_of_a_candidate_is_ever_told(
    task: Task, failure: Failure, disclosure: Disclosure, output: bytes
) -> None:
    told = disclose(verdict(failure=failure, output=output), disclosure, task).failure
    assert told is not None
    assert told.ending in {ending.value for ending in Ending}
    assert told.exception is None or told.exception in EXCEPTION_NAMES
    assert told.file is None or told.file in task.initial
    assert told.line is None or (told.file is not None and 1 <= told.line <= 1 << 20)
    assert told.message is None or told.message in OWN_MESSAGES | set(task.spec.messages.values())


@given(st.dictionaries(st.text(), st.floats()), st.integers(1, 17) | st.none())
def test_only_declared_finite_figures_are_told(task: Task, metrics: dict[str, float], digits: int | None) -> None:
    told = disclose(verdict(metrics=METRICS | metrics), Disclosure(metric_digits=digits), task).metrics
    assert told is not None
    assert set(told) <= task.metric_names
    assert all(map(math.isfinite, told.values()))


def printed(output: bytes, omitted: int = 0) -> AnalysisResult:
    return AnalysisResult(output=output, omitted_bytes=omitted, outcome=outcome())


SHORT = Disclosure(analysis_head_characters=120, analysis_tail_characters=40)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (printed(b""), ""),
        (printed(b"a" * 160), "a" * 160),
        (printed(b"a" * 120 + b"b" + b"c" * 40), "a" * 120 + "\n[1 characters cut here]\n" + "c" * 40),
        (printed(b"\xffok"), "\ufffdok"),
        (printed("ä".encode() * 160), "ä" * 160),
        (printed(b"a" * 75 + b"c" * 25, 3000), "a" * 75 + "\n[3,000 bytes cut here]\n" + "c" * 25),
        (
            printed(b"a" * 300 + b"c" * 100, 3000),
            "a" * 120 + "\n[240 characters and 3,000 bytes cut here]\n" + "c" * 40,
        ),
    ],
)
def test_the_middle_of_a_long_analysis_is_cut_and_it_is_said_how_much(result: AnalysisResult, expected: str) -> None:
    assert analysis_text(result, SHORT) == expected


def test_no_tail_is_shown_when_the_policy_grants_none() -> None:
    none = Disclosure(analysis_head_characters=100, analysis_tail_characters=0)
    assert analysis_text(printed(b"a" * 101), none) == "a" * 100 + "\n[1 characters cut here]\n"


def test_the_default_shows_the_first_12000_and_the_last_4000_characters() -> None:
    text = analysis_text(printed(b"a" * 50_000 + b"c" * 4000), OPEN)
    assert text == "a" * 12_000 + "\n[38,000 characters cut here]\n" + "c" * 4000


@given(st.binary(max_size=600), st.integers(0, 10**9), st.integers(100, 200), st.integers(0, 200))
def test_the_text_of_an_analysis_is_bounded(output: bytes, omitted: int, head: int, tail: int) -> None:
    disclosure = Disclosure(analysis_head_characters=head, analysis_tail_characters=tail)
    text = analysis_text(printed(output, omitted), disclosure)
    assert len(text) <= head + tail + 100
    assert text.encode().decode() == text
