"""What the journal keeps of domain values is all of them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.records import from_record, request_digest, to_record
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.errors import RunStateError
from orchestrator.ports import AnalysisResult

texts = st.text(max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 1 << 50)
outcomes = st.builds(
    Outcome,
    ending=st.sampled_from(Ending),
    exit_code=st.none() | st.integers(0, 255),
    wall_seconds=finite,
    cpu_seconds=st.none() | finite,
    memory_peak_bytes=st.none() | counts,
    output=st.binary(max_size=60),
    output_truncated=st.booleans(),
    detail=texts,
)
failures = st.builds(
    Failure,
    ending=st.sampled_from(Ending),
    exception=st.none() | texts,
    line=st.none() | counts,
    file=st.none() | texts,
)
verdicts = st.builds(
    Verdict,
    split=texts,
    metrics=st.none() | st.dictionaries(texts, finite, max_size=3),
    failure=st.none() | failures,
    secret=st.booleans(),
    outcome=outcomes,
    fingerprint=st.dictionaries(texts, texts, max_size=3),
)
usages = st.builds(
    Usage,
    input_tokens=counts,
    cached_input_tokens=counts,
    output_tokens=counts,
    usd=st.none() | st.decimals(0, 1000, places=8),
)
json_values = st.recursive(st.none() | st.booleans() | st.integers() | finite | texts, st.lists, max_leaves=4)
arguments = st.dictionaries(texts, json_values, max_size=3)
tool_calls = st.builds(ToolCall, id=texts, name=texts, arguments=st.none() | arguments, raw_arguments=texts)
assistants = st.builds(AssistantMessage, text=texts, tool_calls=st.lists(tool_calls, max_size=2).map(tuple))
results = st.builds(ToolResult, call_id=texts, text=texts, is_error=st.booleans())
messages = (
    st.builds(UserMessage, text=texts)
    | assistants
    | st.builds(ToolMessage, results=st.lists(results, max_size=2).map(tuple))
)
conversations = st.builds(Conversation, system=texts, messages=st.lists(messages, max_size=4).map(tuple))
replies = st.builds(Reply, message=assistants, usage=usages, stop=st.sampled_from(StopReason))
analyses = st.builds(AnalysisResult, output=st.binary(max_size=60), omitted_bytes=counts, outcome=outcomes)
KINDS: list[tuple[type[Any], st.SearchStrategy[Any]]] = [
    (Outcome, outcomes),
    (Verdict, verdicts),
    (Usage, usages),
    (Reply, replies),
    (Conversation, conversations),
    (AnalysisResult, analyses),
]


@pytest.mark.parametrize(("kind", "strategy"), KINDS, ids=[kind.__name__ for kind, _ in KINDS])
@given(data=st.data())
def test_a_value_comes_back_from_its_record(
    kind: type[Any], strategy: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(strategy)
    record = json.loads(json.dumps(to_record(value), allow_nan=False))
    back = from_record(kind, record)
    assert back == value
    assert to_record(back) == record


def test_an_unknown_price_stays_unknown_and_a_known_one_exact() -> None:
    assert to_record(Usage(usd=None))["usd"] is None
    assert from_record(Usage, to_record(Usage(usd=Decimal("0.10000000000000000001")))).usd == Decimal(
        "0.10000000000000000001"
    )


def test_every_field_of_an_audit_record_is_in_its_record() -> None:
    fields = set(AuditRecord.__dataclass_fields__)
    values: dict[str, Any] = dict.fromkeys(fields, "x") | {"uid": 1, "limits": {"pids": 4}, "mounts": {"task": "d"}}
    values |= {"exit_code": None, "wall_seconds": 0.5, "cpu_seconds": None, "memory_peak_bytes": None}
    assert to_record(AuditRecord(**values)) == values


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused_before_it_is_recorded(number: float) -> None:
    outcome = from_record(Outcome, OUTCOME)
    verdict = Verdict(split="hidden", metrics={"fitness": number}, failure=None, secret=True, outcome=outcome)
    with pytest.raises(ValueError, match="only finite numbers can"):
        to_record(verdict)


OUTCOME: dict[str, Any] = {
    "ending": "ok",
    "exit_code": 0,
    "wall_seconds": 1.0,
    "cpu_seconds": None,
    "memory_peak_bytes": None,
    "output": "",
    "output_truncated": False,
}


@pytest.mark.parametrize("change", [{"ending": "fine"}, {"wall_seconds": None}, {"output": "not base64!"}])
def test_a_record_of_something_else_is_an_error_of_the_run(change: dict[str, Any]) -> None:
    assert from_record(Outcome, OUTCOME).ending is Ending.OK
    with pytest.raises(RunStateError, match="journal record is no Outcome"):
        from_record(Outcome, OUTCOME | change)


TOOL = ToolSpec(name="commit", description="d", parameters={"type": "object"})


@given(conversations, conversations)
def test_requests_have_equal_digests_exactly_when_they_are_equal(one: Conversation, other: Conversation) -> None:
    sampling = Sampling(seed=1)
    equal = to_record(one) == to_record(other)
    assert (request_digest(one, [TOOL], sampling) == request_digest(other, [TOOL], sampling)) == equal


def test_everything_a_model_is_given_is_in_the_digest() -> None:
    conversation = Conversation(system="s", messages=(UserMessage(text="u"),))
    digests = {
        request_digest(conversation, [TOOL], Sampling(seed=1)),
        request_digest(conversation.plus(UserMessage(text="v")), [TOOL], Sampling(seed=1)),
        request_digest(conversation, [], Sampling(seed=1)),
        request_digest(conversation, [TOOL], Sampling(seed=2)),
        request_digest(conversation, [TOOL], Sampling(seed=1, temperature=0.5)),
        request_digest(Conversation(system="", messages=conversation.messages), [TOOL], Sampling(seed=1)),
    }
    assert len(digests) == 6


@given(usages, usages)
def test_usage_adds_up_and_an_unknown_price_stays_unknown(one: Usage, other: Usage) -> None:
    both = one + other
    assert both.tokens == one.tokens + other.tokens
    assert (both.usd is None) == (one.usd is None or other.usd is None)
