"""A local HTTP server that plays a provider: what it says is a script, how it says it is the protocol's.

A `Turn` says what the model answers, in no protocol's words, and a `Fault` what goes wrong. `anthropic.py` and
`openai.py` put turns into their providers' wire formats, byte for byte as the providers stream them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

KEY = "sk-test-canary-3f9a71c2"
"""The key that the servers take; it must never be found anywhere else."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call in a turn."""

    name: str
    arguments: str
    """As text, so that it may be broken JSON."""
    id: str = ""
    """Empty: the server makes one up."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What the model answers; one turn for each sample of a request."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    stop: str | None = None
    """In the protocol's word; None: what fits."""
    input_tokens: int = 100
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 20
    reasoning_tokens: int = 0
    without_usage: bool = False
    order: tuple[str, ...] = ("reasoning", "text", "calls")
    """Of the content."""
    piece: int = 7
    """Characters of a streamed piece."""
    served_by: str | None = None
    """None: the model that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What goes wrong with one request."""

    status: int | None = None
    """An error response with `body`; None: no error response."""
    body: Mapping[str, Any] | str | None = None
    """None: the provider's usual body for the status."""
    headers: Mapping[str, str] = field(default_factory=dict)
    silent_seconds: float = 0.0
    """Before anything is sent."""
    drop_after: int | None = None
    """Streamed events after which the connection is cut, in the middle of the next one."""
    stall_after: int | None = None
    """Streamed events after which nothing comes any more for `stall_seconds`."""
    stall_seconds: float = 30.0
    raw: bytes | None = None
    """Sent as the body of a 200 answer instead of anything of the protocol."""
    turn: Turn = field(default_factory=lambda: Turn(text="cut off"))
    """What is being said when it goes wrong."""


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """With small letters."""
    body: Any
    at: float
    """Of `time.monotonic`."""


Answer = Turn | Trouble | Sequence[Turn]
Script = Callable[[Received], Answer]


class ModelServer:
    """Serves on 127.0.0.1 until its block ends; a subclass speaks a protocol. Thread-safe.

    Args (of the constructor):
        script: Called for every model request, from several threads; a list is gone through, its last entry for ever.
        key: What a request must carry; None: nothing is asked for.
    """

    base_path = ""

    def __init__(self, script: Script | Sequence[Answer], *, key: str | None = KEY) -> None:
        self._script = script
        self.key = key
        self.requests: list[Received] = []
        """Model requests, in the order they came."""
        self.others: list[Received] = []
        """All other requests, for instance for the list of models."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Base URL for a client."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}{self.base_path}"

    def revoke(self) -> None:
        """From now on no key is good."""
        self.key = "revoked"

    def answer_to(self, request: Received) -> Answer:
        """The script's word on a model request."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        if callable(self._script):
            return self._script(request)
        return self._script[min(number, len(self._script)) - 1]

    def note_other(self, request: Received) -> None:
        with self._lock:
            self.others.append(request)

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the block."""
        self._stopping.wait(seconds)

    def handle(self, request: Received, respond: Responder) -> None:
        """Answer one request; of the subclass."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Responder:
    """Writes one answer."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler

    def json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self.whole(status, json.dumps(body).encode(), "application/json", headers)

    def whole(
        self, status: int, content: bytes, content_type: str = "text/plain", headers: Mapping[str, str] | None = None
    ) -> None:
        self._handler.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": content_type}.items():
            self._handler.send_header(name, value)
        self._handler.send_header("Content-Length", str(len(content)))
        self._handler.end_headers()
        self._handler.wfile.write(content)

    def stream(self, events: Iterator[bytes], headers: Mapping[str, str] | None = None) -> None:
        """Server-sent events in chunked encoding; an event of None length is not sent."""
        self._handler.send_response(200)
        for name, value in {**(headers or {}), "Content-Type": "text/event-stream; charset=utf-8"}.items():
            self._handler.send_header(name, value)
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()
        for event in events:
            self._handler.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            self._handler.wfile.flush()
        self._handler.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection in the middle of whatever it is."""
        self._handler.close_connection = True
        self._handler.connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ModelServer

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(content) if content else None
        except ValueError:
            body = content
        request = Received(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            at=time.monotonic(),
        )
        try:
            self.owner.handle(request, Responder(self))
        except (BrokenPipeError, ConnectionError, OSError, ValueError):
            self.close_connection = True  # the client has gone, or `cut` has closed the connection

    def log_message(self, *_: object) -> None:
        return
