"""The evaluator runner and the author's interface, against the real candidate runner and against forged frames."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.domain.frames import PREFIX, Frame, decode_head, encode, unpack_blobs

if TYPE_CHECKING:
    from conftest import Launch, Runner

FUNCTIONS = {
    "f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64"}},
    "g": {
        "arguments": [{"name": "k", "dtype": "int64"}, {"name": "v", "dtype": "float64", "ragged": True}],
        "returns": {"dtype": "float64", "like": "v"},
    },
    "free": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64", "finite": False}},
    "unit": {
        "arguments": [{"name": "x", "dtype": "int64"}],
        "returns": {"dtype": "float64", "minimum": 0, "maximum": 1},
    },
}
PROGRAM = """
import numpy as np
import math
calls = 0
def f(x):
    global calls
    calls += 1
    return x + calls / 10
def g(k, v):
    return k * v
def free(x):
    return math.nan
def unit(x):
    return x
"""
OPENED = Frame({"type": "opened"})
HEADER = """
from pathlib import Path
import numpy as np
from evaluator_api import MAX_INSTANCES, Program, Ragged, Refused

"""


class Relay:
    """Does what the orchestrator does: passes inner frames on and takes the verdict."""

    def __init__(self, launch: Launch, task: Path) -> None:
        self._launch = launch
        self.task = task
        self.inner: list[Frame] = []
        """What the candidate was sent."""

    def evaluator(self, source: str) -> Runner:
        folder = self.task / "evaluator"
        folder.mkdir(exist_ok=True)
        (self.task / "data").mkdir(exist_ok=True)
        (folder / "evaluate.py").write_text(HEADER + textwrap.dedent(source))
        return self._launch("evaluator", "--task", str(self.task))

    def score(self, body: str, program: str = PROGRAM) -> dict[str, Any]:
        """The last frame's head, for `evaluate` with this body against a real candidate."""
        candidate = self._launch("python")
        inspected = candidate.start({"program.py": program}, entry="program.py", functions=FUNCTIONS)
        loaded = candidate.receive()
        assert loaded is not None
        assert loaded.type == "loaded"
        return self._finish(body, inspected.head, lambda frame: candidate.ask(frame.head, frame.body))

    def answer(self, body: str, *answers: Frame | bytes) -> dict[str, Any]:
        """The same against a candidate that answers so, whatever it is asked."""
        rest = iter(answers)
        return self._finish(body, {"nodes": 1, "lines": 1}, lambda _: next(rest))

    def _finish(self, body: str, inspected: Mapping[str, Any], ask: Callable[[Frame], Frame | bytes]) -> dict[str, Any]:
        body = textwrap.indent(textwrap.dedent(body), "    ")
        runner = self.evaluator(f"def evaluate(program, data, split):\n{body}")
        size = {"nodes": inspected["nodes"], "lines": inspected["lines"]}
        frame = runner.ask({"type": "start", "split": "hidden", "functions": FUNCTIONS, "program": size})
        while frame.type == "to-candidate":
            inner = decode(frame.body)
            self.inner.append(inner)
            answer = ask(inner)
            frame = runner.ask({"type": "from-candidate"}, encode(answer) if isinstance(answer, Frame) else answer)
        assert runner.end()[0] == 0
        return dict(frame.head)


def decode(raw: bytes) -> Frame:
    head_bytes, body_bytes = PREFIX.unpack_from(raw)
    start = PREFIX.size + head_bytes
    assert len(raw) == start + body_bytes
    return Frame(decode_head(raw[PREFIX.size : start]), raw[start:])


@pytest.fixture
def relay(launch: Launch, tmp_path: Path) -> Relay:
    return Relay(launch, tmp_path)


def one(call: str) -> str:
    return f"with program.open(2) as instances:\n    {call}\nreturn {{'m': 1.0}}"


