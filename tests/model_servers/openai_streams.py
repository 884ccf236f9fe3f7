"""Streams of our own making, for replies of servers that nobody would write a script for."""

from __future__ import annotations

from typing import Any

from orchestrator.llm.providers.wire import Gathered
from tests.model_servers.base import Trouble
from tests.model_servers.openai import Flavour, OpenAIServer, event
from tests.model_servers.openai_client import client


def reply(turn: Any, *, flavour: Flavour | None = None, **further: Any) -> Gathered:
    """What comes of a turn."""
    with OpenAIServer([turn], flavour=flavour) as server, client(server) as asked:
        return asked.ask(**further)


def raw(*chunks: Any, end: bytes = b"data: [DONE]\n\n") -> Trouble:
    """A stream of our own making."""
    return Trouble(raw=b"".join(map(event, chunks)) + end)


def delta(finish: str | None = None, *, index: Any = 0, **fields: Any) -> dict[str, Any]:
    """A chunk."""
    return {"id": "x", "model": "m", "choices": [{"index": index, "delta": fields, "finish_reason": finish}]}
