"""What servers of chat completions say of a model before it is asked anything."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from orchestrator.llm.providers.openai_facts import facts_in
from orchestrator.llm.providers.wire import Fault, ModelFacts
from orchestrator.runtime.workers import spawn
from tests.model_servers.base import KEY
from tests.model_servers.openai import Flavour, OpenAIServer
from tests.model_servers.openai_client import WIRE, client


@pytest.mark.parametrize(
    ("flavour", "facts"),
    [
        (Flavour(), ModelFacts(is_known=True)),
        (Flavour(listing="vllm"), ModelFacts(is_known=True, context_tokens=32_768)),
        (Flavour(listing="llama.cpp"), ModelFacts(is_known=True, context_tokens=32_768)),
        (Flavour(listing="missing"), ModelFacts(is_known=None)),
    ],
    ids=lambda value: getattr(value, "listing", ""),
)
def test_a_server_says_what_it_knows_of_a_model(flavour: Flavour, facts: ModelFacts) -> None:
    with OpenAIServer([], flavour=flavour) as server, client(server) as asked:
        assert asked.connection.facts("test-model", seconds=5) == facts
        assert server.requests == []


def test_a_model_that_is_not_there_is_told_with_names_like_it() -> None:
    with OpenAIServer([], models=("test-model-2", "other", "tiny")) as server, client(server) as asked:
        facts = asked.connection.facts("test-model", seconds=5)
    assert facts == ModelFacts(is_known=False, close_names=("test-model-2",))


def test_a_refused_key_is_told_by_the_list_too() -> None:
    with OpenAIServer([]) as server, client(server) as asked:
        server.revoke()
        with pytest.raises(Exception, match="Incorrect API key") as caught:
            asked.connection.facts("test-model", seconds=5)
    found = WIRE.failure(caught.value, has_begun=False, key=asked.key)
    assert found.fault is Fault.ACCESS
    assert KEY[:8] not in found.message


@pytest.mark.parametrize("drip", [False, True], ids=["never answers", "drips"])
def test_the_list_is_not_waited_for_longer_than_allowed(drip: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10_000)
                if drip:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not ended.wait(0.1):
                    if drip:
                        connection.sendall(b" ")

        server = spawn("server", serve)
        begun = time.monotonic()
        with client(f"http://127.0.0.1:{listener.getsockname()[1]}/v1") as asked, pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is
            asked.connection.facts("test-model", seconds=0.5)
        assert time.monotonic() - begun < 3
        ended.set()
        server.join(5)


@pytest.mark.parametrize(
    ("listing", "facts"),
    [
        ({"data": [{"id": "m", "context_length": 4096}]}, ModelFacts(is_known=True, context_tokens=4096)),
        ([{"id": "m", "context_length": 4096}], ModelFacts(is_known=True, context_tokens=4096)),
        ({"data": [{"id": "m", "max_context_length": 9000}]}, ModelFacts(is_known=True, context_tokens=9000)),
        (
            {"data": [{"id": "m", "context_window": 9000, "max_completion_tokens": 50}]},
            ModelFacts(is_known=True, context_tokens=9000, max_output_tokens=50),
        ),
        (
            {"data": [{"id": "m", "context_length": 9000, "top_provider": {"max_completion_tokens": 50}}]},
            ModelFacts(is_known=True, context_tokens=9000, max_output_tokens=50),
        ),
        (
            {"data": [{"id": "m", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}]},
            ModelFacts(is_known=True, context_tokens=2048),
        ),
        ({"data": [{"id": "m:latest"}]}, ModelFacts(is_known=True)),
        ({"data": [{"id": "x", "aliases": ["m", 3]}]}, ModelFacts(is_known=True)),
        (
            {"data": [{"id": "/models/x.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}]},
            ModelFacts(is_known=None, context_tokens=8192),
        ),
        ({"data": [{"id": "m", "max_model_len": -1, "context_length": "9"}]}, ModelFacts(is_known=True)),
        ({"data": []}, ModelFacts(is_known=None)),
        ({"data": [3, {"id": None}]}, ModelFacts(is_known=None)),
        ("a page", ModelFacts(is_known=None)),
        (None, ModelFacts(is_known=None)),
        ({"data": [{"id": "a\x1b[31m"}]}, ModelFacts(is_known=False, close_names=("a[31m",))),
    ],
    ids=str,
)
def test_lists_are_read_in_the_words_of_several_servers(listing: Any, facts: ModelFacts) -> None:
    assert facts_in(listing, "m") == facts
