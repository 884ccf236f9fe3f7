"""The token estimate."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.conversation import AssistantMessage, Conversation, ToolCall, ToolSpec, UserMessage
from orchestrator.llm.tokens import conversation_tokens, first_tokens, message_tokens

TOOL = ToolSpec(name="write", description="Replace a file.", parameters={"type": "object"})


@given(st.text(), st.integers(4, 50))
def test_the_beginning_of_a_text_fits_the_limit(text: str, limit: int) -> None:
    assert message_tokens(AssistantMessage(text=first_tokens(text, limit))) <= limit


@given(st.lists(st.text(max_size=50), max_size=5), st.text())
def test_tokens_of_a_conversation_are_the_sum_of_its_parts(texts: list[str], more: str) -> None:
    conversation = Conversation(system="s", messages=tuple(UserMessage(text=text) for text in texts))
    longer = conversation.plus(UserMessage(text=more))
    added = conversation_tokens(longer, [TOOL]) - conversation_tokens(conversation, [TOOL])
    assert added == message_tokens(UserMessage(text=more)) > 0


def test_tools_and_arguments_count() -> None:
    call = ToolCall(id="1", name="write", arguments={"content": "x" * 300})
    assert message_tokens(AssistantMessage(text="", tool_calls=(call,))) > 100
    empty = Conversation(system="", messages=())
    assert conversation_tokens(empty, [TOOL]) > conversation_tokens(empty, [])


def test_a_long_conversation_is_counted_quickly() -> None:
    long = Conversation(system="", messages=tuple(UserMessage(text="word " * 2000) for _ in range(300)))
    begin = time.process_time()
    assert conversation_tokens(long, []) > 500_000
    assert time.process_time() - begin < 1
