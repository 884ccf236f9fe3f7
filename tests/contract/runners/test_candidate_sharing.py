"""Copies of a program that share a process keep the promise that copies in processes of their own keep."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from conftest import Launch, Runner

SCALAR = {"f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64"}}}
RAGGED = {
    "f": {
        "arguments": [{"name": "x", "dtype": "int64"}, {"name": "row", "dtype": "int64", "ragged": True}],
        "returns": {"dtype": "float64", "like": "row"},
    }
}
WATCHED = 1
"""Children of a runner whose copies share its process: the watch over the channel."""

REMEMBERING = {
    "global": "calls = 0\ndef f(x):\n    global calls\n    calls += 1\n    return calls * 1000 + x\n",
    "list": "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen) * 1000 + x\n",
    "default": "def f(x, seen=[]):\n    seen.append(x)\n    return len(seen) * 1000 + x\n",
    "dictionary": "seen = {}\ndef f(x):\n    seen['n'] = seen.get('n', 0) + 1\n    return seen['n'] * 1000 + x\n",
    "array": "import numpy as np\nseen = np.zeros(1)\ndef f(x):\n    seen[0] += 1\n    return seen[0] * 1000 + x\n",
    "closure": """
        def counter():
            n = 0
            def count():
                nonlocal n
                n += 1
                return n
            return count
        count = counter()
        def f(x):
            return count() * 1000 + x
    """,
    "generator": """
        def counting():
            n = 0
            while True:
                n += 1
                yield n
        numbers = counting()
        def f(x):
            return next(numbers) * 1000 + x
    """,
}
APART = {
    "an attribute": "def f(x):\n    f.calls = x\n    return x\n",
    "a class": "class Memory:\n    calls = 0\ndef f(x):\n    return Memory.calls + x\n",
    "numpy's generator": "import numpy as np\ndef f(x):\n    return x + 0 * np.random.random()\n",
    "numpy's generator, by name": "from numpy import random as r\ndef f(x):\n    return x + 0 * r.random()\n",
    "numpy's generator, by text": "import numpy as np\ndef f(x):\n    return x + 0 * getattr(np, 'random').random()\n",
    "numpy's settings": "import numpy as np\nnp.seterr(all='ignore')\ndef f(x):\n    return x\n",
    "numpy's tables": "import numpy as np\ndef f(x):\n    np.typecodes['mine'] = x\n    return x\n",
    "a part of numpy that loads late": "import numpy as np\ndef f(x):\n    return np.polynomial.Polynomial([x])(0)\n",
    "printing": "print('loaded')\ndef f(x):\n    return x\n",
    "a setting left on": """
        import numpy as np
        def lasting():
            with np.errstate(all='ignore'):
                yield 1
        kept = lasting()
        next(kept)
        def f(x):
            return x
    """,
    "large tables": "import numpy as np\ntable = np.ones(10**6)\ndef f(x):\n    return x * table[0]\n",
    "slow loading": "table = [k for k in range(10**6)]\ndef f(x):\n    return x + 0 * table[1]\n",
}


class Copies:
    """A loaded program with open copies."""

    def __init__(self, launch: Launch, source: str, count: int, functions: dict[str, Any] | None = None) -> None:
        self.runner: Runner = launch("python")
        self.functions = functions or SCALAR
        files = {"program.py": textwrap.dedent(source)}
        first = self.runner.start(files, entry="program.py", functions=self.functions)
        assert first.type == "inspected", first
        loaded = self.runner.receive()
        assert loaded is not None
        assert loaded.type == "loaded", loaded
        self.open(count)

    def open(self, count: int) -> None:
        assert self.runner.ask({"type": "open", "instances": count}).type == "opened"

    def call(self, ids: list[int], numbers: list[int]) -> Any:
        """Values of the reply, or the head of the failure."""
        table = [{"name": "x", "dtype": "int64", "ragged": False}]
        body = np.array(numbers, dtype="<i8").tobytes()
        answer = self.runner.ask({"type": "call", "function": "f", "instances": ids, "columns": table}, body)
        return np.frombuffer(answer.body, "<f8").tolist() if answer.type == "reply" else dict(answer.head)

    @property
    def children(self) -> int:
        """Processes whose parent is the runner."""
        found = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            found += int(parent) == self.runner.process.pid
        return found


@pytest.mark.parametrize("source", REMEMBERING.values(), ids=REMEMBERING.keys())
def test_what_a_copy_remembers_no_other_copy_sees(launch: Launch, source: str) -> None:
    copies = Copies(launch, source, 3)
    assert copies.children == WATCHED
    assert copies.call([0, 1, 2], [1, 2, 3]) == [1001, 1002, 1003]
    assert copies.call([1], [5]) == [2005]
    assert copies.call([2, 0, 1], [1, 2, 3]) == [2001, 2002, 3003]
    copies.open(2)
    assert copies.call([0, 1], [0, 0]) == [1000, 1000], "opened again, they start from the loaded state"


@pytest.mark.parametrize("source", APART.values(), ids=APART.keys())
def test_a_program_that_may_change_what_all_share_or_loads_slowly_gets_a_process_per_copy(
    launch: Launch, source: str
) -> None:
    copies = Copies(launch, source, 100)
    assert copies.children == WATCHED + 100
    assert copies.call([0, 99], [3, 4]) == [3, 4]


def test_an_array_belongs_to_one_copy_and_may_be_changed(launch: Launch) -> None:
    source = """
        def f(x, row):
            row *= x
            return row * 1.0
    """
    copies = Copies(launch, source, 2, RAGGED)
    assert copies.children == WATCHED
    table = [{"name": "x", "dtype": "int64", "ragged": False}, {"name": "row", "dtype": "int64", "ragged": True}]
    body = np.array([2, 3], "<i8").tobytes() + np.array([2, 1], "<u4").tobytes() + np.array([1, 2, 3], "<i8").tobytes()
    for _ in range(2):
        answer = copies.runner.ask({"type": "call", "function": "f", "instances": [0, 1], "columns": table}, body)
        assert np.frombuffer(answer.body, "<f8", offset=8).tolist() == [2.0, 4.0, 9.0]


def test_failures_are_told_as_by_copies_in_processes(launch: Launch) -> None:
    copies = Copies(launch, "def f(x):\n    return 1 / x if x < 5 else 'text'\n", 3)
    assert copies.children == WATCHED
    raised = {"type": "raised", "exception": "ZeroDivisionError", "file": "program.py", "line": 2, "instance": 1}
    assert copies.call([0, 1, 2], [1, 0, 0]) == raised
    assert copies.call([2, 0], [9, 9]) == {"type": "invalid", "reason": "reply-type", "instance": 0}
    assert copies.call([0, 1, 2], [1, 2, 4]) == [1.0, 0.5, 0.25], "and the copies live on"


def test_a_copy_that_exits_has_raised(launch: Launch) -> None:
    copies = Copies(launch, "def f(x):\n    raise SystemExit(0)\n", 2)
    assert copies.children == WATCHED
    assert copies.call([0, 1], [0, 0])["exception"] == "SystemExit"
