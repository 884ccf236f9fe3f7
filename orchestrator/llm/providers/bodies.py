"""The body of a request: how much it asks for at most, and whether it can be sent at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.errors import ModelError
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.wire import Connection, Exchange

DEFAULT_CONTEXT_TOKENS = 32_768
"""Where nobody says how long a conversation may grow."""
_ROOM_SHARE = 8
_MAX_SAID = 300


def samples_taken(capabilities: Capabilities) -> int:
    """How many replies a model gives to one request at most, from 1."""
    return max(1, capabilities.samples) if capabilities.accepts("n") else 1


def most_output(capabilities: Capabilities, asked: int, input_tokens: int) -> int:
    """The most that one reply may have, in tokens, at least 1.

    Servers refuse a request whose input and output together are over the context, so the output has what is left. As
    the input is an estimate on the high side, it always has an eighth of the context; the server knows better. Where
    no limit may be sent, nobody need keep to one that a list names, and only the end of the context is sure.
    """
    context = capabilities.context_tokens
    largest = capabilities.max_output_tokens
    if not capabilities.accepts(capabilities.output_field):
        return max(largest or 0, context or DEFAULT_CONTEXT_TOKENS)
    most = asked if largest is None else min(asked, largest)
    return most if context is None else max(1, min(most, max(context - input_tokens, context // _ROOM_SHARE)))


def prepared(build: Callable[[], Mapping[str, Any]], connection: Connection, *, name: str) -> Exchange:
    """A call whose body is JSON, so that whatever fails from here on concerns the network or the server.

    Args:
        build: Makes the body.
        connection: That it is for.
        name: Of the model, for messages.

    Raises:
        ModelError: The body cannot be built, or is no JSON; nothing was sent.
    """
    try:
        body = build()
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        return connection.begin(body)
    except ModelError:
        raise
    except Exception as error:  # whatever it is, it came before anything that could cost
        said = str(error)[:_MAX_SAID] or type(error).__name__
        msg = (
            f"{name} cannot be asked, and nothing was sent: no request can be made of the conversation and the "
            f"`options` of the model ({said}); see that the options are what the provider documents"
        )
        raise ModelError(msg) from error
