"""What every language model behind the port promises, for each adapter that needs no provider."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from orchestrator.domain.conversation import StopReason, UserMessage
from orchestrator.ports import LanguageModel


def test_every_recorded_request_has_the_recorded_reply(model: LanguageModel, recording: Any) -> None:
    for request, reply in recording.heard:
        assert model.complete(*request) == reply


def test_replies_depend_neither_on_order_nor_on_other_threads(model: LanguageModel, recording: Any) -> None:
    backwards = [*reversed(recording.heard), *recording.heard]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda heard: model.complete(*heard[0]), backwards))
    assert replies == [reply for _, reply in backwards]


def test_tool_calls_fit_the_schemas_that_were_offered(model: LanguageModel, recording: Any) -> None:
    for request, _ in recording.heard:
        reply = model.complete(*request)
        schemas = {tool.name: tool.parameters for tool in request[1]}
        assert (reply.stop is StopReason.TOOLS) == bool(reply.message.tool_calls)
        ids = [call.id for call in reply.message.tool_calls]
        assert len(set(ids)) == len(ids)
        for call in reply.message.tool_calls:
            assert set(call.arguments) == set(schemas[call.name]["required"])
            assert all(isinstance(value, str) for value in call.arguments.values())


def test_the_worst_case_covers_what_a_reply_used(model: LanguageModel, recording: Any) -> None:
    for request, _ in recording.heard:
        worst, usage = model.worst_case(*request), model.complete(*request).usage
        assert usage.usd is not None
        assert worst.usd is not None
        assert worst.usd >= usage.usd
        assert worst.tokens >= usage.tokens


def test_a_longer_conversation_has_more_tokens(model: LanguageModel, recording: Any) -> None:
    for (conversation, tools, _), _ in recording.heard:
        size = model.count_tokens(conversation, tools)
        assert 0 < size < model.count_tokens(conversation.plus(UserMessage(text="x")), tools) <= model.context_tokens


def test_a_model_has_a_name_and_says_whether_asking_again_costs(model: LanguageModel, recording: Any) -> None:
    assert model.name
    assert model.is_repeatable
    assert all(model.complete(*request).usage.usd == Decimal(0) for request, _ in recording.heard)
