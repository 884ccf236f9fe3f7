"""The candidate runner: loading, copies of the loaded state, calls, and every way in which a program fails."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from conftest import Launch, Runner

PRIORITY = {
    "priority": {
        "arguments": [{"name": "item", "dtype": "int64"}, {"name": "bins", "dtype": "int64", "ragged": True}],
        "returns": {"dtype": "float64", "like": "bins"},
    }
}
SCALAR = {"f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64"}}}
"""One scalar in, one scalar out."""


class Candidate:
    """A loaded program."""

    def __init__(self, runner: Runner, source: str | Mapping[str, str], functions: Mapping[str, Any]) -> None:
        files = {"program.py": source} if isinstance(source, str) else source
        files = {name: textwrap.dedent(text) for name, text in files.items()}
        self.runner = runner
        self.functions = functions
        inspected = runner.start(files, entry="program.py", functions=functions)
        assert inspected.type == "inspected", inspected
        self.loaded = runner.receive()

    def open(self, count: int) -> None:
        assert self.runner.ask({"type": "open", "instances": count}).type == "opened"

    def call(self, name: str, instances: Sequence[int], *columns: Any) -> Any:
        """Values of the reply as a list, or the head of the failure."""
        declared = self.functions[name]
        table, parts = [], []
        for argument, column in zip(declared["arguments"], columns, strict=True):
            ragged = argument.get("ragged", False)
            table.append({"name": argument["name"], "dtype": argument["dtype"], "ragged": ragged})
            if ragged:
                parts.append(np.array([len(row) for row in column], dtype="<u4").tobytes())
            elements = [one for row in column for one in row] if ragged else column
            parts.append(np.array(elements, dtype=argument["dtype"]).tobytes())
        head = {"type": "call", "function": name, "instances": list(instances), "columns": table}
        answer = self.runner.ask(head, b"".join(parts))
        if answer.type != "reply":
            return dict(answer.head)
        returns = declared["returns"]
        ragged = "like" in returns
        assert answer.head["columns"] == [{"name": "returns", "dtype": returns["dtype"], "ragged": ragged}]
        if not ragged:
            return np.frombuffer(answer.body, returns["dtype"]).tolist()
        lengths = np.frombuffer(answer.body, "<u4", len(instances))
        values = np.frombuffer(answer.body, returns["dtype"], offset=lengths.nbytes)
        assert len(values) == lengths.sum()
        return [part.tolist() for part in np.split(values, np.cumsum(lengths)[:-1])]


Load = Callable[..., Candidate]


@pytest.fixture
def load(launch: Launch) -> Load:
    """Load a program in a new runner; `returns` is short for one function `f` of one scalar."""

    def load(source: str | Mapping[str, str], functions: Mapping[str, Any] = SCALAR) -> Candidate:
        return Candidate(launch("python"), source, functions)

    return load


def body(expression: str) -> str:
    return f"import numpy as np\nimport math\ndef f(x):\n    return {expression}\n"


COUNTING = """
    import numpy as np
    calls = 0
    drawn = np.random.random()

    def f(x):
        global calls
        calls += 1
        return calls * 1000 + x
