"""What a candidate sends is charged to the candidate, however it is padded, and never to what carries it."""

from __future__ import annotations

import pytest
from scripted_sandbox import (
    ScriptedSandbox,
    after_loading,
    evaluate,
    evaluator,
    frame,
    honest_candidate,
    scored,
)

from orchestrator.domain.frames import MAX_BODY_BYTES, PREFIX, Frame, decode, decode_head
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Limits, Purpose
from orchestrator.domain.verdicts import Failure
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.messages import MALFORMED_REPLY
from orchestrator.evaluation.requests import task_request
from orchestrator.evaluation.tasks import Task

MALFORMED = Failure(ending=Ending.INVALID_RESULT, message=MALFORMED_REPLY["reply-malformed"])


def as_received(head: bytes, body: bytes = b"") -> Frame:
    return Frame(decode_head(head), body, head)


def test_a_reply_travels_byte_for_byte(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    head = b' {"type":"reply","columns" : [],"x":"' + "\N{SNOWMAN}".encode() * 500 + b'"} '
    box.play(Purpose.CANDIDATE, after_loading(as_received(head, b"body")))
    played = box.play(Purpose.EVALUATOR, evaluator(scored()))
    assert evaluate(host).is_scored
    assert played.received[1].body == PREFIX.pack(len(head), 4) + head + b"body"
    assert decode(played.received[1].body).head["columns"] == []


@pytest.mark.parametrize(
    "reply",
    [
        as_received(b'{"type":"reply","columns":[],"pad":"' + b"x" * 5000 + b'"}'),
        as_received(b'{"type":"reply","columns":[]' + b" " * 5000 + b"}"),
        frame("reply", columns=[], pad="\N{SNOWMAN}" * 5000),
        frame("reply", bytes(MAX_BODY_BYTES), columns=[]),
        frame("reply", bytes(MAX_BODY_BYTES + 1), columns=[]),
    ],
    ids=["padded", "spaced", "snowmen", "no-room-for-the-wrapping", "too-large"],
)
def test_a_reply_that_cannot_be_carried_is_the_candidates_failure(
    host: EvaluatorHost, box: ScriptedSandbox, reply: Frame
) -> None:
    box.play(Purpose.CANDIDATE, after_loading(reply))
    played = box.play(Purpose.EVALUATOR, evaluator(scored()))
    assert evaluate(host).failure == MALFORMED
    assert [one.type for one in played.received] == ["start"]


@pytest.mark.parametrize("ending", [Ending.TIMEOUT, Ending.OUTPUT_LIMIT, Ending.MEMORY])
def test_what_becomes_of_an_evaluator_that_waits_for_a_candidate_that_failed_changes_nothing(
    host: EvaluatorHost, box: ScriptedSandbox, ending: Ending
) -> None:
    box.play(Purpose.CANDIDATE, after_loading(), sees=Ending.TIMEOUT)
    box.play(Purpose.EVALUATOR, evaluator(scored()), sees=ending)
    assert evaluate(host).failure == Failure(ending=Ending.TIMEOUT)


def test_both_containers_are_finished_when_there_is_a_verdict(host: EvaluatorHost, box: ScriptedSandbox) -> None:
    one = box.play(Purpose.CANDIDATE, honest_candidate)
    other = box.play(Purpose.EVALUATOR, evaluator(scored()))
    assert evaluate(host).is_scored
    assert (one.claims, other.claims) == ([Ending.OK], [Ending.OK])


def test_a_candidates_limits_lie_below_its_evaluators(box: ScriptedSandbox, task: Task) -> None:
    grants = dict(box.policy.purposes)
    grants[Purpose.EVALUATOR] = grants[Purpose.EVALUATOR].model_copy(
        update={"limits": Limits(wall_seconds=20, frame_body_bytes=1 << 20, channel_bytes=1 << 20)}
    )
    policy = box.policy.model_copy(update={"purposes": grants})
    request = task_request(policy, task, Purpose.CANDIDATE, "run", "i0-c01", {})
    assert request.limits is not None
    assert request.limits.wall_seconds == 20
    assert request.limits.frame_body_bytes < 1 << 20
    assert request.limits.channel_bytes == 1 << 18
