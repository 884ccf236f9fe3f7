"""The `evaluator` role: runs a task's trusted `evaluate.py` and sends its verdict as the last frame."""

from __future__ import annotations

import importlib
import json
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
from evaluator_api import Program, Refused
from frames import Frame, ProtocolError, pack_blobs
from questions import Ended
from session import parser, serve

PIECE_BYTES = 4 << 20
"""Body of one `generated` frame at most."""
PIECE_FILES = 64
"""Files in one, so that its head stays small."""
MAX_ASSESSMENT_BYTES = 64 << 10
"""Of an assessment as JSON."""
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
            channel.send({"type": "verdict", **_judged(module, channel, frame, task / "data")})
    except (ChannelClosed, ProtocolError):
        raise
    except BaseException as error:  # SystemExit of trusted code is a mistake of it, too
        text = "".join(traceback.format_exception(error))
        channel.send({"type": "failed", "message": text[-MAX_MESSAGE:].encode(errors="replace").decode()})
    return 0


def _load(folder: Path) -> ModuleType:
    sys.path.insert(1, str(folder))  # after the runner's own folder, before the standard library
    return importlib.import_module("evaluate")


def _judged(module: ModuleType, channel: Channel, start: Frame, data: Path) -> dict[str, Any]:
    """Fields of the verdict: of an evaluation, or of what the mode of the start frame asks for."""
    signatures = parse_signatures(start.head.get("functions"))
    split = str(start.head.get("split"))
    match start.head.get("program"):
        case {"nodes": int() as nodes, "lines": int() as lines}:
            program = Program(channel, signatures, nodes, lines)
        case inspected:
            msg = f"'program' of the start frame is not an inspection: {inspected!r}"
            raise ProtocolError(msg)
    mode = start.head.get("mode", "evaluate")
    if mode not in ("evaluate", "assess"):
        msg = f"there is no mode {mode!r}"
        raise ProtocolError(msg)
    try:
        return _judgement(module, program, data, split, mode)
    except Ended as ended:
        return ended.verdict


def _judgement(module: ModuleType, program: Program, data: Path, split: str, mode: str) -> dict[str, Any]:
    """Fields of a verdict that the task's code came to; no call is under way any more."""
    judge = module.assess if mode == "assess" else module.evaluate
    try:
        returned = judge(program, data, split)
    except Refused as refused:
        program.settle()
        return {"status": "refused", "message": refused.message}
    program.settle()
    if mode == "assess":
        return {"status": "assessed", "assessment": _assessment(returned)}
    return {"status": "scored", "metrics": _metrics(returned)}


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


def _assessment(returned: object) -> dict[str, Any]:
    if not isinstance(returned, Mapping) or not returned:
        msg = f"assess() returned {type(returned).__name__}, not a non-empty dict"
        raise TaskMistake(msg)
    assessment: dict[str, Any] = {}
    for name, value in returned.items():
        plain = value.item() if isinstance(value, np.generic) else value
        is_finite = not isinstance(plain, float) or math.isfinite(plain)
        if not isinstance(name, str) or not isinstance(plain, str | int | float | bool | None) or not is_finite:
            msg = f"{name!r} of the assessment is {plain!r:.200}, not a text, a finite number, a truth value or None"
            raise TaskMistake(msg)
        assessment[name] = plain
    size = len(json.dumps(assessment))
    if size > MAX_ASSESSMENT_BYTES:
        msg = f"the assessment takes {size} bytes as JSON, more than {MAX_ASSESSMENT_BYTES}"
        raise TaskMistake(msg)
    return assessment


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
