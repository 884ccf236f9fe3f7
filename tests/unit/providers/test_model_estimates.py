"""Estimates that hold, and usages that add up."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    NativeMessage,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from orchestrator.domain.model_access import Price, PriceTier
from orchestrator.llm.prices import cost
from orchestrator.llm.providers.estimates import replies, request_tokens, worst_usages
from orchestrator.llm.providers.wire import Gathered
from orchestrator.llm.tokens import conversation_tokens
from tests.model_lab import TOOL

ACCOUNT = "anthropic/claude"
usd = st.decimals(0, 100, places=2)
prices = st.builds(
    Price,
    input=usd,
    cached_input=st.none() | usd,
    cache_write=st.none() | usd,
    output=usd,
    reasoning=st.none() | usd,
    above_input_tokens=st.just(1000),
    above=st.builds(PriceTier, input=usd, output=usd),
)
counts = st.integers(0, 5000)


def tokens(*messages: Message, account: str = ACCOUNT) -> int:
    return request_tokens(Conversation(system="s", messages=messages), [TOOL], protocol="anthropic", account=account)


def gathered(texts: list[str], usage: Usage | None) -> Gathered:
    return Gathered(
        messages=tuple(AssistantMessage(text=text) for text in texts),
        stops=(StopReason.END,) * len(texts),
        usage=usage,
        served_by="m",
        output_bytes=sum(len(text.encode()) for text in texts),
    )


@given(st.lists(st.text(), max_size=5))
def test_an_estimate_is_over_the_plain_one_and_a_message_more_makes_it_larger(texts: list[str]) -> None:
    messages = [UserMessage(text=text) for text in texts]
    assert tokens(*messages) > conversation_tokens(Conversation(system="s", messages=tuple(messages)), [TOOL])
    assert tokens(*messages, UserMessage(text="")) > tokens(*messages)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("def f(x):\n    return x + 1\n" * 100, 1250),  # half of its bytes
        ("3.14159 2.71828 " * 100, 1400),  # each digit alone, as several tokenisers take them
        ("数据库查询" * 100, 750),
    ],
)
def test_no_usual_text_is_estimated_too_low(text: str, least: int) -> None:
    assert tokens(UserMessage(text=text)) - tokens() >= least


def test_results_and_calls_count_with_their_digits() -> None:
    call = ToolCall(id="1", name="look", arguments={"at": "12345678" * 10})
    result = ToolMessage(results=(ToolResult(call_id="1", text="12345678" * 10),))
    assert tokens(AssistantMessage(text="", tool_calls=(call,))) - tokens() >= 80
    assert tokens(result) - tokens() >= 80


def test_a_native_message_counts_for_the_model_that_wrote_it_alone() -> None:
    body = {"content": [{"type": "thinking", "thinking": "hm " * 1000, "signature": "s" * 400}]}
    native = NativeMessage(protocol="anthropic", model=ACCOUNT, body=body)
    message = AssistantMessage(text="yes", native=native)
    assert tokens(message) - tokens() >= 1700
    assert tokens(message, account="anthropic/other") == tokens(AssistantMessage(text="yes"))


@given(prices, counts, counts, st.integers(1, 5))
def test_no_usage_within_the_sizes_costs_more_than_the_worst_case(
    price: Price, most_input: int, most_output: int, samples: int
) -> None:
    parts = worst_usages(price, input_tokens=most_input, output_tokens=most_output, samples=samples)
    whole = sum(parts, Usage())
    assert whole.usd is not None
    assert all(part.usd is not None and part.usd >= 0 for part in parts)
    assert (whole.input_tokens, whole.output_tokens) == (most_input, samples * most_output)
    inputs = [
        Usage(input_tokens=most_input),
        Usage(cache_write_tokens=most_input),
        Usage(cached_input_tokens=most_input),
    ]
    for used in inputs:
        for reasoning in (0, whole.output_tokens):
            usage = used + Usage(output_tokens=whole.output_tokens, reasoning_tokens=reasoning)
            assert cost(price, usage) <= whole.usd


@given(prices, counts, counts, counts, st.lists(st.text(max_size=20), min_size=1, max_size=5), st.data())
def test_usages_of_samples_add_up_to_what_was_used(
    price: Price, plain: int, cached: int, output: int, texts: list[str], data: st.DataObject
) -> None:
    used = Usage(
        input_tokens=plain,
        cached_input_tokens=cached,
        output_tokens=output,
        reasoning_tokens=data.draw(st.integers(0, output)),
    )
    parts = [reply.usage for reply in replies(gathered(texts, used), price=price, asked_as="m", input_tokens=1)]
    whole = sum(parts, Usage())
    assert whole.usd == cost(price, used)
    assert (whole.tokens, whole.input_tokens, whole.reasoning_tokens) == (used.tokens, plain, used.reasoning_tokens)
    assert all(part.usd is not None and part.usd >= 0 for part in parts)
    assert all(part.reasoning_tokens <= part.output_tokens for part in parts)


def test_an_unknown_price_stays_unknown() -> None:
    assert worst_usages(None, input_tokens=1, output_tokens=1, samples=1)[0].usd is None
    reply = replies(gathered(["a"], Usage(output_tokens=1)), price=None, asked_as="m", input_tokens=1)[0]
    assert reply.usage.usd is None


def test_an_estimate_of_the_output_is_by_what_came_also_above_what_was_asked_for() -> None:
    reply = replies(gathered(["x" * 9000], None), price=None, asked_as="m", input_tokens=7)[0]
    assert (reply.usage.input_tokens, reply.is_estimate) == (7, True)
    assert 4500 < reply.usage.output_tokens < 4600


def test_the_name_it_was_asked_under_is_no_news() -> None:
    used = Usage(output_tokens=1, usd=Decimal(0))
    for asked, shown in (("m", ""), ("other", "m")):
        reply = replies(gathered(["a"], used), price=None, asked_as=asked, input_tokens=1)[0]
        assert reply.served_by == shown
