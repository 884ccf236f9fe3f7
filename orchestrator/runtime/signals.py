"""Ctrl-C and SIGTERM as a wish to stop that every thread hears."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from orchestrator.runtime.workers import CancelToken, spawn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def cancelled_by_signals(token: CancelToken) -> Iterator[None]:
    """Within the block, the first SIGINT or SIGTERM cancels the token, a second one raises `KeyboardInterrupt`.

    Only for the main thread. The token is cancelled by a worker that the interpreter wakes through a socket, because a
    handler could interrupt the main thread while it holds the token's own lock.

    Raises:
        ExceptionGroup: A callback of the token failed.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)  # the interpreter writes to it between two instructions
    received = 0

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1:
            raise KeyboardInterrupt

    with reader, writer:
        earlier_descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        earlier = {number: signal.signal(number, handle) for number in _SIGNALS}
        listener = spawn("signals", lambda: _listen(reader, token))
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(earlier_descriptor)
            writer.shutdown(socket.SHUT_WR)
            listener.join(60)
        listener.result()


def _listen(reader: socket.socket, token: CancelToken) -> None:
    """Ends when the other side is shut down."""
    while number := reader.recv(1):
        if number[0] in _SIGNALS:
            token.cancel(f"stopped by {signal.Signals(number[0]).name}")
