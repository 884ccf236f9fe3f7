"""Chromium without a window, driven over its debugging pipe: no driver program and no library."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 120.0
_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--no-default-browser-check", "--metrics-recording-only", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def find_chromium() -> str | None:
    """Where it is; None: it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in a browser; remembers what went wrong in it."""

    def __init__(self, commands: int, replies: int) -> None:
        self._commands = commands
        self._replies = replies
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """Console errors, uncaught exceptions and violations of the page's policy."""
        self.requests: list[str] = []
        """Addresses that the page asked for."""

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a file into a page of its own, and wait until its script is done."""
        self._session = None
        self.complaints, self.requests = [], []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self._ask(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", features=scheme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        self._ask("Page.navigate", url=path.as_uri())
        self.wait("document.documentElement?.classList.contains('ready')")

    def value(self, expression: str) -> Any:
        """What an expression gives in the page; promises are awaited."""
        answer = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _SECONDS
        while not self.value(expression):
            assert time.monotonic() < deadline, f"never true: {expression}; {self.complaints}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self._ask("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, f"{method}: {reply['error']}"
                result: dict[str, Any] = reply["result"]
                return result
            if reply.get("sessionId") == self._session:
                self._note(reply)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._replies, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(parameters["args"])[:500])
            case "Log.entryAdded":
                self.complaints.append(str(parameters["entry"].get("text")))
            case "Network.requestWillBeSent":
                self.requests.append(str(parameters["request"]["url"])[:200])
            case _:
                pass


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, which ends with the block."""
    path = find_chromium()
    assert path is not None
    to_read, commands = _pipe()
    replies, to_write = _pipe()
    arguments = [path, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    actions = [
        *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)),
        (os.POSIX_SPAWN_DUP2, to_read, 3),  # the browser expects these two numbers
        (os.POSIX_SPAWN_DUP2, to_write, 4),
    ]
    process = os.posix_spawn(path, arguments, os.environ, file_actions=actions)
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(commands, replies)
    finally:
        os.close(commands)  # the browser ends when nobody can command it any more
        os.close(replies)
        _end(process)


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, away from the numbers that mean something to the browser."""
    ends = os.pipe()
    moved = [fcntl(end, F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _end(process: int) -> None:
    deadline = time.monotonic() + 20
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return
        time.sleep(0.05)