def test_metrics_are_scored(relay: Relay) -> None:
    body = """
        with program.open(3) as instances:
            first = instances.call("f", [0, 1, 2], x=[10, 20, 30])
            second = instances.call("f", np.array([2]), x=np.array([5]))
            out = instances.call("g", [1, 0], k=[2, 3], v=Ragged(np.arange(3.0), [1, 2]))
        assert type(out) is Ragged and out.lengths.tolist() == [1, 2]
        return {"first": first[0], "second": second[0], "g": int(out.values.sum()), "nodes": program.nodes}
    """
    verdict = relay.score(body)
    nodes = verdict["metrics"].pop("nodes")
    assert verdict == {"type": "verdict", "status": "scored", "metrics": {"first": 10.1, "second": 5.2, "g": 9.0}}
    assert nodes > 20
    assert [frame.type for frame in relay.inner] == ["open", "call", "call", "call"]


def test_opening_twice_starts_from_the_loaded_state(relay: Relay) -> None:
    body = """
        seen = []
        for _ in range(2):
            with program.open(1) as instances:
                seen += [instances.call("f", [0], x=[0])[0] for _ in range(3)]
        return {str(k): value for k, value in enumerate(seen)}
    """
    assert list(relay.score(body)["metrics"].values()) == [0.1, 0.2, 0.3] * 2


def test_ragged_columns_may_be_empty_and_split(relay: Relay) -> None:
    body = """
        rows = [np.empty(0), np.array([1.5, 2.5]), np.empty(0)]
        with program.open(3) as instances:
            out = instances.call("g", [0, 1, 2], k=[1, 2, 3], v=Ragged.of(rows))
            nothing = instances.call("g", [], k=[], v=Ragged([], []))
        assert [row.tolist() for row in out.split()] == [[], [3.0, 5.0], []]
        return {"n": len(nothing.values) + len(nothing.lengths)}
    """
    assert relay.score(body)["metrics"] == {"n": 0.0}
    assert len(relay.inner) == 2, "a call for no instance sends nothing"


def test_a_refusal_carries_the_tasks_message(relay: Relay) -> None:
    assert relay.score("raise Refused('too-slow')") == {"type": "verdict", "status": "refused", "message": "too-slow"}


def test_what_the_program_raises_is_passed_on_past_the_authors_own_handlers(relay: Relay) -> None:
    body = """
        try:
            with program.open(2) as instances:
                instances.call("f", [0, 1], x=[0, 1])
        except Exception:
            return {"m": 1.0}
    """
    verdict = relay.score(body, PROGRAM.replace("return x + calls / 10", "return 1 / (x - 1)"))
    place = {"exception": "ZeroDivisionError", "file": "program.py", "line": 8}
    assert verdict == {"type": "verdict", "status": "raised", **place}


def test_a_copy_that_dies_is_a_verdict(relay: Relay) -> None:
    program = PROGRAM.replace("import math", "import math\nlib = os = np.zeros(1).ctypes._ctypes._os").replace(
        "return k * v", "os._exit(3)"
    )
    verdict = relay.score(one("instances.call('g', [1], k=[0], v=Ragged([1.0], [1]))"), program)
    assert verdict == {"type": "verdict", "status": "died", "exit_code": 3, "signal": None}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("instances.call('unit', [0], x=[2])", "reply-range"),
        ("instances.call('unit', [0], x=[-1])", "reply-range"),
        ("instances.call('f', [0], x=[1])", "reply-not-finite"),
        ("instances.call('g', [0], k=[1], v=Ragged([1.0], [1]))", "reply-length"),
    ],
)
def test_a_reply_out_of_the_signature_is_invalid(relay: Relay, call: str, reason: str) -> None:
    program = PROGRAM.replace("return x + calls / 10", "return math.inf").replace("return k * v", "return v[:0]")
    assert relay.score(one(call), program) == {"type": "verdict", "status": "invalid", "reason": reason}


def test_a_signature_may_allow_what_is_not_finite(relay: Relay) -> None:
    assert relay.score(one("assert np.isnan(instances.call('free', [0], x=[1])[0])"))["status"] == "scored"


