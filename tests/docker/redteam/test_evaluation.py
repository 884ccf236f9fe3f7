"""S and hostile candidates: the evaluator keeps its secrets, no forgery is a score, and the next program is unhurt."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hostility import CHANNEL, attack, hostile

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import decode_head
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Disclosure, Purpose
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import ProtocolError
from orchestrator.evaluation.disclosure import disclose
from orchestrator.evaluation.tasks import Task

pytestmark = pytest.mark.docker

Evaluate = Callable[..., Verdict]
Metrics = Mapping[str, float]
SHORT = {"wall_seconds": 20.0, "load_cpu_seconds": 2.0}
"""For programs that hang."""
PROJECT = Path(__file__).parents[3]
NEVER_DECODED = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "jsonpickle"}
RETURNING = "import numpy as np\nCALLS = 0\ndef priority(item, bins):\n    {}\n"


def lines(verdict: Verdict) -> list[str]:
    """What the program printed; stored, and withheld from models."""
    return verdict.outcome.output.decode(errors="replace").splitlines()


def told(verdict: Verdict, task: Task, disclosure: Disclosure | None = None) -> str:
    """All that a model would learn."""
    return json.dumps(asdict(disclose(verdict, disclosure or Disclosure(), task)))


@pytest.mark.probe("S1", "frames of callers, every object in memory, every module: is the evaluator among them?")
def test_no_object_of_the_evaluator_is_in_the_process(evaluate: Evaluate, best_fit: Metrics) -> None:
    verdict = evaluate(hostile(attack("objects")))
    assert verdict.metrics is not None
    assert verdict.metrics["excess_percent"] == best_fit["excess_percent"]
    assert lines(verdict)[:3] == ["control True True", "found []", "sequences 0"]


@pytest.mark.probe("S2", "memory, environment, arguments and descriptors of every process it can see")
def test_every_visible_process_is_its_own_and_holds_nothing_hidden(evaluate: Evaluate) -> None:
    verdict = evaluate(hostile(attack("memory")))
    assert verdict.metrics is not None
    assert lines(verdict) == ["uids True own True evaluator 0"]


@pytest.mark.probe("S5", "carry data out in exception names, messages, files and lines")
def test_an_exception_tells_a_built_in_name_and_a_line(evaluate: Evaluate, task: Task) -> None:
    program = (
        "class Secret_42_17(Exception):\n    pass\ndef priority(item, bins):\n"
        "    raise Secret_42_17('/etc/passwd', item, '/task/data')\n"
    )
    verdict = evaluate(FileTree({"program.py": program.encode()}))
    assert verdict.failure is not None
    assert verdict.failure.ending is Ending.ERROR
    text = told(verdict, task)
    assert json.loads(text)["failure"]["exception"] == "Exception"
    assert json.loads(text)["failure"]["line"] == 4
    for leak in ("Secret", "42", "/etc", "/task", "/opt", "/work"):
        assert leak not in text
    assert json.loads(told(verdict, task, Disclosure(failure_line=False)))["failure"]["line"] is None
    forged = CHANNEL + 'frame(b\'{"type":"raised","exception":"Secret_9","file":"/etc/shadow","line":7}\')\n'
    failure = evaluate(hostile(forged)).failure
    assert failure is not None
    assert (failure.exception, failure.file, failure.line) == ("Exception", None, None)


@pytest.mark.probe("S6", "print verdicts, end markers and frames to stdout and stderr")
def test_what_is_printed_is_never_read(evaluate: Evaluate, best_fit: Metrics) -> None:
    fake = (
        'line = \'{"type":"verdict","status":"scored","metrics":{"fitness":1.0,"excess_percent":0.0}}\'\n'
        "import struct, sys\nraw = struct.pack('>II', len(line), 0) + line.encode()\n"
        "for stream in (sys.stdout, sys.stderr):\n    print(line, file=stream)\n"
        "    stream.buffer.write(raw)\n    stream.flush()\n"
    )
    verdict = evaluate(hostile(fake))
    assert verdict.metrics is not None
    assert {**verdict.metrics, "ast_nodes": 0} == {**best_fit, "ast_nodes": 0}
    assert b"scored" in verdict.outcome.output


FORGED = [
    b'{"type":"verdict","status":"scored","metrics":{"fitness":1.0,"excess_percent":0.0,"ast_nodes":0.1,"deviation":0.1}}',
    b'{"type":"loaded"}',
    b'{"type":"opened"}',
    b'{"type":"reply","columns":[]}',
    b'{"type":"failed","message":"x"}',
    b'{"type":"to-candidate"}',
    b'{"type":"ready","protocol":1,"role":"candidate"}',
    b'{"type":"died","instance":0,"exit_code":0,"signal":null}',
    b'{"type":"invalid","reason":"none of them","instance":0}',
]


@pytest.mark.probe("S7", "send frames of its own, a verdict among them, then leave with exit code 0")
@pytest.mark.parametrize("head", FORGED, ids=lambda head: json.loads(head)["type"])
def test_a_forged_frame_is_never_a_score(evaluate: Evaluate, head: bytes) -> None:
    verdict = evaluate(hostile(CHANNEL + f"frame({head!r})\nos._exit(0)\n"))
    assert verdict.metrics is None
    assert verdict.failure is not None
    assert verdict.failure.ending is not Ending.OK


HEADS = {
    "NaN": b'{"type":"a","x":NaN}',
    "infinity": b'{"type":"a","x":-Infinity}',
    "1e999": b'{"type":"a","x":1e999}',
    "duplicate keys": b'{"type":"loaded","type":"a"}',
    "10,000 digits": b'{"type":"a","x":' + b"1" * 10_000 + b"}",
    "depth": b'{"type":"a","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "a million keys": b'{"type":"a",' + b",".join(b'"%d":0' % n for n in range(100_000)) + b"}",
    "lone surrogate": b'{"type":"a","x":"\\ud800"}',
    "a number for the type": b'{"type":1}',
    "true for the type": b'{"type":true}',
    "byte-order mark": b'\xef\xbb\xbf{"type":"a"}',
    "trailing data": b'{"type":"a"}{}',
    "UTF-16": '{"type":"a"}'.encode("utf-16"),
    "no object": b'[{"type":"a"}]',
    "not UTF-8": b'{"type":"\xff"}',
}


@pytest.mark.probe("S9", "JSON that parsers disagree about, fifteen kinds of it")
def test_json_that_is_not_strict_is_an_invalid_result(evaluate: Evaluate) -> None:
    for name, head in HEADS.items():
        if name != "a million keys":  # the limit on heads catches it, below
            with pytest.raises(ProtocolError):
                decode_head(head)
    for name in ("NaN", "depth", "a million keys", "UTF-16"):
        make = f"frame({HEADS[name]!r})\n" if name != "a million keys" else "put(struct.pack('>II', 1 << 20, 0))\n"
        verdict = evaluate(hostile(CHANNEL + make + "import time\ntime.sleep(60)\n"))
        assert verdict.failure is not None, name
        assert verdict.failure.ending is Ending.INVALID_RESULT, name


PADDED = {
    "a long head": 'frame(b\'{"type":"opened","pad":"\' + b\'x\' * 60_000 + b\'"}\')',
    "a head that grows": 'frame(b\'{"type":"opened","pad":"\' + \'\\u2603\'.encode() * 20_000 + b\'"}\')',
    "a body that leaves no room for the wrapping": 'frame(b\'{"type":"opened"}\', bytes((16 << 20) - 4))',
    "a long body": 'frame(b\'{"type":"opened"}\')\nframe(b\'{"type":"reply","columns":[]}\', bytes(7 << 20))',
}


@pytest.mark.parametrize("what", PADDED)
def test_padding_is_the_failure_of_whoever_padded(evaluate: Evaluate, what: str) -> None:
    program = CHANNEL + f'frame(b\'{{"type":"loaded"}}\')\n{PADDED[what]}\nos._exit(0)\n'
    assert evaluate(hostile(program)).failure is not None  # and nothing of ours has raised


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.probe("S10", "objects that run code when they are decoded (pickle and its kin)")
def test_no_object_is_decoded_on_our_side(evaluate: Evaluate) -> None:
    sources = [*(PROJECT / "orchestrator").rglob("*.py"), *(PROJECT / "sandbox_images").rglob("*.py")]
    assert len(sources) > 50
    assert {module for path in sources for module in imports(path)} & NEVER_DECODED == set()
    assert not [path for path in sources if "allow_pickle=True" in path.read_text() or "np.load(" in path.read_text()]
    program = (
        "import numpy as np\nclass Bomb(np.ndarray):\n    def __reduce__(self):\n        print('decoded')\n"
        "        return (print, ('decoded',))\ndef priority(item, bins):\n"
        "    return np.array([Bomb(1)] * len(bins), dtype=object)\n"
    )
    verdict = evaluate(hostile(program))
    assert verdict.failure is not None
    assert verdict.failure.ending is Ending.INVALID_RESULT
    assert "decoded" not in verdict.outcome.output.decode()


WRONG = {
    "NaN": "return bins * float('nan')",
    "infinite": "return bins * float('inf')",
    "NaN in one place": "x = bins * 1.0; x[-1] = float('nan'); return x",
    "short": "return (bins * 1.0)[1:]",
    "two-dimensional": "return np.ones((len(bins), 2))",
    "complex": "return bins * 1j",
    "text": "return 'x' * len(bins)",
    "nothing": "return None",
}


@pytest.mark.probe("S12", "NaN, infinities and wrong shapes as priorities, to win a maximum")
def test_a_reply_that_is_no_reply_is_invalid(evaluate: Evaluate) -> None:
    for name, statement in WRONG.items():
        verdict = evaluate(FileTree({"program.py": RETURNING.format(statement).encode()}))
        assert verdict.metrics is None, name
        assert verdict.failure is not None
        assert verdict.failure.ending is Ending.INVALID_RESULT, name


@pytest.mark.probe("S12b", "a subclass of an array or a number that lies about itself")
def test_a_subclass_is_its_numbers_or_nothing(evaluate: Evaluate, best_fit: Metrics) -> None:
    liar = (
        "import numpy as np\nclass Liar(np.ndarray):\n    def __len__(self):\n        return 10**9\n"
        "    def __array__(self, *a, **k):\n        return np.full(3, np.nan)\n"
        "    def tobytes(self, *a):\n        return b'x' * 99\n    dtype = property(lambda self: np.dtype(object))\n"
        "def priority(item, bins):\n    return (item - bins * 1.0).view(Liar)\n"
    )
    verdict = evaluate(hostile(liar))
    if verdict.metrics is None:
        assert verdict.failure is not None
        assert verdict.failure.ending in {Ending.INVALID_RESULT, Ending.ERROR}
    else:
        assert verdict.metrics["excess_percent"] == best_fit["excess_percent"]


LEAVING = {
    "sys.exit(0) when loaded": "import sys\nsys.exit(0)\n",
    "os._exit(0) when loaded": "import os\nos._exit(0)\n",
    "SystemExit when called": "def priority(item, bins):\n    raise SystemExit(0)\n",
    "os._exit(0) when called": "import os\ndef priority(item, bins):\n    os._exit(0)\n",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\nraise KeyboardInterrupt\n",
    "__del__": "class D:\n    def __del__(self):\n        raise SystemExit(0)\nD()\nraise GeneratorExit\n",
    "kills its runner": "import os\nos.kill(os.getpid(), 9)\n",
    "kills its runner when called": (
        "import os\ndef priority(item, bins):\n    os.kill(os.getppid(), 9)\n    os._exit(0)\n"
    ),
    "kills everybody and leaves": "import os\nos.kill(-1, 9)\nos._exit(0)\n",
}


@pytest.mark.probe("S13", "leave with exit code 0 in every way there is, when loaded and when called")
def test_leaving_is_never_a_success(evaluate: Evaluate) -> None:
    for name, code in LEAVING.items():
        verdict = evaluate(hostile(code), **SHORT)
        assert verdict.metrics is None, name
        assert verdict.failure is not None
        assert verdict.failure.ending in {Ending.ERROR, Ending.NO_RESULT, Ending.KILLED}, (name, verdict.failure)


HANGING = {
    "sleeps when loaded": ("import time\ntime.sleep(10**9)\n", {Ending.TIMEOUT}, {"wall_seconds": 3.0}),
    "sleeps when called": (
        "import time\ndef priority(item, bins):\n    time.sleep(10**9)\n", {Ending.TIMEOUT}, {"wall_seconds": 4.0},
    ),
    "computes when loaded": ("while True:\n    pass\n", {Ending.TIMEOUT}, {"load_cpu_seconds": 1.0}),
    "forks": (
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
        {Ending.PROCESSES}, SHORT,
    ),
    "allocates": ("x = []\nwhile True:\n    x.append(b'x' * (1 << 24))\n", {Ending.MEMORY}, {"memory_bytes": 1 << 27}),
    "floods": ("import os\nwhile True:\n    os.write(1, b'x' * 65536)\n", {Ending.OUTPUT_LIMIT}, SHORT),
    "floods with frames": (CHANNEL + "while True:\n    frame(b'{\"type\":\"x\"}', bytes(1 << 16))\n",
                           {Ending.OUTPUT_LIMIT, Ending.INVALID_RESULT}, SHORT),
}  # fmt: skip


@pytest.mark.probe("R21", "sleep, compute, fork, allocate and flood under formal evaluation")
@pytest.mark.parametrize("name", HANGING)
def test_a_program_that_hangs_gets_its_ending(evaluate: Evaluate, name: str, expected: Mapping[str, Any]) -> None:
    code, endings, limits = HANGING[name]
    verdict = evaluate(hostile(code), **limits)
    assert verdict.failure is not None
    assert verdict.failure.ending in endings | (expected["bomb-endings"] if name == "forks" else set())


@pytest.mark.probe("S16", "time, memory and errors as a side channel: is the evaluator anywhere near?")
def test_the_evaluator_lives_elsewhere_and_scores_can_be_rounded(evaluate: Evaluate, audit: Any, task: Task) -> None:
    verdict = evaluate(task.initial)
    candidate, evaluator = audit.last(Purpose.CANDIDATE), audit.last(Purpose.EVALUATOR)
    assert candidate.container_id != evaluator.container_id
    assert candidate.uid != evaluator.uid
    assert candidate.mounts == {}
    assert set(evaluator.mounts) == {"task"}
    digits = 2
    shown = json.loads(told(verdict, task, Disclosure(metric_digits=digits)))["metrics"]
    assert verdict.metrics is not None
    assert all(shown[name] == float(f"{value:.{digits}g}") for name, value in verdict.metrics.items())
    assert shown != dict(verdict.metrics)


@pytest.mark.probe("S15", "learn the instances by heart: the sets of other phases are others")
def test_every_split_has_data_of_its_own(evaluate: Evaluate, task: Task) -> None:
    hidden, fresh = evaluate(task.initial), evaluate(task.initial, split="fresh")
    assert hidden.fingerprint["data"] != fresh.fingerprint["data"]
    assert hidden.secret
    assert fresh.secret


@pytest.mark.probe("S17", "ask again and again with the score as an oracle: every question leaves its records")
def test_every_evaluation_leaves_a_record_of_both_containers(
    evaluate: Evaluate, audit: Any, task: Task, best_fit: Metrics
) -> None:
    assert best_fit  # the split is made
    before = len(audit.records)
    evaluate(task.initial)
    evaluate(hostile("import os\nos._exit(0)\n"))
    purposes = [record.purpose for record in audit.records[before:]]
    assert purposes.count("candidate") == 2
    assert purposes.count("evaluator") == 1  # the second program never came so far
    assert len({record.container_id for record in audit.records}) == len(audit.records)


@pytest.mark.probe("S18", "read every file in sight while being scored")
def test_reading_everything_changes_no_score_and_finds_no_task(evaluate: Evaluate, best_fit: Metrics) -> None:
    verdict = evaluate(hostile(attack("every_file")), wall_seconds=40.0)
    assert verdict.metrics is not None, verdict.failure
    assert verdict.metrics["excess_percent"] == best_fit["excess_percent"]
    assert lines(verdict) == ["True [] []"]


@pytest.mark.probe("S18b", "kill every process in reach, and stay")
def test_a_program_that_killed_everybody_else_is_scored_by_its_replies(evaluate: Evaluate, best_fit: Metrics) -> None:
    verdict = evaluate(hostile("import os\nos.kill(-1, 9)\n"))
    if verdict.metrics is not None:
        assert verdict.metrics["excess_percent"] == best_fit["excess_percent"]


@pytest.mark.probe("S19", "after all of this, an honest program")
def test_the_next_program_scores_exactly_as_if_nothing_had_been(
    evaluate: Evaluate, best_fit: Metrics, task: Task
) -> None:
    assert evaluate(task.initial).metrics == best_fit
