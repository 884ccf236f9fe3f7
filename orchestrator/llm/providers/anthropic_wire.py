"""Anthropic's Messages API, through its SDK."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import anthropic
import httpx2

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec
from orchestrator.domain.model_access import ModelEntry
from orchestrator.llm.providers.anthropic_events import EventReader, NotAReply
from orchestrator.llm.providers.anthropic_failures import failure_of
from orchestrator.llm.providers.anthropic_requests import PROTOCOL, request_body
from orchestrator.llm.providers.anthropic_stream import ReplyCollector
from orchestrator.llm.providers.bounded_bodies import bound_body, parsed_json
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.open_line import OpenLine, Switchboard
from orchestrator.llm.providers.wire import Failure, Gathered, ModelFacts, Secret, sane_context, sane_output

_PATH = "/v1/messages"
_HEADERS = (
    "accept",
    "accept-encoding",
    "anthropic-version",
    "connection",
    "content-length",
    "content-type",
    "user-agent",
)
_SDK_HEADERS = "x-stainless-"
_VERSION = "2023-06-01"
_CLOSE_NAMES = 5
_LISTED = 1000


class AnthropicWire:
    """Speaks the Messages API (`Wire`). Stateless and thread-safe."""

    @property
    def name(self) -> str:
        """Of the protocol."""
        return PROTOCOL

    def connect(
        self, entry: ModelEntry, key: Secret | None, *, connect_seconds: float, chunk_seconds: float
    ) -> AnthropicConnection:
        """A client for the server of an entry; sends nothing. The arguments are those of `Wire.connect`."""
        timeout = httpx2.Timeout(connect=connect_seconds, read=chunk_seconds, write=chunk_seconds, pool=connect_seconds)
        return AnthropicConnection(entry.url, key, timeout)

    def parameters(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        samplings: Sequence[Sampling],
        *,
        entry: ModelEntry,
        account: str,
        capabilities: Capabilities,
    ) -> dict[str, Any]:
        """The body of a request. The arguments are those of `Wire.parameters`; only the first sampling counts."""
        return request_body(conversation, tools, samplings[0], entry=entry, account=account, capabilities=capabilities)

    def failure(self, error: Exception, *, has_begun: bool, key: Secret | None) -> Failure:
        """What an exception means. The arguments are those of `Wire.failure`."""
        return failure_of(error, has_begun=has_begun, key=key)


class AnthropicConnection:
    """The SDK's client for one server (`Connection`). Thread-safe."""

    def __init__(self, url: str, key: Secret | None, timeout: httpx2.Timeout) -> None:
        """Sends nothing.

        Args:
            url: Of the server, without the path of the API.
            key: None: the server needs none.
            timeout: Of every request.
        """
        self._key = key
        self._timeout = timeout
        self._switchboard = Switchboard()
        http_client = anthropic.DefaultHttpxClient(
            timeout=timeout,
            # A connection for each request: one that was kept may be closed by the server at the very moment it is
            # used again, and nobody can tell then whether the request was taken.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            # No proxy of the environment sees what goes out in clear; behind TLS one only passes it on.
            trust_env=url.startswith("https://"),
            follow_redirects=False,  # the policy names the addresses that may be asked, and the key is for one alone
            event_hooks={"request": [self._settle_headers, self._switchboard.attend], "response": [bound_body]},
        )
        self._client = anthropic.Anthropic(
            api_key=key.reveal() if key is not None else "",  # None would have the SDK look for one of its own
            base_url=url,
            max_retries=0,
            timeout=timeout,
            http_client=http_client,
            open_telemetry=False,
        )

    def __enter__(self) -> AnthropicConnection:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._client.close()

    def begin(self, parameters: Mapping[str, Any]) -> AnthropicExchange:
        """Prepare a streamed call; nothing is sent before the exchange is iterated."""
        return AnthropicExchange(self._client, self._switchboard, parameters)

    def facts(self, model: str, *, seconds: float) -> ModelFacts:
        """Ask about a model, without any cost. Arguments and errors are those of `Connection.facts`."""
        end = time.monotonic() + seconds
        try:
            answer = self._client.models.with_raw_response.retrieve(model, timeout=self._within(seconds))
        except anthropic.NotFoundError:
            return self._facts_of_the_list(model, end - time.monotonic())
        info = _object(answer.read())
        return ModelFacts(
            is_known=True if info.get("id") else None,
            context_tokens=sane_context(info.get("max_input_tokens")),
            max_output_tokens=sane_output(info.get("max_tokens")),
        )

    def _facts_of_the_list(self, model: str, seconds: float) -> ModelFacts:
        try:
            answer = self._client.models.with_raw_response.list(limit=_LISTED, timeout=self._within(seconds))
        except anthropic.NotFoundError:
            return ModelFacts(is_known=None)  # it has no list, and so need not know of single models either
        listed = _object(answer.read()).get("data")
        entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
        names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
        if model in names or not names:
            return ModelFacts(is_known=True if names else None)
        close = difflib.get_close_matches(model, names, n=_CLOSE_NAMES, cutoff=0.5)
        return ModelFacts(is_known=False, close_names=tuple(close or names[:_CLOSE_NAMES]))

    def _within(self, seconds: float) -> httpx2.Timeout:
        limit = max(seconds, 0.01)
        connect = min(limit, self._timeout.connect or limit)
        return httpx2.Timeout(connect=connect, read=limit, write=limit, pool=connect)

    def _settle_headers(self, request: httpx2.Request) -> None:
        """Send our key and no other: the SDK takes further headers, credentials among them, from the environment."""
        for name in list(request.headers):
            if name not in _HEADERS and not name.startswith(_SDK_HEADERS):
                del request.headers[name]
        request.headers["Host"] = request.url.netloc.decode("ascii")
        request.headers["Accept-Encoding"] = "identity"  # a small answer stays a small one
        request.headers["Anthropic-Version"] = _VERSION
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key.reveal()}"


