"""OpenAI's chat completions, through its SDK, for OpenAI and every server that speaks them."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import TracebackType
from typing import Any

import httpx2
import openai

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec
from orchestrator.domain.model_access import ModelEntry
from orchestrator.llm.providers.bounded_bodies import MAX_LIST_BYTES, bound_body, parsed_json
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.open_line import OpenLine, Switchboard
from orchestrator.llm.providers.openai_events import Collector, EventReader, parsed
from orchestrator.llm.providers.openai_facts import facts_in
from orchestrator.llm.providers.openai_failures import ErrorInStream, failure_of
from orchestrator.llm.providers.openai_requests import PROTOCOL, parameters
from orchestrator.llm.providers.openai_stream import NotAReply, ReplyCollector
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES, Failure, Gathered, ModelFacts, Secret

NO_KEY = "no-key"
"""Sent to servers that need no key; some want to see something all the same."""
_HEADERS = frozenset({"accept", "connection", "content-length", "content-type", "host", "user-agent"})
_MAX_PLAIN_BYTES = 4 * MAX_REPLY_BYTES
"""Of a whole reply in one piece, which may hold every character as an escape."""
_NO_LIST = frozenset({404, 405, 501})
_VERSION = "/v1"
"""Where most servers serve, and what is easily left out of their URL."""


class OpenAIWire:
    """Speaks chat completions (`Wire`). Stateless and thread-safe."""

    @property
    def name(self) -> str:
        """Of the protocol."""
        return PROTOCOL

    def connect(
        self, entry: ModelEntry, key: Secret | None, *, connect_seconds: float, chunk_seconds: float
    ) -> OpenAIConnection:
        """A client for the server of an entry; sends nothing. The arguments are those of `Wire.connect`."""
        return OpenAIConnection(entry.url, key, timeout_of(connect_seconds, chunk_seconds))

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
        """The body of a request. The arguments are those of `Wire.parameters`."""
        return parameters(conversation, tools, samplings, entry=entry, account=account, capabilities=capabilities)

    def failure(self, error: Exception, *, has_begun: bool, key: Secret | None) -> Failure:
        """What an exception means. The arguments are those of `Wire.failure`."""
        return failure_of(error, has_begun=has_begun, key=key)


def timeout_of(connect_seconds: float, chunk_seconds: float) -> httpx2.Timeout:
    """Of a request whose connection may take so long to come about, and then be silent so long."""
    return httpx2.Timeout(connect=connect_seconds, read=chunk_seconds, write=chunk_seconds, pool=connect_seconds)


class OpenAIConnection:
    """The SDK's client for one server (`Connection`). Thread-safe."""

    def __init__(self, url: str, key: Secret | None, timeout: httpx2.Timeout) -> None:
        """Sends nothing.

        Args:
            url: Of the server, with the version at its end.
            key: None: the server needs none.
            timeout: Of every request.
        """
        self._key = key
        self._timeout = timeout
        self._switchboard = Switchboard()
        http_client = openai.DefaultHttpxClient(
            timeout=timeout,
            # A connection for each request: one that was kept may be closed by the server at the very moment it is
            # used again, and nobody can tell then whether the request was taken.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            # No proxy of the environment sees what goes out in clear; behind TLS one only passes it on.
            trust_env=url.startswith("https://"),
            follow_redirects=False,  # the policy names the addresses that may be asked, and the key is for one alone
            event_hooks={"request": [self._settle_headers, self._switchboard.attend], "response": [bound_body]},
        )
        self._client = openai.OpenAI(
            api_key=self._sent_key,  # None would have the SDK look for one of its own
            base_url=url,
            max_retries=0,
            timeout=timeout,
            http_client=http_client,
        )

    def __enter__(self) -> OpenAIConnection:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._client.close()

    def begin(self, parameters: Mapping[str, Any]) -> OpenAIExchange:
        """Prepare a streamed call; nothing is sent before the exchange is iterated."""
        collector = ReplyCollector(str(parameters.get("model", "")), int(parameters.get("n", 1)))
        return OpenAIExchange(self._client, self._switchboard, parameters, collector)

    def facts(self, model: str, *, seconds: float) -> ModelFacts:
        """Ask about a model, without any cost. Arguments and errors are those of `Connection.facts`."""
        end = time.monotonic() + seconds
        try:
            return self._listed("/models", model, end=end)
        except openai.APIStatusError as error:
            if error.status_code not in _NO_LIST:
                raise
        try:
            below = self._listed(f"{_VERSION}/models", model, end=end)
        except Exception:  # noqa: BLE001 - whatever an SDK raises: then it has no list there either
            return ModelFacts(is_known=None)
        return ModelFacts(is_known=None, served_below="" if below.is_known is None else _VERSION)

    def _listed(self, path: str, model: str, *, end: float) -> ModelFacts:
        limit = max(end - time.monotonic(), 0.01)
        connect = min(limit, self._timeout.connect or limit)
        timeout = httpx2.Timeout(connect=connect, read=limit, write=limit, pool=connect)
        with self._client.get(
            path, cast_to=object, options={"timeout": timeout}, stream=True, stream_cls=openai.Stream[object]
        ) as listing:
            content = _bounded(listing.response.iter_bytes(), MAX_LIST_BYTES, end=end)
        try:
            return facts_in(parsed_json(content), model)
        except ValueError:
            return ModelFacts(is_known=None)

    @property
    def _sent_key(self) -> str:
        return NO_KEY if self._key is None else self._key.reveal()

    def _settle_headers(self, request: httpx2.Request) -> None:
        """Send our key and no other: the SDK takes further headers, credentials among them, from the environment."""
        for name in list(request.headers):
            if name not in _HEADERS:
                del request.headers[name]
        request.headers["Host"] = request.url.netloc.decode("ascii")
        request.headers["Accept-Encoding"] = "identity"  # a small answer stays a small one
        request.headers["Authorization"] = f"Bearer {self._sent_key}"