@pytest.mark.parametrize(
    "body",
    [
        "return {'m': float('nan')}",
        "return {'m': np.inf}",
        "return {'m': True}",
        "return {'m': '1'}",
        "return {1: 1.0}",
        "return {}",
        "return 1.0",
        "raise ValueError('of the task')",
        "raise SystemExit(0)",
        one("instances.call('unknown', [0], x=[1])"),
        one("instances.call('f', [0], y=[1])"),
        one("instances.call('f', [0, 0], x=[1, 1])"),
        one("instances.call('f', [2], x=[1])"),
        one("instances.call('f', [0.0], x=[1])"),
        one("instances.call('f', [0, 1], x=[1])"),
        one("instances.call('f', [0], x=[1.5])"),
        one("instances.call('f', [0], x=Ragged([1], [1]))"),
        one("instances.call('g', [0], k=[1], v=[1.0])"),
        one("instances.call('g', [0, 1], k=[1, 1], v=Ragged([1.0], [1]))"),
        one("Ragged([1.0], [2])"),
        one("Ragged([1.0], [2, -1])"),
        "program.open(MAX_INSTANCES + 1).__enter__()",
        "program.open(0).__enter__()",
        "with program.open(1) as i: pass\ni.call('f', [0], x=[1])",
    ],
)
def test_a_mistake_of_the_task_is_failed_and_never_the_programs(relay: Relay, body: str) -> None:
    last = relay.answer(body, *[OPENED] * 2)
    assert last["type"] == "failed"
    assert "Traceback" in last["message"]


REPLY = [{"name": "returns", "dtype": "float64", "ragged": False}]
VALUES = np.array([1.0, 2.0]).tobytes()
CALL = one("instances.call('f', [0, 1], x=[1, 1])")


def test_a_well_formed_answer_is_taken(relay: Relay) -> None:
    assert relay.answer(CALL, OPENED, Frame({"type": "reply", "columns": REPLY}, VALUES))["status"] == "scored"


@pytest.mark.parametrize(
    "answer",
    [
        Frame({"type": "reply", "columns": REPLY}, VALUES[:8]),
        Frame({"type": "reply", "columns": REPLY}, VALUES + b"x"),
        Frame({"type": "reply", "columns": [REPLY[0] | {"dtype": "object"}]}, VALUES),
        Frame({"type": "reply", "columns": [REPLY[0] | {"ragged": True}]}, VALUES),
        Frame({"type": "reply", "columns": REPLY * 2}, VALUES),
        Frame({"type": "reply", "columns": 3}, VALUES),
        Frame({"type": "reply"}, VALUES),
        Frame({"type": "verdict", "status": "scored", "metrics": {"m": 1.0}}),
        Frame({"type": "to-candidate"}),
        Frame({"type": "raised", "exception": "Leak42", "file": None, "line": None}),
        Frame({"type": "raised", "exception": ["ValueError"], "file": None, "line": None}),
        Frame({"type": "raised", "exception": "ValueError", "file": "a b\n", "line": 1}),
        Frame({"type": "raised", "exception": "ValueError", "file": "a.py", "line": -1}),
        Frame({"type": "raised", "exception": "ValueError", "file": "a.py", "line": True}),
        Frame({"type": "raised", "exception": "ValueError", "file": "a.py", "line": 10**12}),
        Frame({"type": "invalid", "reason": "anything 42"}),
        Frame({"type": "invalid", "reason": {"a": 1}}),
        Frame({"type": "died", "exit_code": 10**6, "signal": None}),
        Frame({"type": "died", "exit_code": "0", "signal": None}),
        b"",
        b"\0" * 8,
        b"\xff" * 100,
        encode(OPENED) + b"x",
    ],
)
def test_a_forged_answer_is_malformed_and_nothing_of_it_gets_further(relay: Relay, answer: Frame | bytes) -> None:
    verdict = relay.answer(CALL, OPENED, answer)
    assert verdict == {"type": "verdict", "status": "invalid", "reason": "reply-malformed"}


@pytest.mark.parametrize("answer", [Frame({"type": "reply", "columns": []}), Frame({"type": "closed"}), b""])
def test_a_forged_answer_to_opening_is_malformed_too(relay: Relay, answer: Frame | bytes) -> None:
    assert relay.answer(CALL, answer)["reason"] == "reply-malformed"


def test_what_forking_raises_is_passed_on(relay: Relay) -> None:
    raised = {"exception": "BlockingIOError", "file": None, "line": None}
    verdict = relay.answer(CALL, Frame({"type": "raised", **raised}))
    assert verdict == {"type": "verdict", "status": "raised", **raised}


