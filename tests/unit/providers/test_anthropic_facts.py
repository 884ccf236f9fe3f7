"""What a server of the Messages API says of its models."""

from __future__ import annotations

import time

import pytest

from orchestrator.llm.providers.wire import Fault, ModelFacts
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.anthropic_client import WIRE, client
from tests.model_servers.base import ModelServer, Received, Responder, Turn

MODELS = {"claude-opus-5": (1_000_000, 128_000), "claude-sonnet-5": (200_000, 64_000), "qwen": (32_000, 8_000)}


def facts(model: str) -> ModelFacts:
    with AnthropicServer([Turn()], models=MODELS) as server, client(server) as asked:
        found = asked.connection.facts(model, seconds=2)
        assert not server.requests
    return found


def test_a_known_model_has_its_sizes() -> None:
    assert facts("claude-opus-5") == ModelFacts(is_known=True, context_tokens=1_000_000, max_output_tokens=128_000)


def test_an_unknown_model_has_close_names() -> None:
    found = facts("claude-opus-4")
    assert (found.is_known, found.close_names[0]) == (False, "claude-opus-5")
    assert "qwen" not in found.close_names


def test_where_no_name_is_close_the_first_ones_are_named() -> None:
    assert facts("zzz") == ModelFacts(is_known=False, close_names=tuple(MODELS))


class _OtherServer(ModelServer):
    """Knows no models, or speaks of them in other words."""

    answers: dict[str, object]

    def handle(self, request: Received, respond: Responder) -> None:
        self.note_other(request)
        path = request.path.split("?")[0]
        if path in self.answers:
            respond.json(200, self.answers[path])
        else:
            respond.json(404, {"error": "no such page"})


@pytest.mark.parametrize(
    ("answers", "is_known"),
    [
        ({}, None),
        ({"/v1/models/m": {"status": "fine"}}, None),
        ({"/v1/models/m": [1, 2]}, None),
        ({"/v1/models/m": {"id": "m", "max_input_tokens": "many"}}, True),
        ({"/v1/models": {"data": [{"id": "m"}]}}, True),
        ({"/v1/models": {"data": [{"id": "n"}, {"name": "no id"}]}}, False),
        ({"/v1/models": {"models": ["m"]}}, None),
    ],
)
def test_servers_that_say_less_are_believed_no_more(answers: dict[str, object], is_known: bool | None) -> None:
    with _OtherServer([Turn()]) as server, client(server) as asked:
        server.answers = answers
        found = asked.connection.facts("m", seconds=2)
    assert (found.is_known, found.context_tokens) == (is_known, None)


class _SilentServer(ModelServer):
    """Never answers."""

    def handle(self, request: Received, respond: Responder) -> None:  # noqa: ARG002
        self.pause(30)


def test_facts_are_not_waited_for_longer_than_said() -> None:
    with _SilentServer([Turn()]) as server, client(server) as asked:
        begun = time.monotonic()
        with pytest.raises(Exception, match=r"\w") as raised:
            asked.connection.facts("m", seconds=0.2)
        assert time.monotonic() - begun < 3
    assert WIRE.failure(raised.value, has_begun=False, key=None).fault is Fault.BROKEN


def test_a_wrong_key_is_told_from_an_unknown_model() -> None:
    with AnthropicServer([Turn()]) as server, client(server, key="wrong") as asked:
        with pytest.raises(Exception, match="401") as raised:
            asked.connection.facts("claude-opus-5", seconds=2)
        assert WIRE.failure(raised.value, has_begun=False, key=None).fault is Fault.ACCESS
