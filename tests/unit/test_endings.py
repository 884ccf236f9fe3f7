"""From evidence to ending: the measured cases of the sandbox specification, and what must always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.outcomes import Ending
from orchestrator.sandbox.endings import Evidence, classify, foreign_act

maybe_line = st.none() | st.just("met")
evidences = st.builds(
    Evidence,
    memory=maybe_line,
    processes=maybe_line,
    excess=maybe_line,
    wall=maybe_line,
    cpu=maybe_line,
    violation=maybe_line,
    ended_by_itself=st.booleans(),
    exit_code=st.none() | st.integers(0, 255),
)
claims = st.sampled_from(list(Ending))


def ending(claim: Ending = Ending.NO_RESULT, **evidence: object) -> Ending:
    return classify(Evidence(**evidence), claim)[0]  # type: ignore[arg-type]  # keyword arguments of Evidence


def test_a_main_process_out_of_memory_is_memory() -> None:
    assert ending(exit_code=137, memory="met", ended_by_itself=True) is Ending.MEMORY


def test_a_child_out_of_memory_is_memory_although_the_parent_went_on_and_claims_success() -> None:
    assert ending(Ending.OK, exit_code=0, memory="met", ended_by_itself=True) is Ending.MEMORY


def test_an_exit_with_137_without_the_out_of_memory_flag_is_killed() -> None:
    assert ending(exit_code=137, ended_by_itself=True) is Ending.KILLED


def test_a_failed_attempt_on_pid_1_that_then_exits_with_0_is_no_result() -> None:
    assert ending(exit_code=0, ended_by_itself=True) is Ending.NO_RESULT


def test_an_exit_with_0_without_a_result_is_never_ok() -> None:
    assert ending(exit_code=0, ended_by_itself=True) is not Ending.OK


def test_an_exit_with_another_code_is_an_error() -> None:
    assert ending(exit_code=3, ended_by_itself=True) is Ending.ERROR


def test_a_forged_success_that_then_exits_with_an_error_is_an_error() -> None:
    assert ending(Ending.OK, exit_code=1, ended_by_itself=True) is Ending.ERROR


def test_the_code_of_our_own_kill_says_nothing() -> None:
    assert ending(Ending.OK, exit_code=137, ended_by_itself=False) is Ending.OK
    assert ending(Ending.NO_RESULT, exit_code=137, ended_by_itself=False) is Ending.NO_RESULT


def test_a_success_that_ends_itself_cleanly_is_ok() -> None:
    assert ending(Ending.OK, exit_code=0, ended_by_itself=True) is Ending.OK


def test_an_unknown_exit_code_leaves_the_claim() -> None:
    assert ending(Ending.OK, exit_code=None, ended_by_itself=True) is Ending.OK


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("memory", Ending.MEMORY),
        ("wall", Ending.TIMEOUT),
        ("cpu", Ending.TIMEOUT),
        ("processes", Ending.PROCESSES),
        ("excess", Ending.OUTPUT_LIMIT),
        ("violation", Ending.INVALID_RESULT),
    ],
)
@pytest.mark.parametrize("claim", list(Ending))
def test_a_limit_overrides_every_claim_and_is_named_in_the_detail(limit: str, expected: Ending, claim: Ending) -> None:
    found, detail = classify(Evidence(**{limit: "the line"}, exit_code=137), claim)  # type: ignore[arg-type]  # a text
    assert found is expected
    assert "the line" in detail


@pytest.mark.parametrize("claim", [Ending.ERROR, Ending.INVALID_RESULT, Ending.DISK])
def test_without_a_limit_the_claim_of_a_failure_stands(claim: Ending) -> None:
    assert ending(claim, exit_code=0, ended_by_itself=True) is claim


@given(evidences, claims)
def test_ok_needs_the_claim_and_no_event_against_it(evidence: Evidence, claim: Ending) -> None:
    if classify(evidence, claim)[0] is Ending.OK:
        assert claim is Ending.OK
        assert evidence.memory is None
        assert (evidence.processes, evidence.excess, evidence.wall, evidence.cpu, evidence.violation) == (None,) * 5
        assert not (evidence.ended_by_itself and evidence.exit_code)


@given(evidences, claims)
def test_everything_but_a_clean_success_has_one_line_of_detail(evidence: Evidence, claim: Ending) -> None:
    found, detail = classify(evidence, claim)
    assert "\n" not in detail
    assert bool(detail) is (found is not Ending.OK)


@pytest.mark.parametrize("action", ["kill", "stop", "destroy", "pause"])
def test_an_act_of_somebody_else_is_told_from_the_containers_own_end(action: str) -> None:
    assert foreign_act([{"Action": "create"}, {"Action": "start"}, {"Action": action}, {"Action": "die"}]) == action


def test_a_container_that_ended_alone_shows_no_act_of_anybody() -> None:
    events = [{"Action": action} for action in ("create", "attach", "start", "oom", "die", "exec_create: sh")]
    assert foreign_act(events) is None
