"""The `analysis` role: runs one script of an agent and passes on what it prints, as it is printed."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from select import select
from typing import NoReturn, Self

import script
from channel import Channel, complain
from frames import ProtocolError, unpack_blobs
from prctl import adopt_orphans, die_with_parent
from processes import kill_children
from session import parser, serve

OUTPUT_FRAME_BYTES = 256 << 10
BATCH_SECONDS = 0.02
"""How long printed bytes wait for more, so that a script that prints small pieces does not make a frame of each."""
RUNNER = Path(__file__).parent
_PLACES = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108 - beside the working directory, all that can be written


def main() -> int:
    """Run until the script is done or the channel ends."""
    arguments = parser()
    arguments.add_argument("--work", type=Path, default=Path("/work"), help="A tmpfs; task data is in its data/.")
    options = arguments.parse_args()
    return serve("analysis", options.idle_seconds, lambda channel: handle(channel, options.work))


def handle(channel: Channel, work: Path) -> int:
    """Serve one experiment."""
    start = channel.expect("start")
    name = start.head.get("script")
    files = unpack_blobs(start.head.get("blobs"), start.body)
    if not isinstance(name, str) or name not in files:
        msg = f"script {name!r} is not among the files"
        raise ProtocolError(msg)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=work))
    try:
        _place(files, folder, work / "data")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        channel.send({"type": "done", "exit_code": 1, "signal": None, "disk_full": True})
        return 0
    adopt_orphans()
    reading, writing = os.pipe()
    with _ChildEnds() as ends:
        pid = os.fork()
        if pid == 0:
            _become_the_script(channel, ends, name, folder, reading, writing)
        os.close(writing)
        try:
            ending = _pump(channel, reading, ends, pid)
        finally:
            kill_children()
    channel.send({"type": "done", **ending, "disk_full": any(map(_is_full, (folder, *_PLACES)))})
    return 0


def _place(files: Mapping[str, bytes], folder: Path, data: Path) -> None:
    """Write the files, and show the task's data beside them as `data/`."""
    for path, content in files.items():
        target = folder / path
        if (target.is_absolute() and folder not in target.parents) or ".." in target.parts:
            msg = f"file path {path!r} is not allowed"
            raise ProtocolError(msg)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    if data.is_dir() and not (folder / "data").exists():
        (folder / "data").symlink_to(data, target_is_directory=True)


def _become_the_script(
    channel: Channel, ends: _ChildEnds, name: str, folder: Path, reading: int, writing: int
) -> NoReturn:
    """The child: leaves through the interpreter's own end, which runs exit handlers and waits for threads."""
    die_with_parent()
    channel.close()
    ends.close()
    os.close(reading)
    os.chdir(folder)
    sys.exit(script.run(name, writing, RUNNER))


def _pump(channel: Channel, reading: int, ends: _ChildEnds, pid: int) -> dict[str, int | None]:
    """Pass on the output until the script's own process ends; then end what it left and take the rest."""
    os.set_blocking(reading, False)
    open_ends = [reading, ends.descriptor]
    ending = None
    while ending is None:
        readable, _, _ = select(open_ends, [], [])
        if ends.descriptor in readable:
            ends.acknowledge()
            ending = _ended(pid)
        if reading in readable and not _pass_on(channel, reading, batch=ending is None):
            open_ends.remove(reading)  # closed by the script, which goes on
    kill_children()
    while reading in open_ends and _pass_on(channel, reading, batch=False):
        pass
    os.close(reading)
    return ending


def _pass_on(channel: Channel, reading: int, *, batch: bool) -> bool:
    """Send what is there, and what comes within a moment; False at the end of the output."""
    parts: list[bytes] = []
    size = 0
    deadline = time.monotonic() + (BATCH_SECONDS if batch else 0)
    is_open = True
    while is_open and size < OUTPUT_FRAME_BYTES:
        if not select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
            break
        with contextlib.suppress(BlockingIOError):
            part = os.read(reading, OUTPUT_FRAME_BYTES - size)
            is_open = bool(part)
            size += len(part)
            parts.append(part)
    if size:
        channel.send({"type": "output"}, b"".join(parts))
    return is_open and (batch or size > 0)


def _ended(pid: int) -> dict[str, int | None] | None:
    """How the script's process ended, or None: it has not, some other child has."""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)  # orphans are reaped on the way
        except ChildProcessError:
            return {"exit_code": None, "signal": None}
        if ended == 0:
            return None
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return {"exit_code": None, "signal": -code} if code < 0 else {"exit_code": code, "signal": None}


def _is_full(folder: Path) -> bool:
    """A hint, read before anything is cleaned: no block or no inode is left."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        complain(f"cannot look at the disk: {error}")
        return False
    return disk.f_bavail == 0 or (disk.f_files > 0 and disk.f_ffree == 0)


class _ChildEnds:
    """A descriptor that becomes readable when a child ends, so that waiting for it and for output is one wait."""

    def __enter__(self) -> Self:
        self._is_closed = False
        self.descriptor, self._writing = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._writing, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler of any kind makes the interpreter write to the pipe
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def acknowledge(self) -> None:
        """Empty the pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def close(self) -> None:
        """Back to the interpreter's defaults; also for the child. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self.descriptor)
        os.close(self._writing)
