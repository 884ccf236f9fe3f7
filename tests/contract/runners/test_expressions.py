"""Symbols as arguments and expressions as replies: the candidate's side, the wire, and the evaluator's side."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.domain.frames import Frame, decode, encode

if TYPE_CHECKING:
    from conftest import Launch, Runner

NODE = np.dtype([("code", "<u2"), ("symbol", "<u2"), ("value", "<f8")])
OPERATORS = (
    "constant", "symbol", "neg", "exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "abs",
    "add", "sub", "mul", "div", "pow", "min", "max",
)  # fmt: skip
CODES = {operator: code for code, operator in enumerate(OPERATORS)}
ARGUMENTS = [
    {"name": "t", "dtype": "symbol"},
    {"name": "k", "dtype": "int64"},
    {"name": "c", "dtype": "symbol", "length": 3},
]
"""Symbol 0, data, and the symbols 1 to 3."""
FUNCTIONS = {"f": {"arguments": ARGUMENTS, "returns": {"dtype": "expression", "maximum_nodes": 30}}}
TABLE = [{"name": "returns", "dtype": "expression", "ragged": True}]
T, C0, C2 = ("symbol", 0, 0.0), ("symbol", 1, 0.0), ("symbol", 3, 0.0)

Node = tuple[str | int, int, float]


def number(value: float) -> Node:
    return ("constant", 0, value)


def op(name: str) -> Node:
    return (name, 0, 0.0)


def body(*trees: Sequence[Node]) -> bytes:
    """What a reply holds: the number of nodes of every tree, then the nodes."""
    rows = [(CODES.get(str(code), code), symbol, value) for tree in trees for code, symbol, value in tree]
    return np.array(list(map(len, trees)), dtype="<u4").tobytes() + np.array(rows, dtype=NODE).tobytes()


def load(launch: Launch, expression: str, before: str = "") -> Runner:
    runner = launch("python")
    program = f"import math\nimport numpy as np\ndef f(t, k, c):\n{textwrap.indent(before, '    ')}\n"
    program += f"    return {expression}\n"
    assert runner.start({"program.py": program}, entry="program.py", functions=FUNCTIONS).type == "inspected"
    loaded = runner.receive()
    assert loaded is not None
    assert loaded.type == "loaded"
    assert runner.ask({"type": "open", "instances": 2}).type == "opened"
    return runner


def call(runner: Runner, *values: int) -> Frame:
    table = [{"name": "k", "dtype": "int64", "ragged": False}]
    head = {"type": "call", "function": "f", "instances": list(range(len(values))), "columns": table}
    return runner.ask(head, np.array(values, dtype="<i8").tobytes())


# The candidate's side


@pytest.fixture(scope="module")
def answer(launch_once: Launch) -> Callable[[str], Frame]:
    """What a program answers with this text as its expression: one program has them all."""
    functions = [f"def e{index}(t, c):\n    return {text}" for index, text in enumerate(TEXTS)]
    names = ", ".join(f"e{index}" for index in range(len(TEXTS)))
    choice = f"def f(t, k, c):\n    return [{names}][k](t, c)"
    source = "\n".join(["import numpy as np", "import math", *functions, choice])
    runner = launch_once("python")
    runner.start({"program.py": source}, entry="program.py", functions=FUNCTIONS)
    loaded = runner.receive()
    assert loaded is not None
    assert loaded.type == "loaded", loaded
    runner.ask({"type": "open", "instances": 1})
    return lambda text: call(runner, list(TEXTS).index(text))


BUILT: dict[str, list[Node]] = {
    "t": [T],
    "c[-1]": [C2],
    "-t": [op("neg"), T],
    "-(-t)": [T],
    "+t": [T],
    "2.5": [number(2.5)],
    "np.float32(0.5)": [number(0.5)],
    "-(0 * t + 2 - 2 - t)": [
        op("neg"), op("sub"), op("sub"), op("add"), op("mul"), number(0), T, number(2), number(2), T
    ],
    "3 * t": [op("mul"), number(3), T],
    "t - c[0] / 2": [op("sub"), T, op("div"), C0, number(2)],
    "2 ** t": [op("pow"), number(2), T],
    "abs(t)": [op("abs"), T],
    "np.float64(2) * t": [op("mul"), number(2), T],
    "t * np.float64(2)": [op("mul"), T, number(2)],
    "np.int64(2) + t": [op("add"), number(2), T],
    "np.array(2.0) + t": [op("add"), number(2), T],
    "np.exp(np.log(np.sqrt(np.sin(np.cos(np.tan(np.tanh(np.abs(t))))))))": [
        *map(op, ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "abs")), T
    ],
    "np.power(t, 3)": [op("pow"), T, number(3)],
    "np.square(t)": [op("pow"), T, number(2)],
    "np.minimum(t, 1) - np.maximum(c[0], t)": [op("sub"), op("min"), T, number(1), op("max"), C0, T],
    "sum(c)": [op("add"), op("add"), op("add"), number(0), C0, ("symbol", 2, 0.0), C2],
    "np.array([t, c[0]]).sum()": [op("add"), T, C0],
}  # fmt: skip
INVALID = {
    "None": "reply-type",
    "'t'": "reply-type",
    "True": "reply-type",
    "1j": "reply-type",
    "[t]": "reply-shape",
    "c": "reply-shape",
    "np.array([1.0])": "reply-shape",
    "t * math.nan": "reply-not-finite",
    "t + math.inf": "reply-not-finite",
    "math.nan": "reply-not-finite",
    "10 ** 400": "reply-not-finite",
    "sum([t] * 15)": "reply-nodes",
    "sum([t] * 100_000)": "reply-nodes",
}
RAISING = [
    "t > 1", "t == t", "t != c[0]", "1 if t else 2", "not t", "float(t)", "int(t)", "math.exp(t)", "t[0]", "len(t)",
    "list(t)", "round(t)", "hash(t)", "{t: 1}", "t % 2", "t // 2", "c + t", "c * t", "t * 'a'", "t * 1j", "t * True",
    "t * None", "np.array([1.0, 2.0]) * t", "t * np.array([1.0, 2.0])", "np.arctan(t)", "np.exp(t, where=False)",
    "np.add.outer(t, t)", "np.where(t, 1, 2)", "np.clip(t, 0, 1)", "np.sum(t)",
    "max(t, 1)", "np.exp(np.array([t]))[0]", "pow(t, 2, 3)",
]  # fmt: skip
TEXTS = dict.fromkeys([*BUILT, *INVALID, *RAISING])


@pytest.mark.parametrize("text", BUILT)
def test_what_is_computed_from_symbols_travels_in_prefix_order(answer: Callable[[str], Frame], text: str) -> None:
    frame = answer(text)
    assert frame == Frame({"type": "reply", "columns": TABLE}, body(BUILT[text]))


@pytest.mark.parametrize("text", INVALID)
def test_what_is_no_expression_is_an_invalid_reply(answer: Callable[[str], Frame], text: str) -> None:
    assert answer(text).head == {"type": "invalid", "reason": INVALID[text], "instance": 0}


@pytest.mark.parametrize("text", RAISING)
def test_what_asks_for_a_value_raises_a_type_error_in_the_program(answer: Callable[[str], Frame], text: str) -> None:
    head = answer(text).head
    assert (head["type"], head["exception"], head["file"]) == ("raised", "TypeError", "program.py")
    assert head["line"] == 4 + 2 * list(TEXTS).index(text)


def test_data_and_symbols_come_in_the_order_of_the_signature(launch: Launch) -> None:
    runner = load(launch, "(t + k) * c[1]")
    tree = [op("mul"), op("add"), T, number(5), ("symbol", 2, 0.0)]
    other = [op("mul"), op("add"), T, number(-7), ("symbol", 2, 0.0)]
    assert call(runner, 5, -7).body == body(tree, other)


def test_an_expression_that_doubles_a_hundred_times_is_refused_at_once(launch: Launch) -> None:
    runner = load(launch, "t", before="for _ in range(100):\n    t = t * t")
    assert call(runner, 1).head["reason"] == "reply-nodes"


def test_a_million_minus_signs_count_nothing(launch: Launch) -> None:
    runner = load(launch, "t", before="for _ in range(1_000_000):\n    t = -t")
    assert call(runner, 1).body == body([T])


# The evaluator's side, against whatever a candidate may send


class Evaluation:
    """One evaluator, whose candidate answers the call so."""

    def __init__(self, launch: Launch, task: Path) -> None:
        self._launch = launch
        self._task = task

    def answered(self, reply: bytes, evaluate: str, count: int = 1) -> dict[str, Any]:
        source = f"""
            from evaluator_api import Expression
            def evaluate(program, data, split):
                with program.open({count}) as instances:
                    trees = instances.call("f", list(range({count})), k=[1] * {count})
                {evaluate}
            """
        (self._task / "evaluator").mkdir()
        (self._task / "data").mkdir()
        (self._task / "evaluator" / "evaluate.py").write_text(textwrap.dedent(source))
        runner = self._launch("evaluator", "--task", str(self._task))
        size = {"nodes": 1, "lines": 1}
        frame = runner.ask({"type": "start", "split": "hidden", "functions": FUNCTIONS, "program": size})
        for answer in (Frame({"type": "opened"}), Frame({"type": "reply", "columns": TABLE}, reply)):
            assert frame.type == "to-candidate", frame
            sent = decode(frame.body)
            frame = runner.ask({"type": "from-candidate"}, encode(answer))
        assert sent.head["columns"] == [{"name": "k", "dtype": "int64", "ragged": False}]  # symbols do not travel
        return dict(frame.head)


@pytest.fixture
def evaluation(launch: Launch, tmp_path: Path) -> Evaluation:
    return Evaluation(launch, tmp_path)


def test_an_evaluator_gets_a_tree_for_every_instance(evaluation: Evaluation) -> None:
    tree = [op("sub"), op("mul"), number(-2.5), op("pow"), T, number(3), op("neg"), op("exp"), C2]
    evaluate = """
                first, second = trees
                assert isinstance(first, Expression)
                power = first.operands[0].operands[1]
                assert (power.operator, [o.operator for o in power.operands]) == ("pow", ["symbol", "constant"])
                assert [part.value for part in first.walk() if part.operator == "constant"] == [-2.5, 3.0]
                assert second == Expression(operator="symbol", symbol=1)
                return {"nodes": first.nodes, "symbols": sum(first.symbols)}
    """.strip()
    assert evaluation.answered(body(tree, [C0]), evaluate, count=2) == {
        "type": "verdict", "status": "scored", "metrics": {"nodes": 8.0, "symbols": 3.0}
    }  # fmt: skip


HOSTILE: dict[str, tuple[bytes, str]] = {
    "a-million-nodes": (body([op("neg")] * 1_000_000), "reply-nodes"),
    "thirty-one-nodes": (body([op("add")] * 15 + [T] * 16), "reply-nodes"),
    "no-node": (body([]), "reply-expression"),
    "operands-missing": (body([op("add"), T]), "reply-expression"),
    "nodes-left-over": (body([T, T]), "reply-expression"),
    "an-unknown-operator": (body([(len(OPERATORS), 0, 0.0), T]), "reply-expression"),
    "the-largest-code": (body([(65535, 0, 0.0), T]), "reply-expression"),
    "a-symbol-that-is-none": (body([("symbol", 4, 0.0)]), "reply-expression"),
    "a-symbol-with-a-value": (body([("symbol", 0, 1.0)]), "reply-expression"),
    "a-symbol-with-a-negative-zero": (body([("symbol", 0, -0.0)]), "reply-expression"),
    "a-constant-with-a-symbol": (body([("constant", 1, 1.0)]), "reply-expression"),
    "an-operator-with-a-value": (body([("exp", 0, 1.0), T]), "reply-expression"),
    "two-minus-signs": (body([op("neg"), op("neg"), T]), "reply-expression"),
    "a-minus-before-a-number": (body([op("neg"), number(1.0)]), "reply-expression"),
    "no-number": (body([number(math.nan)]), "reply-not-finite"),
    "an-infinite-number": (body([op("add"), T, number(-math.inf)]), "reply-not-finite"),
    "a-byte-too-few": (body([T])[:-1], "reply-malformed"),
    "a-byte-too-many": (body([T]) + b"\0", "reply-malformed"),
    "more-nodes-than-there-are": (b"\xff\xff\xff\xff" + body([T])[4:], "reply-malformed"),
    "another-tree": (body([T], [T]), "reply-malformed"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_tree_ends_with_a_fixed_reason(evaluation: Evaluation, name: str) -> None:
    reply, reason = HOSTILE[name]
    head = evaluation.answered(reply, "return {'x': 1.0}")
    assert head == {"type": "verdict", "status": "invalid", "reason": reason}


def test_a_tree_as_deep_as_it_may_be_is_taken(evaluation: Evaluation) -> None:
    deep = [part for _ in range(29) for part in (op("neg"), op("sin"))] + [op("neg"), T]
    head = evaluation.answered(body(deep), "return {'nodes': trees[0].nodes}")
    assert head == {"type": "verdict", "status": "scored", "metrics": {"nodes": 30.0}}