"""


def test_an_instance_counts_its_own_calls_and_no_other_ones(load: Load) -> None:
    candidate = load(COUNTING)
    candidate.open(3)
    assert candidate.call("f", [0, 1, 2], [1, 2, 3]) == [1001, 1002, 1003]
    assert candidate.call("f", [1], [5]) == [2005]
    assert candidate.call("f", [0, 1, 2], [1, 2, 3]) == [2001, 3002, 2003]


def test_opening_again_starts_from_the_loaded_state_again(load: Load) -> None:
    candidate = load(COUNTING)
    for _ in range(2):
        candidate.open(2)
        assert candidate.call("f", [0, 1], [0, 0]) == [1000, 1000]
        assert candidate.call("f", [0, 1], [0, 0]) == [2000, 2000]


def test_numpys_global_generator_is_the_same_in_every_instance_and_every_container(load: Load) -> None:
    source = """
        import numpy as np
        def f(x):
            return np.random.random()
    """
    draws = []
    for _ in range(2):
        candidate = load(source)
        candidate.open(3)
        first, second = candidate.call("f", [0, 1, 2], [0, 0, 0]), candidate.call("f", [0, 1, 2], [0, 0, 0])
        assert len(set(first)) == len(set(second)) == 1
        assert first != second
        draws.append((first, second))
    assert draws[0] == draws[1]


def test_sets_of_text_iterate_alike_in_every_container(load: Load) -> None:
    source = """
        order = list({"alpha", "beta", "gamma", "delta", "epsilon", "zeta"})
        def f(x):
            return sum((k + 1) * 10 ** len(w) * ord(w[0]) for k, w in enumerate(order))
    """
    values = set()
    for _ in range(3):
        candidate = load(source)
        candidate.open(1)
        values.add(candidate.call("f", [0], [0])[0])
    assert len(values) == 1


def test_ragged_arguments_arrive_as_the_instances_own_arrays(load: Load) -> None:
    candidate = load(
        """
        import numpy as np
        def priority(item, bins):
            assert type(item) is int
            assert type(bins) is np.ndarray and bins.dtype == np.int64 and bins.ndim == 1
            bins -= item
            return -bins
        """,
        PRIORITY,
    )
    candidate.open(3)
    assert candidate.call("priority", [2, 0, 1], [5, 6, 7], [[10, 20], [], [7]]) == [[-5, -15], [], [0]]


def test_all_ragged_arguments_of_a_call_may_be_empty(load: Load) -> None:
    arguments = [{"name": name, "dtype": "float64", "ragged": True} for name in ("a", "b")]
    functions = PRIORITY | {"two": {"arguments": arguments, "returns": {"dtype": "float64", "like": "b"}}}
    candidate = load("def priority(item, bins): return bins\ndef two(a, b): return b + len(a)\n", functions)
    candidate.open(2)
    assert candidate.call("priority", [0, 1], [1, 2], [[], []]) == [[], []]
    assert candidate.call("two", [0, 1], [[], []], [[], []]) == [[], []]
    assert candidate.call("two", [0, 1], [[], [1, 1]], [[7], [7, 8]]) == [[7.0], [9.0, 10.0]]


def test_every_dtype_survives_the_way_there_and_back(load: Load) -> None:
    largest = {
        "bool": True, "int8": -128, "int16": -(2**15), "int32": -(2**31), "int64": -(2**63), "uint8": 255,
        "uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1, "float32": 0.5, "float64": 0.1,
    }  # fmt: skip
    functions = {}
    for dtype in largest:
        arguments = [{"name": "a", "dtype": dtype}, {"name": "b", "dtype": dtype, "ragged": True}]
        functions[f"one_{dtype}"] = {"arguments": arguments, "returns": {"dtype": dtype}}
        functions[f"many_{dtype}"] = {"arguments": arguments, "returns": {"dtype": dtype, "like": "b"}}
    source = "".join(f"def {name}(a, b): return {'a' if name[0] == 'o' else 'b'}\n" for name in functions)
    candidate = load(source, functions)
    candidate.open(2)
    for dtype, value in largest.items():
        rows = [[value, 0, value], [value]]
        assert candidate.call(f"one_{dtype}", [0, 1], [value, 0], [[], [value]]) == [value, 0]
        assert candidate.call(f"many_{dtype}", [0, 1], [value, 0], rows) == rows


def test_a_call_larger_than_a_pipe_arrives_whole(load: Load) -> None:
    candidate = load("def priority(item, bins):\n    return bins * 2.0\n", PRIORITY)
    candidate.open(2)
    row = list(range(100_000))
    assert candidate.call("priority", [0, 1], [0, 0], [row, row[:7]]) == [
        [2.0 * x for x in row],
        [0, 2, 4, 6, 8, 10, 12],
    ]


SCALARS = ["1", "True", "1.0", "np.float32(1)", "np.int8(1)", "np.array(1)"]
BAD_SCALARS = [
    ("None", "reply-type"),
    ("'1'", "reply-type"),
    ("1j", "reply-type"),
    ("[1.0]", "reply-shape"),
    ("np.array([1.0])", "reply-shape"),
    ("np.array('a')", "reply-dtype"),
    ("np.array(None)", "reply-dtype"),
    ("np.complex128(1)", "reply-type"),
    ("10 ** 400", "reply-dtype"),
    ("type('Sub', (float,), {})(1.0)", "reply-type"),
]
ARRAYS = ["bins * 1.0", "bins", "list(bins)", "[float(b) for b in bins]", "bins > 0", "bins.astype('>f4')"]
BAD_ARRAYS = [
    ("1.0", "reply-shape"),
    ("None", "reply-type"),
    ("bins[:1]", "reply-length"),
    ("bins[None, :]", "reply-shape"),
    ("[[1], [1, 2]]", "reply-shape"),
    ("bins * 1j", "reply-dtype"),
    ("bins.astype(object)", "reply-dtype"),
    ("bins.astype(str)", "reply-dtype"),
    ("np.ma.masked_array(bins)", "reply-type"),
    ("type('Sub', (np.ndarray,), {})(2)", "reply-type"),
    ("type('Sub', (list,), {})([1, 2])", "reply-type"),
    ("(b for b in bins)", "reply-type"),
    ("bins.tobytes()", "reply-type"),
]


@pytest.fixture(scope="module")
def replier(launch_once: Launch) -> Candidate:
    """A program that returns the k-th of the expressions above when it is called with k."""
    scalars = SCALARS + [expression for expression, _ in BAD_SCALARS]
    arrays = ARRAYS + [expression for expression, _ in BAD_ARRAYS]
    source = "import numpy as np\nSCALARS = [" + ", ".join(f"lambda: {e}" for e in scalars) + "]\n"
    source += "ARRAYS = [" + ", ".join(f"lambda bins: {e}" for e in arrays) + "]\n"
    source += "def f(x): return SCALARS[x]()\ndef priority(item, bins): return ARRAYS[item](bins)\n"
    candidate = Candidate(launch_once("python"), source, SCALAR | PRIORITY)
    candidate.open(2)
    return candidate


@pytest.mark.parametrize("expression", SCALARS)
def test_a_plain_number_of_any_kind_is_a_scalar_reply(replier: Candidate, expression: str) -> None:
    assert replier.call("f", [0], [SCALARS.index(expression)]) == [1.0]


@pytest.mark.parametrize(("expression", "reason"), BAD_SCALARS)
def test_a_scalar_reply_of_another_form_is_invalid(replier: Candidate, expression: str, reason: str) -> None:
    number = len(SCALARS) + BAD_SCALARS.index((expression, reason))
    assert replier.call("f", [1], [number]) == {"type": "invalid", "reason": reason, "instance": 1}


@pytest.mark.parametrize("expression", ARRAYS)
def test_an_array_or_list_that_means_the_declared_dtype_is_a_ragged_reply(replier: Candidate, expression: str) -> None:
    number = ARRAYS.index(expression)
    assert replier.call("priority", [0, 1], [number, number], [[1, 1], []]) == [[1.0, 1.0], []]


@pytest.mark.parametrize(("expression", "reason"), BAD_ARRAYS)
def test_a_ragged_reply_of_another_form_is_invalid_and_not_repaired(
    replier: Candidate, expression: str, reason: str
) -> None:
    number = len(ARRAYS) + BAD_ARRAYS.index((expression, reason))
    answer = replier.call("priority", [0], [number], [[1, 2]])
    assert answer == {"type": "invalid", "reason": reason, "instance": 0}


def test_integers_that_do_not_fit_are_invalid(load: Load) -> None:
    functions = {"f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "int8"}}}
    candidate = load("def f(x):\n    return x\n", functions)
    candidate.open(1)
    assert candidate.call("f", [0], [-128]) == [-128]
    assert candidate.call("f", [0], [128])["reason"] == "reply-range"


def test_nan_and_infinity_are_passed_on_for_the_evaluator_to_judge(load: Load) -> None:
    candidate = load(body("(math.nan, math.inf, -math.inf)[x]"))
    candidate.open(1)
    assert np.isnan(candidate.call("f", [0], [0])[0])
    assert candidate.call("f", [0], [1]) == [np.inf]


@pytest.mark.parametrize(
    ("statement", "exception"),
    [
        ("raise ValueError('secret')", "ValueError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return f(x)", "RecursionError"),
        ("return 1 // 0", "ZeroDivisionError"),
        ("return undefined", "NameError"),
        ("return np.linalg.inv(np.zeros((2, 2)))", "Exception"),
        ("raise type('Leak42', (ValueError,), {})", "Exception"),
        ("return bytearray(1 << 62)", "MemoryError"),
        ("import os", None),
    ],
)
def test_what_a_call_raises_is_named_by_a_built_in_class_and_its_line(
    load: Load, launch: Launch, statement: str, exception: str | None
) -> None:
    source = f"import numpy as np\n\ndef f(x):\n    {statement}\n"
    if exception is None:
        rejected = launch("python").start({"program.py": source}, entry="program.py", functions=SCALAR)
        assert rejected.head == {"type": "rejected", "reason": "import-not-allowed", "file": "program.py", "line": 4}
        return
    candidate = load(source)
    candidate.open(2)
    answer = candidate.call("f", [0, 1], [0, 0])
    assert answer == {"type": "raised", "exception": exception, "file": "program.py", "line": 4, "instance": 0}
    assert candidate.call("f", [1], [0]) == answer | {"instance": 1}, "the copy goes on"


def test_of_several_failures_the_lowest_instance_is_reported(load: Load) -> None:
    candidate = load("def f(x):\n    return 1 / (x - 3) if x < 4 else None\n")
    candidate.open(4)
    assert candidate.call("f", [3, 2, 0, 1], [3, 9, 0, 3]) == {
        "type": "raised", "exception": "ZeroDivisionError", "file": "program.py", "line": 2, "instance": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "exception", "line"),
    [
        ("1 / 0", "ZeroDivisionError", 2),
        ("raise SystemExit(0)", "SystemExit", 2),
        ("import math\nmath.sqrt(-1)", "ValueError", 3),
        ("from numpy import no_such_name", "ImportError", 2),
        ("x = [y for y in (1).z]", "AttributeError", 2),
    ],
)
def test_what_loading_raises_is_reported(load: Load, statement: str, exception: str, line: int) -> None:
    candidate = load(f"def f(x): return 1\n{statement}\n")
    assert candidate.loaded is not None
    assert candidate.loaded.head == {"type": "raised", "exception": exception, "file": "program.py", "line": line}


def hostile(code: str) -> str:
    """A program that gets at `os` behind the load check's back; the name `lib` keeps copies in own processes."""
    return f"import numpy as np\nlib = os = np.zeros(1).ctypes._ctypes._os\ndef f(x):\n    {code}\n    return 1.0\n"


