"""The `evaluator` role: runs a task's trusted `evaluate.py` and sends its verdict as the last frame."""

from __future__ import annotations

import importlib
import math
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from channel import Channel, ChannelClosed
from columns import parse_signatures
from evaluator_api import Ended, Program, Refused
from frames import Frame, ProtocolError, pack_blobs
from session import parser, serve

PIECE_BYTES = 4 << 20
"""Body of one `generated` frame at most."""
PIECE_FILES = 64
"""Files in one, so that its head stays small."""
MAX_MESSAGE = 8 << 10
"""Characters of a `failed` message at most, each up to 6 bytes in a head; its end is what says most."""


class TaskMistake(Exception):
    """The task's code does not keep to the interface."""


def main() -> int:
    """Run until the verdict is sent or the channel ends."""
    arguments = parser()
    arguments.add_argument("--task", type=Path, default=Path("/task"), help="Holds evaluator/ and data/.")
    options = arguments.parse_args()
    return serve("evaluator", options.idle_seconds, lambda channel: handle(channel, options.task))


def handle(channel: Channel, task: Path) -> int:
    """Serve one request; whatever the task's code raises is the task's failure, never the candidate's."""
    frame = channel.expect("start", "generate")
    try:
        module = _load(task / "evaluator")
        if frame.type == "generate":
            for head, body in _generated(_generate(module, frame)):
                channel.send(head, body)
        else:
            channel.send({"type": "verdict", **_evaluate(module, channel, frame, task / "data")})
    except (ChannelClosed, ProtocolError):
        raise
    except BaseException as error:  # SystemExit of trusted code is a mistake of it, too
        text = "".join(traceback.format_exception(error))
        channel.send({"type": "failed", "message": text[-MAX_MESSAGE:].encode(errors="replace").decode()})
    return 0


def _load(folder: Path) -> ModuleType:
    sys.path.insert(1, str(folder))  # after the runner's own folder, before the standard library
    return importlib.import_module("evaluate")


def _evaluate(module: ModuleType, channel: Channel, start: Frame, data: Path) -> dict[str, Any]:
    """Fields of the verdict."""
    signatures = parse_signatures(start.head.get("functions"))
    split = str(start.head.get("split"))
    match start.head.get("program"):
        case {"nodes": int() as nodes, "lines": int() as lines}:
            program = Program(channel, signatures, nodes, lines)
        case inspected:
            msg = f"'program' of the start frame is not an inspection: {inspected!r}"
            raise ProtocolError(msg)
    try:
        return {"status": "scored", "metrics": _metrics(module.evaluate(program, data, split))}
    except Refused as refused:
        return {"status": "refused", "message": refused.message}
    except Ended as ended:
        return dict(ended.verdict)


def _metrics(returned: object) -> dict[str, float]:
    if not isinstance(returned, Mapping) or not returned:
        msg = f"evaluate() returned {type(returned).__name__}, not a non-empty dict of metrics"
        raise TaskMistake(msg)
    metrics: dict[str, float] = {}
    for name, value in returned.items():
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not isinstance(name, str) or not is_number or not math.isfinite(value):
            msg = f"metric {name!r} is {value!r}, not a finite number"
            raise TaskMistake(msg)
        metrics[name] = float(value)
    return metrics


def _generate(module: ModuleType, frame: Frame) -> dict[str, bytes]:
    seed = frame.head.get("seed")
    if isinstance(seed, str) and seed.isascii() and seed.isdigit() and len(seed) <= 40:
        seed = int(seed)  # 128 bits do not fit into a number of a frame head
    if type(seed) is not int or seed < 0:
        msg = f"seed {seed!r} is not a natural number"
        raise ProtocolError(msg)
    files = module.generate(seed, str(frame.head.get("split")))
    if not isinstance(files, dict) or not all(isinstance(n, str) and isinstance(f, bytes) for n, f in files.items()):
        msg = "generate() did not return a dict of file names to bytes"
        raise TaskMistake(msg)
    return files


def _generated(files: Mapping[str, bytes]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Frames of bounded size; a file that does not fit goes on in the next frame under the same name."""
    piece: dict[str, bytes] = {}
    room = PIECE_BYTES
    for name, content in files.items():
        offset = 0
        while True:
            part = content[offset : offset + room]
            piece[name] = part
            offset += len(part)
            room -= len(part)
            if room and len(piece) < PIECE_FILES:
                break
            table, body = pack_blobs(piece)
            yield {"type": "generated", "blobs": table, "last": False}, body
            piece, room = {}, PIECE_BYTES
            if offset == len(content):
                break
    table, body = pack_blobs(piece)
    yield {"type": "generated", "blobs": table, "last": True}, body