def test_a_bool_that_is_neither_true_nor_false_is_malformed(launch: Launch, tmp_path: Path) -> None:
    relay = Relay(launch, tmp_path)
    FUNCTIONS["flag"] = {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "bool"}}
    answer = Frame({"type": "reply", "columns": [REPLY[0] | {"dtype": "bool"}]}, b"\x02\x01")
    verdict = relay.answer(one("instances.call('flag', [0, 1], x=[1, 1])"), OPENED, answer)
    assert verdict["reason"] == "reply-malformed"


def generate(relay: Relay, body: str, seed: object = 7) -> tuple[list[Frame], dict[str, bytes]]:
    runner = relay.evaluator(f"def generate(seed, split):\n    {body}\n")
    frames = [runner.ask({"type": "generate", "split": "hidden", "seed": seed})]
    while frames[-1].type == "generated" and not frames[-1].head["last"]:
        following = runner.receive()
        assert following is not None
        frames.append(following)
    files: dict[str, bytes] = {}
    for frame in frames:
        if frame.type == "generated":
            for name, part in unpack_blobs(frame.head["blobs"], frame.body).items():
                files[name] = files.get(name, b"") + part
    return frames, files


def test_generated_files_arrive_whole_in_frames_of_bounded_size(relay: Relay) -> None:
    body = (
        "return {'a': bytes(10_000_000), 'e': b'', 'b': b'xy', 'c': bytes(4 << 20), 's': str((seed, split)).encode()}"
    )
    frames, files = generate(relay, body)
    assert {name: len(content) for name, content in files.items()} == {
        "a": 10_000_000, "e": 0, "b": 2, "c": 4 << 20, "s": 13,
    }  # fmt: skip
    assert files["s"] == b"(7, 'hidden')"
    assert max(len(frame.body) for frame in frames) <= 4 << 20
    assert [frame.head["last"] for frame in frames] == [False] * (len(frames) - 1) + [True]


def test_many_generated_files_arrive(relay: Relay) -> None:
    _, files = generate(relay, "return {f'f{k}': str(k).encode() for k in range(1000)}")
    assert files == {f"f{k}": str(k).encode() for k in range(1000)}


def test_a_seed_of_128_bits_comes_as_a_decimal_string(relay: Relay) -> None:
    _, files = generate(relay, "return {'s': str(seed).encode()}", str(2**128 - 1))
    assert files == {"s": str(2**128 - 1).encode()}


@pytest.mark.parametrize("body", ["return {'a': 'text'}", "return None", "raise KeyError('x')"])
def test_generating_anything_but_files_is_failed(relay: Relay, body: str) -> None:
    frames, _ = generate(relay, body)
    assert [frame.type for frame in frames] == ["failed"]


def test_the_bin_packing_evaluator_scores_best_fit_over_both_runners(launch: Launch, tmp_path: Path) -> None:
    tasks = Path(__file__).parents[3] / "tasks" / "online_bin_packing"
    (tmp_path / "evaluator").symlink_to(tasks / "evaluator")
    (tmp_path / "data").mkdir()
    sizes = np.random.default_rng(5).integers(20, 101, size=(100, 120))
    (tmp_path / "data" / "sequences.json").write_text(json.dumps(sizes.tolist()))
    functions = {
        "priority": {
            "arguments": [{"name": "item", "dtype": "int64"}, {"name": "bins", "dtype": "int64", "ragged": True}],
            "returns": {"dtype": "float64", "like": "bins"},
        }
    }
    candidate, runner = launch("python"), launch("evaluator", "--task", str(tmp_path))
    best_fit = "def priority(item, bins):\n    return item - bins\n"
    inspected = candidate.start({"program.py": best_fit}, entry="program.py", functions=functions)
    candidate.receive()
    size = {"nodes": inspected.head["nodes"], "lines": inspected.head["lines"]}
    frame = runner.ask({"type": "start", "split": "hidden", "functions": functions, "program": size})
    steps = 0
    while frame.type == "to-candidate":
        inner = decode(frame.body)
        steps += inner.type == "call"
        frame = runner.ask({"type": "from-candidate"}, encode(candidate.ask(inner.head, inner.body)))
    assert frame.type == "verdict", frame
    assert steps == 120
    assert 5.9 <= frame.head["metrics"]["excess_percent"] <= 7.0
    assert frame.head["metrics"]["deviation"] == 0
