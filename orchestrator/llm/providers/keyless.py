"""Replies of a server that gives the key away: what is recorded and shown of them does not hold it."""

from __future__ import annotations

import json
from dataclasses import replace

from orchestrator.domain.conversation import AssistantMessage, ToolCall
from orchestrator.llm.providers.shown_errors import without_forms
from orchestrator.llm.providers.wire import Gathered, ModelFacts, Secret


def without_key(gathered: Gathered, key: Secret | None) -> Gathered:
    """The same, with the key hidden wherever it stands; a native message that holds it is left out as a whole."""
    if key is None:
        return gathered
    return replace(
        gathered,
        messages=tuple(_message(message, key) for message in gathered.messages),
        served_by=without_forms(gathered.served_by, key),
    )


def names_without_key(facts: ModelFacts, key: Secret | None) -> ModelFacts:
    """Facts whose names can be shown."""
    if key is None:
        return facts
    return replace(facts, close_names=tuple(without_forms(name, key) for name in facts.close_names))


def _message(message: AssistantMessage, key: Secret) -> AssistantMessage:
    native = message.native
    if native is not None and _holds(native.body, key):
        native = None
    return AssistantMessage(
        text=without_forms(message.text, key),
        tool_calls=tuple(_call(call, key) for call in message.tool_calls),
        reasoning=without_forms(message.reasoning, key),
        native=native,
    )


def _call(call: ToolCall, key: Secret) -> ToolCall:
    arguments = call.arguments
    if arguments is not None and _holds(arguments, key):
        arguments = None
    return ToolCall(
        id=without_forms(call.id, key),
        name=without_forms(call.name, key),
        arguments=arguments,
        raw_arguments=without_forms(call.raw_arguments, key),
    )


def _holds(value: object, key: Secret) -> bool:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # what cannot be recorded is left out elsewhere
        return False
    return without_forms(text, key) != text
