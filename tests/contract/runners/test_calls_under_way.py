"""Several calls under way at once, between the real runners and against a candidate that answers what it likes."""

from __future__ import annotations

import textwrap
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.frames import Frame, decode, encode

if TYPE_CHECKING:
    from conftest import Launch

FUNCTIONS = {
    "f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64"}},
    "g": {
        "arguments": [{"name": "v", "dtype": "float64", "ragged": True}],
        "returns": {"dtype": "float64", "like": "v"},
    },
}
PROGRAM = """
calls = 0
def f(x):
    global calls
    calls += 1
    if x < 0:
        raise KeyError(x)
    return x + calls / 10
def g(v):
    return v * 2
"""
HEADER = """
import numpy as np
from evaluator_api import MAX_PENDING, Program, Ragged, Refused

"""
OPENED = Frame({"type": "opened"})


def reply(value: bytes = bytes(8)) -> Frame:
    return Frame({"type": "reply", "columns": [{"name": "returns", "dtype": "float64", "ragged": False}]}, value)


class Play:
    """An evaluator whose questions are all taken before any is answered, as far as it asks ahead."""

    def __init__(self, launch: Launch, folder: Path) -> None:
        self._launch = launch
        self._folder = folder

    def evaluate(self, body: str, *answers: Frame | bytes, ahead: int = 1, ended: bool = False) -> dict[str, Any]:
        """The verdict.

        Args:
            body: Of `evaluate`, with two copies open as `instances`.
            answers: The candidate's after `opened`; none: those of the real runner with `PROGRAM`.
            ahead: Calls that are taken before the first of all is answered.
            ended: Whether the candidate has ended after these answers.
        """
        evaluator = self._folder / "evaluator"
        evaluator.mkdir()
        (self._folder / "data").mkdir()
        inner = textwrap.indent(textwrap.dedent(body), " " * 8)
        source = f"{HEADER}\ndef evaluate(program, data, split):\n    with program.open(2) as instances:\n{inner}\n"
        (evaluator / "evaluate.py").write_text(source)
        runner = self._launch("evaluator", "--task", str(self._folder))
        size = {"nodes": 1, "lines": 1}
        frame = runner.ask({"type": "start", "split": "hidden", "functions": FUNCTIONS, "program": size})
        assert decode(frame.body).type == "open"
        given, candidate = deque(answers), None
        if not answers and not ended:
            candidate = self._launch("python")
            candidate.start({"program.py": PROGRAM}, entry="program.py", functions=FUNCTIONS)
            candidate.receive()
            assert candidate.ask({"type": "open", "instances": 2}) == OPENED
        frame = runner.ask({"type": "from-candidate"}, encode(OPENED))
        questions: deque[Frame] = deque()
        while frame.type == "to-candidate":
            questions.append(decode(frame.body))
            if len(questions) < ahead:
                following = runner.receive()
                assert following is not None
                frame = following
                continue
            ahead = 1
            for question in questions:
                if candidate is not None:
                    given.append(candidate.ask(question.head, question.body))
                if not given:
                    runner.send({"type": "candidate-ended"})
                    break
                answer = given.popleft()
                runner.send({"type": "from-candidate"}, encode(answer) if isinstance(answer, Frame) else answer)
            questions.clear()
            received = runner.receive()
            assert received is not None, runner.end()
            frame = received
        return dict(frame.head)


@pytest.fixture
def play(launch: Launch, tmp_path: Path) -> Play:
    return Play(launch, tmp_path)


def test_calls_are_made_in_the_order_in_which_they_begin_whichever_result_is_taken_first(play: Play) -> None:
    body = """
        first = instances.begin("f", [0, 1], x=[10, 20])
        second = instances.begin("f", [0], x=[30])
        assert second.result().tolist() == [30.2]
        assert first.result().tolist() == [10.1, 20.1]
        assert first.result() is first.result()
        assert instances.call("f", [1], x=[5]).tolist() == [5.2]
        return {"m": 1.0}
    """
    assert play.evaluate(body, ahead=2) == {"type": "verdict", "status": "scored", "metrics": {"m": 1.0}}


def test_a_call_for_no_instance_is_answered_at_once(play: Play) -> None:
    body = """
        empty = instances.begin("g", [], v=Ragged([], []))
        assert len(empty.result().values) == 0
        return {"m": 1.0}
    """
    assert play.evaluate(body)["status"] == "scored"


def test_large_calls_and_replies_do_not_wait_for_each_other(play: Play) -> None:
    body = """
        values = np.arange(400_000.0)
        calls = [instances.begin("g", [k % 2], v=Ragged(values + k, [400_000])) for k in range(6)]
        assert all((call.result().values == 2 * (values + k)).all() for k, call in enumerate(calls))
        return {"m": 1.0}
    """
    assert play.evaluate(body)["status"] == "scored"


@pytest.mark.parametrize("end", ["return {'m': 1.0}", "raise Refused('constant')"], ids=["scored", "refused"])
def test_a_call_whose_result_nobody_takes_still_counts(play: Play, end: str) -> None:
    body = f"""
        instances.begin("f", [0], x=[1])
        instances.begin("f", [1], x=[-1])
        {end}
    """
    verdict = play.evaluate(body, ahead=2)
    assert (verdict["status"], verdict.get("exception")) == ("raised", "KeyError")


def test_a_task_that_begins_too_many_calls_has_failed(play: Play) -> None:
    verdict = play.evaluate("return [instances.begin('f', [0], x=[k]) for k in range(MAX_PENDING + 1)]", ahead=17)
    assert verdict["type"] == "failed"
    assert "16 calls are under way; take the result of one" in verdict["message"]


TWO = """
first = instances.begin("f", [0], x=[1])
second = instances.begin("f", [1], x=[2])
second.result()
return {"m": 1.0}
"""


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([reply(bytes(16)), reply()], {"status": "invalid", "reason": "reply-malformed"}),
        ([reply(), OPENED], {"status": "invalid", "reason": "reply-malformed"}),
        ([b"no frame", reply()], {"status": "invalid", "reason": "reply-malformed"}),
        ([Frame({"type": "verdict", "status": "scored"}), reply()], {"status": "invalid", "reason": "reply-malformed"}),
        (
            [reply(), Frame({"type": "died", "exit_code": None, "signal": 9, "instance": 1})],
            {"status": "died", "exit_code": None, "signal": 9},
        ),
    ],
    ids=["for-two", "opened", "no-frame", "verdict", "died"],
)
def test_an_answer_out_of_turn_is_the_candidates_failure(
    play: Play, answers: list[Frame | bytes], verdict: dict[str, Any]
) -> None:
    assert play.evaluate(TWO, *answers, ahead=2) == {"type": "verdict", **verdict}


def test_a_candidate_that_ended_is_judged_by_its_answers_before(play: Play) -> None:
    assert play.evaluate(TWO, reply(), ahead=2, ended=True) == {"type": "verdict", "status": "ended"}


def test_an_invalid_answer_comes_before_the_end(play: Play) -> None:
    verdict = play.evaluate(TWO, reply(b"\xff" * 8), ahead=2, ended=True)
    assert verdict == {"type": "verdict", "status": "invalid", "reason": "reply-not-finite"}


def test_the_end_ends_an_evaluation_that_asks_one_call_at_a_time_too(play: Play) -> None:
    body = 'instances.call("f", [0], x=[1])\nreturn {"m": 1.0}'
    assert play.evaluate(body, ended=True) == {"type": "verdict", "status": "ended"}
