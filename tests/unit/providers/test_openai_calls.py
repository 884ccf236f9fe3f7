"""Tool calls and token counts of chat completions, as careless servers send them."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.conversation import ToolCall, Usage
from orchestrator.llm.providers.openai_usage import usage_of
from tests.model_servers.base import Call, Turn
from tests.model_servers.openai_streams import delta, raw, reply


@pytest.mark.parametrize(
    "arguments",
    [
        '{"command": "ls',
        "ls",
        "[1]",
        "null",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
    ],
    ids=lambda arguments: arguments[:12],
)
def test_arguments_that_are_no_object_a_record_can_hold_are_kept_as_text(arguments: str) -> None:
    (message,) = reply(Turn(calls=(Call(name="bash", arguments=arguments),), piece=50_000)).messages
    assert message.tool_calls == (ToolCall(id="call_0", name="bash", arguments=None, raw_arguments=arguments),)


def function(arguments: Any, name: str | None = "bash", **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"arguments": arguments} | ({} if name is None else {"name": name})}


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([function('{"a": 1}'), function('{"a": 2}')], id="no index and no id"),
        pytest.param([function('{"a": 1}', index=0), function('{"a": 2}', index=0)], id="one index for all"),
        pytest.param(
            [function('{"a": 1}', index=0, id="x"), function('{"a": 2}', index=0, id="y")], id="one index, two ids"
        ),
        pytest.param([function('{"a": 1}', id="x"), function('{"a": 2}', id="x", index=1)], id="one id for all"),
        pytest.param([function({"a": 1}, index=0), function({"a": 2}, index=1)], id="objects instead of text"),
        pytest.param(
            [
                function("", index=0, id="x"),
                function('{"a"', None, index=0),
                function("", index=1, id="y"),
                function(": 1}", None, index=0, id="x"),
                function('{"a": 2}', None, index=1),
            ],
            id="interleaved",
        ),
        pytest.param(
            [function('{"a":', id="x"), function(" 1}", id="x"), function('{"a": 2}', id="y")], id="the name again"
        ),
        pytest.param([function('{"a": 1}', index=None), "nonsense", function('{"a": 2}', index="2")], id="nonsense"),
    ],
)
@pytest.mark.parametrize("is_apart", [True, False])
def test_tool_calls_of_careless_servers_are_told_apart(pieces: list[Any], is_apart: bool) -> None:
    chunks = [delta(tool_calls=[piece]) for piece in pieces] if is_apart else [delta(tool_calls=pieces)]
    (message,) = reply(raw(*chunks, delta("tool_calls"))).messages
    assert [call.arguments for call in message.tool_calls] == [{"a": 1}, {"a": 2}]
    assert {call.name for call in message.tool_calls} == {"bash"}
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == 2
    assert all(0 < len(identity) <= 40 for identity in ids)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": 5},
        {"prompt_tokens": "100", "completion_tokens": 5},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": True, "completion_tokens": 5},
        {"prompt_tokens": 1.5, "completion_tokens": 5},
        {"prompt_tokens": 10**12, "completion_tokens": 5},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": 100, "completion_tokens": 0},
        {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 101}},
        {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": -3}},
        {"prompt_tokens": 100, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 6}},
        {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 5},
        },
        {},
        [],
        "many",
        None,
    ],
    ids=str,
)
def test_counts_that_cannot_be_are_no_counts(usage: Any) -> None:
    gathered = reply(raw(delta(content="Yes."), delta("stop"), {"choices": [], "usage": usage}))
    assert gathered.usage is None
    assert gathered.messages[0].text == "Yes."
    assert gathered.output_bytes == 4


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
            Usage(input_tokens=10, output_tokens=5),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6},
            Usage(input_tokens=6, cached_input_tokens=4, output_tokens=5),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": None}},
            Usage(input_tokens=10, output_tokens=5),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 22,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(input_tokens=10, output_tokens=12, reasoning_tokens=7),
        ),
    ],
)
def test_counts_are_read_in_the_words_of_several_servers(said: Any, counted: Usage) -> None:
    assert usage_of([said], has_output=True) == counted