class AnthropicExchange:
    """One streamed call (`Exchange`)."""

    def __init__(self, client: anthropic.Anthropic, switchboard: Switchboard, parameters: Mapping[str, Any]) -> None:
        """Sends nothing.

        Args:
            client: Sends it.
            switchboard: Of the same connection.
            parameters: Body of the request.
        """
        self._client = client
        self._switchboard = switchboard
        self._parameters = {**parameters, "stream": True}
        self._line = OpenLine()
        self._collector = ReplyCollector(str(parameters.get("model", "")))
        self._has_begun = False

    @property
    def has_begun(self) -> bool:
        """Whether the server has answered with a success status."""
        return self._has_begun

    def __iter__(self) -> Iterator[None]:
        """Send it and receive; see `Exchange.__iter__`."""
        response = self._send()
        self._has_begun = True
        try:
            yield
            reader = EventReader()
            for chunk in response.iter_bytes():
                self._take(reader, chunk, response)
                yield
                if self._collector.has_ended or self._collector.is_full:
                    return
        finally:
            response.close()
        if not self._collector.is_whole:
            msg = "it ended before the reply did"
            raise NotAReply(msg)

    def gathered(self) -> Gathered:
        """What has come."""
        return self._collector.gathered()

    def shut(self) -> None:
        """Break the connection; idempotent, from any thread, and never raises."""
        self._line.shut()

    def _send(self) -> httpx2.Response:
        # `messages.create` is the same but for what we need not: it knows fewer parameters than servers do, and warns
        # on stderr of models that will be withdrawn some day.
        with self._switchboard.on(self._line):
            stream = self._client.post(
                _PATH,
                cast_to=object,
                body=self._parameters,
                stream=True,
                stream_cls=anthropic.Stream[object],
            )
        return stream.response

    def _take(self, reader: EventReader, chunk: bytes, response: httpx2.Response) -> None:
        for name, event in reader.feed(chunk):
            if name == "error":
                raise anthropic.APIStatusError(f"{event}", response=response, body=event)
            self._collector.take(event)
            if self._collector.is_full:
                return


def _object(content: bytes) -> Mapping[str, Any]:
    """What a server answers; empty: it is no JSON object."""
    try:
        answer = parsed_json(content)
    except ValueError:
        return {}
    return answer if isinstance(answer, Mapping) else {}
