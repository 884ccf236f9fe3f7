"""What tests of the wire of responses need on our side of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from orchestrator.llm.providers.capabilities import find_capabilities
from orchestrator.llm.providers.responses_wire import ResponsesWire
from orchestrator.llm.providers.wire import Gathered
from tests.model_servers.base import ModelServer, Trouble
from tests.model_servers.openai_client import Client, client
from tests.model_servers.responses import ResponsesServer, event, numbered

WIRE = ResponsesWire()


@contextmanager
def responses_client(server: ModelServer | str, **entry: Any) -> Iterator[Client]:
    """A client for a server, or for a URL, that speaks responses; it takes what `client` takes."""
    with client(server, **{"wire": WIRE, "api": "responses", **entry}) as asked:
        yield Client(
            connection=asked.connection,
            entry=asked.entry,
            key=asked.key,
            wire=WIRE,
            capabilities=find_capabilities(asked.entry),
        )


def reply(turn: Any, *, server: Mapping[str, Any] | None = None, **further: Any) -> Gathered:
    """What comes of a turn."""
    with ResponsesServer([turn], **(server or {})) as running, responses_client(running) as asked:
        return asked.ask(**further)


def raw(*events: Mapping[str, Any], end: bytes = b"") -> Trouble:
    """A stream of our own making."""
    return Trouble(raw=b"".join(event(each) for each in numbered(iter(map(dict, events)))) + end)


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    """The event that says how a response ended."""
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    said = {"id": "resp_x", "object": "response", "status": status, "model": "m", "output": [], "usage": usage}
    return {"type": f"response.{status}", "response": {**said, **fields}}


def part(kind: str, delta: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    """A delta of the item of that number."""
    return {"type": f"response.{kind}.delta", "output_index": index, "item_id": f"it_{index}", "delta": delta, **fields}


def item(step: str, index: int, **fields: Any) -> dict[str, Any]:
    """An item that is `added` or `done`."""
    return {"type": f"response.output_item.{step}", "output_index": index, "item": {"id": f"it_{index}", **fields}}


def said(text: str, index: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """A message that is done."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return [item("done", index, type="message", role="assistant", content=content, **fields)]
