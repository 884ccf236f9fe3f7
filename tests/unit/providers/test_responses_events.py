"""The events of OpenAI's responses, in whatever order they come, and what of them is missing."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.conversation import ToolCall
from tests.model_servers.base import Call, Turn
from tests.model_servers.responses_client import item, part, raw, reply, response, said

CALL = {"type": "function_call", "call_id": "c", "name": "bash"}
EVENTS = [
    item("added", 0, type="message"),
    part("output_text", "Y", 0, content_index=0),
    item("added", 1, **CALL, arguments=""),
    part("function_call_arguments", '{"a":', 1),
    part("output_text", "es.", 0, content_index=0),
    part("function_call_arguments", " 1}", 1),
]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(EVENTS, id="interleaved and never done"),
        pytest.param([EVENTS[1], EVENTS[4], EVENTS[0], EVENTS[3], EVENTS[5], EVENTS[2]], id="begun last"),
        pytest.param([*said("Yes."), *EVENTS[:2], item("done", 1, **CALL, arguments='{"a": 1}')], id="done first"),
        pytest.param([*said("Yes."), item("done", 1, **CALL, arguments={"a": 1})], id="an object as arguments"),
        pytest.param(
            [
                {"type": "response.output_text.done", "output_index": 0, "text": "Yes."},
                item("added", 1, **CALL),
                {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"a": 1}'},
            ],
            id="wholes without pieces",
        ),
        pytest.param([{k: v for k, v in each.items() if k != "output_index"} for each in EVENTS], id="by id"),
        pytest.param(
            [EVENTS[2], *EVENTS[3:4], EVENTS[5], item("added", 0, type="message"), EVENTS[1], EVENTS[4]],
            id="the second first",
        ),
        pytest.param(
            [
                {"type": "response.next_year.delta", "output_index": 0, "delta": "x"},
                item("done", 2, type="web_search_call", status="completed"),
                {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {}},
                {"type": "keepalive"},
                *EVENTS,
            ],
            id="unknown events and items",
        ),
        pytest.param(
            [
                {"type": "response.output_item.done", "item": "nonsense", "output_index": 0},
                {"type": "response.output_text.delta", "output_index": "0", "item_id": 5, "delta": 7},
                item("added", 0, type="message", content="nonsense", id=[], phase=3),
                *EVENTS[1:],
            ],
            id="nonsense",
        ),
    ],
)
def test_events_may_come_in_any_order(events: list[dict[str, Any]]) -> None:
    (message,) = reply(raw(*events, response())).messages
    assert message.text == "Yes."
    assert message.tool_calls == (ToolCall(id="c", name="bash", arguments={"a": 1}),)


def test_the_list_at_the_end_says_what_no_event_did_and_nothing_twice() -> None:
    done = said("Yes.")[0]["item"]
    call = {**CALL, "id": "it_1", "arguments": '{"a": 1}'}
    for events in ([], EVENTS[:1], EVENTS[:4], EVENTS, [*said("Yes."), item("done", 1, **call)]):
        begun = [item("added", 1, **CALL)] if events == EVENTS[:1] else []
        (message,) = reply(raw(*events, *begun, response(output=[done, call]))).messages
        assert (message.text, [call.arguments for call in message.tool_calls]) == ("Yes.", [{"a": 1}])


def test_what_only_the_list_at_the_end_says_of_an_item_is_taken() -> None:
    thought = {"type": "reasoning", "id": "it_0", "summary": []}
    events = [item("done", 0, type="reasoning", summary=[]), *said("Yes.", 1)]
    (message,) = reply(raw(*events, response(output=[thought | {"encrypted_content": "x"}]))).messages
    assert message.native is not None
    assert message.native.body["output"][0] == {**thought, "encrypted_content": "x"}


def test_a_list_that_counts_in_another_way_than_the_events_adds_nothing() -> None:
    listed = [{"type": "reasoning", "id": "rs_x", "summary": []}, said("Yes.")[0]["item"]]
    (message,) = reply(raw(*said("Yes."), response(output=listed))).messages
    assert message.text == "Yes."


@pytest.mark.parametrize(
    "arguments", ['{"command": "ls', "ls", "[1]", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000], ids=str
)
def test_arguments_that_are_no_object_a_record_can_hold_are_kept_as_text(arguments: str) -> None:
    (message,) = reply(Turn(calls=(Call(name="bash", arguments=arguments, id="c"),), piece=50_000)).messages
    assert message.tool_calls == (ToolCall(id="c", name="bash", arguments=None, raw_arguments=arguments),)


def test_calls_without_ids_of_their_own_get_some() -> None:
    calls = [item("done", index, type="function_call", name="bash", arguments="{}") for index in range(2)]
    (message,) = reply(raw(*calls, response())).messages
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == 2
    assert all(0 < len(identity) <= 40 for identity in ids)
