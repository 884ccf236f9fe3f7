"""The circuit breaker as a state machine; all times are arguments, so an outage takes as long as it has to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.providers.circuit import Circuit, Pace, Way
from orchestrator.llm.providers.wire import Failure, Fault

DOWN = Failure(fault=Fault.OUTAGE, message="HTTP 500")
BUSY = Failure(fault=Fault.RATE, message="HTTP 429")
PATIENCE = 600.0


def wait_for(seconds: float) -> Failure:
    return Failure(fault=Fault.RATE, message="HTTP 429", retry_after=seconds)


def opened(at: float = 0.0) -> Circuit:
    circuit = Circuit(Pace())
    for _ in range(5):
        circuit.failed(at, DOWN, is_probe=False)
    return circuit


def test_it_opens_at_the_fifth_failure_in_a_row() -> None:
    circuit = Circuit(Pace())
    assert [circuit.failed(0.0, DOWN, is_probe=False) for _ in range(5)] == [False, False, False, False, True]
    assert circuit.admit(0.0, PATIENCE).way is Way.WAIT_FOR_ALL


def test_an_answer_in_between_begins_the_row_anew() -> None:
    circuit = Circuit(Pace())
    for _ in range(4):
        circuit.failed(0.0, DOWN, is_probe=False)
    assert not circuit.answered(is_probe=False)
    for _ in range(4):
        assert not circuit.failed(0.0, DOWN, is_probe=False)
    assert circuit.admit(0.0, PATIENCE).way is Way.CALL


def test_five_hundreds_for_ten_minutes_are_a_handful_of_probes_and_then_the_end() -> None:
    circuit = opened()
    probes = []
    now = 0.0
    while (admission := circuit.admit(now, PATIENCE)).way is not Way.GIVE_UP:
        if admission.way is Way.PROBE:
            probes.append(now)
            circuit.failed(now, DOWN, is_probe=True)
        else:
            assert admission.until > now
            now = admission.until
    assert now == PATIENCE
    assert probes == [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363, 423, 483, 543]


def test_there_is_one_probe_at_a_time() -> None:
    circuit = opened()
    assert circuit.admit(1.0, PATIENCE).way is Way.PROBE
    assert [circuit.admit(1.0 + after, PATIENCE).way for after in (0.0, 1.0, 500.0)] == [Way.WAIT_FOR_ALL] * 3
    circuit.abandoned()
    assert circuit.admit(1.0, PATIENCE).way is Way.PROBE


def test_a_probe_that_is_answered_lets_everybody_go_on() -> None:
    circuit = opened()
    assert circuit.admit(1.0, PATIENCE).way is Way.PROBE
    assert circuit.answered(is_probe=True)
    assert [circuit.admit(1.0, PATIENCE).way for _ in range(3)] == [Way.CALL] * 3


def test_an_answer_that_began_before_the_outage_ends_it_not() -> None:
    circuit = opened()
    assert not circuit.answered(is_probe=False)
    assert circuit.admit(0.5, PATIENCE).way is Way.WAIT_FOR_ALL


def test_a_failure_that_began_before_the_outage_makes_no_pause_longer() -> None:
    circuit = opened()
    circuit.failed(0.5, DOWN, is_probe=False)
    assert circuit.admit(1.0, PATIENCE).way is Way.PROBE


def test_who_comes_after_the_end_may_still_probe_when_a_probe_is_due() -> None:
    circuit = opened()
    assert circuit.admit(700.0, PATIENCE).way is Way.PROBE
    circuit.failed(700.0, DOWN, is_probe=True)
    assert circuit.admit(700.5, PATIENCE).way is Way.GIVE_UP


def test_a_server_that_says_when_to_come_back_is_no_outage_and_left_alone_until_then() -> None:
    circuit = Circuit(Pace())
    assert not any(circuit.failed(0.0, wait_for(30.0), is_probe=False) for _ in range(20))
    admission = circuit.admit(10.0, PATIENCE)
    assert (admission.way, admission.until) == (Way.WAIT_FOR_RATE, 30.0)


def test_one_that_does_not_say_is() -> None:
    circuit = Circuit(Pace())
    assert [circuit.failed(0.0, BUSY, is_probe=False) for _ in range(5)][-1]


def test_after_the_wait_calls_come_one_after_the_other() -> None:
    circuit = Circuit(Pace(gap=0.25))
    circuit.failed(0.0, wait_for(10.0), is_probe=False)
    assert circuit.admit(10.0, PATIENCE).way is Way.CALL
    assert circuit.admit(10.0, PATIENCE).way is Way.WAIT_FOR_RATE
    assert circuit.admit(10.25, PATIENCE).way is Way.CALL
    circuit.failed(10.3, wait_for(10.0), is_probe=False)
    assert circuit.admit(20.0, PATIENCE).until == 20.3


def test_long_after_the_wait_they_come_at_once_again() -> None:
    circuit = Circuit(Pace(gap=0.25, gaps_for=60.0))
    circuit.failed(0.0, wait_for(10.0), is_probe=False)
    assert [circuit.admit(70.0, PATIENCE).way for _ in range(3)] == [Way.CALL] * 3


def test_a_probe_obeys_what_the_server_asks_for() -> None:
    circuit = opened()
    circuit.admit(1.0, PATIENCE)
    circuit.failed(1.0, Failure(fault=Fault.OUTAGE, message="HTTP 503", retry_after=120.0), is_probe=True)
    assert circuit.admit(120.9, PATIENCE).way is Way.WAIT_FOR_ALL
    assert circuit.admit(121.0, PATIENCE).way is Way.PROBE


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from([DOWN, BUSY, wait_for(5.0), None])), max_size=60))
def test_an_open_breaker_never_lets_two_call(events: list[tuple[float, Failure | None]]) -> None:
    circuit = Circuit(Pace())
    now = 0.0
    is_probing = False
    for seconds, failure in events:
        now += seconds
        way = circuit.admit(now, PATIENCE).way
        was_open = circuit.opened_at is not None
        assert was_open or way in (Way.CALL, Way.WAIT_FOR_RATE)
        assert not was_open or way is not Way.CALL
        assert not (is_probing and way is Way.PROBE)
        is_probing = is_probing or way is Way.PROBE
        if way in (Way.CALL, Way.PROBE):
            second = circuit.admit(now, PATIENCE).way
            assert way is Way.CALL or second in (Way.WAIT_FOR_ALL, Way.GIVE_UP)
            if failure is None:
                circuit.answered(is_probe=is_probing)
            else:
                circuit.failed(now, failure, is_probe=is_probing)
            is_probing = False