@pytest.mark.parametrize(
    ("code", "exit_code", "signal"),
    [("os._exit(0)", 0, None), ("os._exit(3)", 3, None), ("os.kill(os.getpid(), 9)", None, 9), ("os.abort()", None, 6)],
)
def test_a_copy_that_ends_is_reported_with_its_ending(
    load: Load, code: str, exit_code: int | None, signal: int | None
) -> None:
    candidate = load(hostile(f"x and {code}"))
    candidate.open(3)
    assert candidate.call("f", [0, 1, 2], [0, 0, 0]) == [1.0, 1.0, 1.0]
    died = {"type": "died", "instance": 1, "exit_code": exit_code, "signal": signal}
    assert candidate.call("f", [0, 1, 2], [0, 1, 0]) == died
    assert candidate.call("f", [0, 1, 2], [0, 0, 0]) == died, "it stays dead"
    candidate.open(3)
    assert candidate.call("f", [0, 1, 2], [0, 0, 0]) == [1.0, 1.0, 1.0]


def test_a_reply_that_a_program_forges_on_its_own_pipe_is_malformed_at_most(load: Load) -> None:
    candidate = load(
        """
        import numpy as np
        lib = os = np.zeros(1).ctypes._ctypes._os
        def f(x):
            for descriptor in range(3, 40):
                try:
                    os.write(descriptor, bytes([255]) * 4096)
                except OSError:
                    pass
            return 1.0
        """
    )
    candidate.open(1)
    answer = candidate.call("f", [0], [0])
    assert answer == {"type": "invalid", "reason": "reply-malformed", "instance": 0}


