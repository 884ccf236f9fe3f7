"""Runners as plain local processes, assembled from the same files as in their images."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest

from orchestrator.domain.frames import PREFIX, Frame, decode_head, encode, pack_blobs
from orchestrator.sandbox.image_inputs import SOURCES, runner_files
from orchestrator.sandbox.images import ROLES
from tests.sql_service import LIMITS, SqlService

DEADLINE_SECONDS = 300


class Runner:
    """One runner, spoken to with the orchestrator's own frames."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        command = [sys.executable, "-I", "-B", str(directory), *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={"PATH": "/usr/bin:/bin"})
        self._timer = threading.Timer(DEADLINE_SECONDS, self.process.kill)
        self._printed: list[bytes] = []
        self._drain = threading.Thread(target=self._read_stderr)

    def __enter__(self) -> Self:
        self._timer.start()
        self._drain.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.process.kill()
        self.process.wait()
        self._drain.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def send(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode(Frame(head, body)))
        self.process.stdin.flush()

    def receive(self) -> Frame | None:
        """The next frame, or None at the end."""
        assert self.process.stdout is not None
        prefix = self.process.stdout.read(PREFIX.size)
        if len(prefix) < PREFIX.size:
            return None
        head_bytes, body_bytes = PREFIX.unpack(prefix)
        head = decode_head(self.process.stdout.read(head_bytes))
        return Frame(head, self.process.stdout.read(body_bytes))

    def ask(self, head: Mapping[str, Any], body: bytes = b"") -> Frame:
        """Send a frame and take the next one, which must come."""
        self.send(head, body)
        frame = self.receive()
        assert frame is not None, self.end()
        return frame

    def start(self, files: Mapping[str, str | bytes], **fields: object) -> Frame:
        """Send `start` with these files and take the answer."""
        table, body = pack_blobs({p: f.encode() if isinstance(f, str) else f for p, f in files.items()})
        return self.ask({"type": "start", "blobs": table, **fields}, body)

    def end(self) -> tuple[int, str]:
        """(exit code, what was printed outside the channel) once stdin is closed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait()
        self._drain.join()
        return code, b"".join(self._printed).decode()

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while data := self.process.stderr.read1(1 << 16):
            self._printed.append(data)


Launch = Callable[..., Runner]


@pytest.fixture(scope="session")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Image name to a directory that holds its runner, as the image does."""
    root = tmp_path_factory.mktemp("runners")
    for image in ROLES:
        for path, content in runner_files(SOURCES, image).items():
            (root / image / path).parent.mkdir(parents=True, exist_ok=True)
            (root / image / path).write_bytes(content)
    return {image.name: image for image in root.iterdir()}


def _launcher(assembled: Mapping[str, Path]) -> Iterator[Launch]:
    roles = {"base": "import", "python": "candidate"}
    with ExitStack() as stack:

        def launch(image: str, *arguments: str, idle_seconds: float = DEADLINE_SECONDS) -> Runner:
            runner = Runner(assembled[image], "--idle-seconds", str(idle_seconds), *arguments)
            stack.enter_context(runner)
            ready = runner.receive()
            assert ready is not None, runner.end()
            assert ready == Frame({"type": "ready", "protocol": 1, "role": roles.get(image, image)})
            return runner

        yield launch


@pytest.fixture
def launch(assembled: Mapping[str, Path]) -> Iterator[Launch]:
    """Start a runner of an image and take its `ready` frame; it is killed at the end of the test."""
    yield from _launcher(assembled)


@pytest.fixture(scope="module")
def launch_once(assembled: Mapping[str, Path]) -> Iterator[Launch]:
    """The same for a runner that all tests of a module share."""
    yield from _launcher(assembled)


Serve = Callable[..., SqlService]


def _server(launch: Launch) -> Serve:
    def serve(database: Path, *, readable: Mapping[str, Sequence[str]] | None = None, **limits: object) -> SqlService:
        runner = launch("sql", "--database", str(database))
        service = SqlService(lambda frame: runner.send(frame.head, frame.body), runner.receive)
        service.open(readable, **limits)
        return service

    return serve


@pytest.fixture
def serve_sql(launch: Launch) -> Serve:
    """Start a runner of the `sql` image on a database file, and open it."""
    return _server(launch)


@pytest.fixture(scope="module")
def serve_sql_once(launch_once: Launch) -> Serve:
    """The same for a service that all tests of a module share."""
    return _server(launch_once)


Run = Callable[[str], Any]


@pytest.fixture
def run_in_runner(assembled: Mapping[str, Path]) -> Run:
    """Runs code among the modules of the `sql` runner, with its `LIMITS`, and returns what it prints as JSON."""

    def run(code: str) -> Any:
        setting = f"import sys\nsys.path.insert(0, {str(assembled['sql'])!r})\nLIMITS = {dict(LIMITS)!r}\n"
        command = [sys.executable, "-I", "-B", "-c", setting + code]
        done = subprocess.run(command, capture_output=True, timeout=DEADLINE_SECONDS, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return run
