"""Programs that mean harm, and how they get around what is no boundary."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
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


_PASSED_ON = """
def {name}({arguments}):
    return space["{name}"]({arguments})
"""
"""A function of the program; what it does, the hostile code says."""


def hostile(code: str) -> FileTree:
    """A candidate that runs `code` when it is loaded, with everything that Python has; Best Fit unless it says else."""
    return FileTree({"program.py": _broken_out(HONEST + code, {"priority": ["item", "bins"]})})


def hostile_to(task: Task, code: str) -> FileTree:
    """The same for any task; its initial program unless `code` says else, which may define its functions again."""
    entry = task.spec.program.entry
    functions = {name: [one.name for one in spec.arguments] for name, spec in task.spec.functions.items()}
    return FileTree({**task.initial, entry: _broken_out(f"{task.initial[entry].decode()}\n{code}", functions)})


def _broken_out(source: str, functions: Mapping[str, Sequence[str]]) -> bytes:
    calls = [_PASSED_ON.format(name=name, arguments=", ".join(names)) for name, names in functions.items()]
    return "".join([f"SOURCE = {source!r}\n{BREAKOUT}", *calls]).encode()


def lowered(task: Task, purpose: Purpose, limits: Mapping[str, float]) -> Task:
    """The same task asking for less."""
    asked = {**task.spec.limits, purpose: {**task.spec.limits.get(purpose, {}), **limits}}
    return replace(task, spec=task.spec.model_copy(update={"limits": asked}))


def with_sequences(task: Task, count: int) -> Task:
    """Online bin packing on so many sequences, each of which meets a copy of the program."""
    return changed(task, {"evaluate.py": {"SEQUENCES = 100\n": f"SEQUENCES = {count}\n"}})


def changed(task: Task, edits: Mapping[str, Mapping[str, str]]) -> Task:
    """The same task with other words in its evaluator: file to old words, each of which is there once, to new ones."""
    evaluator = dict(task.evaluator)
    for file, words in edits.items():
        for old, new in words.items():
            if evaluator[file].count(old.encode()) != 1:
                msg = (
                    f"{file} of {task.name} has no {old!r}, or more than one; change the words that are looked for, too"
                )
                raise ValueError(msg)
            evaluator[file] = evaluator[file].replace(old.encode(), new.encode())
    return replace(task, evaluator=evaluator)