def test_an_error_of_the_system_has_its_present_name(load: Load) -> None:
    candidate = load(hostile("os.write(-1, b'')"))
    candidate.open(1)
    assert candidate.call("f", [0], [0])["exception"] == "OSError"


def test_what_a_program_prints_is_never_in_the_channel(load: Load) -> None:
    candidate = load(
        """
        forged = '\\0\\0\\0\\x10\\0\\0\\0\\0{"type": "reply"}'
        print("at loading", forged)
        def f(x):
            print("in a call", forged, "x" * 200_000)
            return 1.0
        """
    )
    assert candidate.loaded is not None
    assert candidate.loaded.type == "loaded"
    candidate.open(2)
    assert candidate.call("f", [0, 1], [0, 0]) == [1.0, 1.0]
    code, printed = candidate.runner.end()
    assert code == 0
    assert printed.count("at loading") == 1, "what was printed before forking is not printed again by every copy"
    assert printed.count("in a call") == 2


def test_a_program_of_several_modules_imports_its_own_before_all_others(load: Load) -> None:
    candidate = load(
        {
            "program.py": """
                import heapq
                import rules.weights as w
                from rules import best
                from rules.deep.inner import VALUE
                import numpy as np, math
                def f(x):
                    return heapq.OWN + w.WEIGHT + best(x) + VALUE + math.floor(np.float64(0.5))
            """,
            "heapq.py": "OWN = 1000\n",
            "rules/__init__.py": "from .weights import WEIGHT\nfrom . import deep\ndef best(x): return x * WEIGHT\n",
            "rules/weights.py": "WEIGHT = 10\n",
            "rules/deep/inner.py": "from ..weights import WEIGHT\nVALUE = WEIGHT * 10\n",
            "notes.txt": "import os",
        }
    )
    candidate.open(1)
    assert candidate.call("f", [0], [3]) == [1000 + 10 + 30 + 100]


