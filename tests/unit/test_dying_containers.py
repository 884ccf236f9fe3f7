"""A container whose first process is a zombie is dead: the engine's refusal to kill it is no failure.

The engine says so only when its host is too loaded to notice an end in time, so a server of our own says it here, in
the engine's words, over the engine's protocol.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine

ZOMBIE = (
    "Cannot kill container: 1507cd3c2576: container 1507cd3c2576 PID 12635 is zombie and can not be killed. Use the"
    " --init option when creating containers to run an init inside the container that forwards signals and reaps"
    " processes"
)


class _Daemon(BaseHTTPRequestHandler):
    """Refuses to kill and to remove with `refusal` as long as `refusals` last; then the container is gone."""

    refusal = ZOMBIE
    refusals = 1

    def do_GET(self) -> None:
        if self.path.endswith("/version"):
            self._answer(200, {"ApiVersion": "1.41"})
        elif type(self).refusals > 0:
            self._answer(200, {"Id": "1507cd3c2576", "State": {"Running": True}})
        else:
            self._answer(404, {"message": "No such container"})

    def do_POST(self) -> None:
        self._refuse()

    def do_DELETE(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        type(self).refusals -= 1
        if type(self).refusals < 0:
            self._answer(404, {"message": "No such container"})
        else:
            self._answer(500, {"message": self.refusal})

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def daemon() -> Iterator[tuple[type[_Daemon], Engine]]:
    class Daemon(_Daemon):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Daemon) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with Engine.connect(f"tcp://127.0.0.1:{server.server_port}") as engine:
                yield Daemon, engine
        finally:
            server.shutdown()
            thread.join()


def test_a_container_that_is_dead_already_counts_as_killed(daemon: tuple[type[_Daemon], Engine]) -> None:
    handler, engine = daemon
    engine.kill("1507cd3c2576")
    assert handler.refusals == 0


def test_a_container_that_is_dead_already_is_removed_once_the_engine_has_noticed(
    daemon: tuple[type[_Daemon], Engine],
) -> None:
    handler, engine = daemon
    handler.refusals = 2
    engine.remove("1507cd3c2576")
    assert handler.refusals == 0


def test_any_other_refusal_to_kill_is_told(daemon: tuple[type[_Daemon], Engine]) -> None:
    handler, engine = daemon
    handler.refusal = "tried to kill container, but did not receive an exit event"
    with pytest.raises(SandboxError, match="exit event"):
        engine.kill("1507cd3c2576")