class OpenAIExchange:
    """One streamed call (`Exchange`)."""

    path = "/chat/completions"
    """Where it goes, behind the server's URL."""

    def __init__(
        self, client: openai.OpenAI, switchboard: Switchboard, parameters: Mapping[str, Any], collector: Collector
    ) -> None:
        """Sends nothing.

        Args:
            client: Sends it.
            switchboard: Of the same connection.
            parameters: Body of the request.
            collector: Takes what comes.
        """
        self._client = client
        self._switchboard = switchboard
        self._parameters = {**parameters, "stream": True}
        self._line = OpenLine()
        self._collector = collector
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
            chunks = response.iter_bytes()
            first = next(chunks, b"")
            if first.lstrip()[:1] == b"{":  # a server that does not stream, whatever it was asked for
                self._take(parsed(_bounded(chain((first,), chunks), _MAX_PLAIN_BYTES)), response, is_error=False)
                is_done = True
            else:
                is_done = yield from self._streamed(chain((first,), chunks), response)
        finally:
            response.close()
        if not self._collector.is_full:
            self._collector.check_end(is_done=is_done)

    def gathered(self) -> Gathered:
        """What has come."""
        return self._collector.gathered()

    def shut(self) -> None:
        """Break the connection; idempotent, from any thread, and never raises."""
        self._line.shut()

    def _send(self) -> httpx2.Response:
        # `chat.completions.create` is the same but for what we need not: it knows fewer parameters than servers do, and
        # reads chunks into types that many servers' chunks are not of.
        with self._switchboard.on(self._line):
            stream = self._client.post(
                self.path,
                cast_to=object,
                body=self._parameters,
                stream=True,
                stream_cls=openai.Stream[object],
            )
        return stream.response

    def _streamed(self, chunks: Iterable[bytes], response: httpx2.Response) -> Generator[None, None, bool]:
        """Whether the server has said itself that nothing more comes."""
        reader = EventReader()
        for chunk in chunks:
            self._take_all(reader.feed(chunk), response)
            yield
            if reader.is_done or self._is_over:
                return reader.is_done
        self._take_all(reader.finish(), response)
        return reader.is_done

    @property
    def _is_over(self) -> bool:
        """Whether nothing more is to be read, although the server has not said so in the way of all streams."""
        return self._collector.is_full

    def _take_all(self, events: Iterable[tuple[bool, object]], response: httpx2.Response) -> None:
        for is_error, event in events:
            self._take(event, response, is_error=is_error)
            if self._is_over:
                return

    def _take(self, event: object, response: httpx2.Response, *, is_error: bool) -> None:
        says_error = isinstance(event, Mapping) and (event.get("error") or event.get("object") == "error")
        if is_error or says_error:
            body = dict(event) if isinstance(event, Mapping) else {"message": str(event)[:1000]}
            raise ErrorInStream(response.request, body, has_content=self._collector.has_content)
        self._collector.take(event)


def _bounded(chunks: Iterable[bytes], most: int, *, end: float | None = None) -> bytes:
    """All of a body.

    Raises:
        NotAReply: It is too large, or takes too long.
    """
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > most:
            msg = f"over {most} bytes in one piece"
            raise NotAReply(msg)
        if end is not None and time.monotonic() > end:
            msg = "it takes too long"
            raise NotAReply(msg)
    return bytes(content)