def test_an_error_in_a_module_is_placed_in_that_module(load: Load) -> None:
    files = {
        "program.py": "import part\ndef f(x):\n    return part.g(x)\n",
        "part.py": "\n\ndef g(x):\n    return 1 / x\n",
    }
    candidate = load(files)
    candidate.open(1)
    raised = {"type": "raised", "exception": "ZeroDivisionError", "file": "part.py", "line": 4, "instance": 0}
    assert candidate.call("f", [0], [0]) == raised


def test_a_module_that_does_not_exist_raises_when_it_is_imported(load: Load) -> None:
    candidate = load({"program.py": "import part.nothing\ndef f(x): return 1\n", "part/__init__.py": ""})
    assert candidate.loaded is not None
    assert candidate.loaded.head["exception"] == "ModuleNotFoundError"


def test_a_program_without_the_declared_function_is_rejected(load: Load) -> None:
    candidate = load("f = 3\n")
    assert candidate.loaded is not None
    assert candidate.loaded.head == {
        "type": "rejected", "reason": "function-missing", "file": "program.py", "line": None,
    }  # fmt: skip


def test_built_ins_that_the_load_check_denies_are_absent_at_run_time(load: Load) -> None:
    candidate = load("open = open\ndef f(x): return 1\n")
    assert candidate.loaded is not None
    assert candidate.loaded.head["exception"] == "NameError"


def test_a_hundred_copies_live_and_end_with_the_channel(load: Load) -> None:
    candidate = load("import numpy as np\ndef f(x):\n    return x + 0 * np.random.random()\n")  # see sharing.py
    candidate.open(100)
    assert candidate.call("f", range(100), range(100)) == [float(x) for x in range(100)]
    parent = str(candidate.runner.process.pid)
    assert len(children(parent)) == 101, "and the watch over the channel"
    assert candidate.runner.end() == (0, "")
    assert not children(parent)


def test_a_runner_in_an_endless_loop_is_ended_after_its_channel(launch: Launch) -> None:
    runner = launch("python")
    assert runner.start({"program.py": "while True: pass\n"}, entry="program.py", functions=SCALAR).type == "inspected"
    assert runner.end()[0] == -9


def test_a_runner_without_a_first_frame_ends_at_its_idle_deadline(launch: Launch) -> None:
    assert launch("python", idle_seconds=0.3).process.wait() == 75


def test_a_frame_that_makes_no_sense_ends_the_runner(launch: Launch) -> None:
    runner = launch("python")
    runner.send({"type": "call"})
    assert runner.receive() is None
    code, said = runner.end()
    assert code == 76
    assert "type 'call'" in said


def children(parent: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        if fields[1] == parent:
            found.append(process.name)
    return found
