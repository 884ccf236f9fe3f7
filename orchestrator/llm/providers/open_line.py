"""The connection of one call, which any thread can break while another one waits for bytes from it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

_OPENED = (".connect_tcp.complete", ".start_tls.complete")


class OpenLine:
    """Holds the socket of a call from the moment it is there. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both
        self._socket: socket.socket | None = None
        self._is_shut = False

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Note a new socket; a `trace` of `httpx2`, which tells of each step on the way to a reply."""
        if not event.endswith(_OPENED):
            return
        opened = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._socket = opened
            is_shut = self._is_shut
        if is_shut:
            _break(opened)

    def shut(self) -> None:
        """Break the connection, also one that comes about later; whoever waits for it gets an error. Never raises."""
        with self._lock:
            self._is_shut = True
            opened = self._socket
        if opened is not None:
            _break(opened)


def _break(opened: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Of the plain class: a TLS socket would first take its state away from under the thread that reads.
        socket.socket.shutdown(opened, socket.SHUT_RDWR)


class Switchboard:
    """Gives the requests of a client the lines of their calls. Thread-safe."""

    def __init__(self) -> None:
        self._calls = threading.local()

    @contextlib.contextmanager
    def on(self, line: OpenLine) -> Iterator[None]:
        """Requests that this thread sends in the block are on this line."""
        self._calls.line = line
        try:
            yield
        finally:
            self._calls.line = None

    def attend(self, request: httpx2.Request) -> None:
        """Have the line of this thread watch a request; a request hook of the client."""
        line: OpenLine | None = getattr(self._calls, "line", None)
        if line is not None:
            request.extensions = {**request.extensions, "trace": line.watch}
