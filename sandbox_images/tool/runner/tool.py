"""The `tool` role: looks a generated analysis tool over, runs it once on one database, and hands back what it leaves.

What is said after the tool has begun is no more than a claim of its container: the tool has this process's user id.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import script
from channel import EXIT_IO, Channel, complain
from draining import Drain, Pipe
from frames import Frame, ProtocolError, pack_blobs, unpack_blobs
from leavings import is_full, read_output
from prctl import adopt_orphans, be_undumpable, die_with_parent
from processes import kill_children
from screen import screen
from session import parser, serve

WARM = ("collections", "csv", "datetime", "decimal", "json", "pathlib", "re", "sqlite3", "statistics", "textwrap")
"""Imported before anybody waits for it."""
RUNNER = Path(__file__).parent
DATABASE = "database.sqlite"
OUTPUT_FOLDER = "tool_output"
STDOUT = "stdout"
SAID_BYTES = 16 << 10
"""Of the end of stderr, which is where a traceback is."""
JOIN_SECONDS = 1.0
"""How long to wait for the rest of what was printed; it is there at once, unless somebody still prints."""
MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be done, as the `start` frame says it."""

    files: Mapping[str, bytes]
    command: tuple[str, ...]
    output: str
    output_bytes: int
    """Of the output, at most."""
    print_bytes: int
    """Printed to both streams together, at most."""
    observed_bytes: int
    """Of what is told about the tool's doings, at most."""

    @classmethod
    def parse(cls, frame: Frame) -> Self:
        """Read a `start` frame.

        Raises:
            ProtocolError: It is not of this form.
        """
        match frame.head:
            case {
                "command": [str(), *_] as command,
                "output": str() as output,
                "output_bytes": int() as output_bytes,
                "print_bytes": int() as print_bytes,
                "observed_bytes": int() as observed_bytes,
            } if all(isinstance(word, str) and "\0" not in word for word in command):
                files = unpack_blobs(frame.head.get("blobs"), frame.body)
                if command[0] in files and _is_relative(output) and all(map(_is_relative, files)):
                    return cls(
                        files=files,
                        command=tuple(command),
                        output=output,
                        output_bytes=output_bytes,
                        print_bytes=print_bytes,
                        observed_bytes=observed_bytes,
                    )
        msg = "a start frame does not say rightly which files to run, and what they write"
        raise ProtocolError(msg)


def main() -> int:
    """Run until the tool is done or the channel ends."""
    arguments = parser()
    arguments.add_argument("--work", type=Path, default=Path("/tmp"), help="A tmpfs.")  # noqa: S108 - in the container
    arguments.add_argument("--database", type=Path, default=Path("/data") / DATABASE, help="What is analysed.")
    options = arguments.parse_args()
    for module in WARM:
        importlib.import_module(module)
    be_undumpable()  # before anything is forked, so that the tool cannot open this process's descriptors by accident
    return serve("tool", options.idle_seconds, lambda channel: handle(channel, options.work, options.database))


def handle(channel: Channel, work: Path, database: Path) -> int:
    """Serve one tool, which runs only once the other side has heard what the screen says, and asks for it."""
    order = Order.parse(channel.expect("start"))
    folder = work / "tool"  # the same in every container, so that a tool which tells it repeats itself
    try:
        with database.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        lay(order.files, folder, database)
    except OSError as error:
        complain(f"cannot make the working folder: {error}")
        return EXIT_IO
    findings = screen(order.files, order.output)
    shown = [[finding.file, finding.line, finding.message] for finding in findings[:MAX_FINDINGS]]
    channel.send({
        "type": "screened", "database": sha256, "findings": shown, "omitted": len(findings) - len(shown),
    })  # fmt: skip
    is_observed = channel.expect("run").head.get("observe") is True
    head, blobs = run(channel, order, folder, is_observed=is_observed)
    table, body = pack_blobs(blobs)
    channel.send({"type": "done", **head, "blobs": table}, body)
    return 0


def lay(files: Mapping[str, bytes], folder: Path, database: Path) -> None:
    """Make the working folder of a tool."""
    (folder / OUTPUT_FOLDER).mkdir(parents=True)
    (folder / DATABASE).symlink_to(database)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)


def run(channel: Channel, order: Order, folder: Path, *, is_observed: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Run the tool, end whatever it leaves behind, and take what it left: fields of `done`, and its blobs."""
    adopt_orphans()
    pipes = {name: Pipe() for name in ("stdout", "stderr", "observed")}
    pid = os.fork()
    if pid == 0:
        _become_the_tool(channel, order, folder, pipes, is_observed=is_observed)
    is_printed = order.output == STDOUT
    room = order.print_bytes
    printed = Drain(pipes["stdout"], pid, kill_bytes=room, head_bytes=order.output_bytes if is_printed else 0)
    said = Drain(pipes["stderr"], pid, kill_bytes=room, tail_bytes=SAID_BYTES)
    observed = Drain(pipes["observed"], pid, kill_bytes=None, head_bytes=order.observed_bytes)
    ending = _wait(pid)
    kill_children()
    deadline = time.monotonic() + JOIN_SECONDS  # a guest kernel hides orphans from us, and they hold the pipes open
    for drain in (printed, said, observed):
        drain.join(max(0.0, deadline - time.monotonic()))
    if is_printed:
        status, output = "too-large" if printed.total > order.output_bytes else "ok", printed.kept
    else:
        status, output = read_output(folder, order.output, order.output_bytes)
    head = {
        **ending,
        "disk_full": is_full(folder),
        "flooded": printed.has_flooded or said.has_flooded,
        "output": status,
    }
    return head, {"output": output if status == "ok" else b"", "said": said.kept, "observed": observed.kept}


def _become_the_tool(
    channel: Channel, order: Order, folder: Path, pipes: Mapping[str, Pipe], *, is_observed: bool
) -> NoReturn:
    """The child: leaves through the interpreter's own end, which runs exit handlers."""
    die_with_parent()
    channel.close()
    for pipe in pipes.values():
        os.close(pipe.reading)
    observed = pipes["observed"].writing
    if not is_observed:
        os.close(observed)
    os.chdir(folder)
    streams = pipes["stdout"].writing, pipes["stderr"].writing
    sys.exit(script.run(order.command, streams, RUNNER, observed if is_observed else None))


def _wait(pid: int) -> dict[str, int | None]:
    """How the tool's own process ended; orphans are reaped on the way."""
    ended, status = os.wait()
    while ended != pid:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    return {"exit_code": None, "signal": -code} if code < 0 else {"exit_code": code, "signal": None}


def _is_relative(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
