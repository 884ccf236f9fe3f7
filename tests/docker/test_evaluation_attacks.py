"""Hostile and broken programs under formal evaluation: each has its ending, and none leaves a trace or a score."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.disclosure import TaskDisclosure
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.messages import LOAD_CHECK, MALFORMED_REPLY
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.ports import Session, SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
BEST_FIT = "def priority(item, bins):\n    return item - bins * 1.0\n"
RUN = f"attacks-{secrets.token_hex(6)}"
"""Of its own, so that other tests on the same engine do not count."""
Evaluate = Callable[[str], Verdict]


@pytest.fixture(scope="module")
def task() -> Task:
    """Bin packing with little time, so that a program that hangs is soon ended."""
    whole = load_task(ROOT / "tasks" / "online_bin_packing")
    limits = {**whole.spec.limits, Purpose.CANDIDATE: {"wall_seconds": 40, "cpu_seconds": 8, "load_cpu_seconds": 4}}
    return replace(whole, spec=whole.spec.model_copy(update={"limits": limits}))


@pytest.fixture(scope="module")
def evaluate(sandbox: DockerSandbox, task: Task, tmp_path_factory: pytest.TempPathFactory) -> Evaluate:
    store = SplitStore(home=tmp_path_factory.mktemp("home"), seeds=SeedSource.public())
    host = EvaluatorHost(sandbox, task, "hidden", store)
    return lambda program: host.evaluate(FileTree({"program.py": program.encode()}), run_id=RUN, attempt_id="test")


@pytest.fixture(scope="module")
def honest(evaluate: Evaluate) -> Verdict:
    return evaluate(BEST_FIT)


@pytest.fixture(autouse=True)
def _nothing_is_left(sandbox: DockerSandbox) -> Iterator[None]:
    yield
    assert sandbox.live_containers(RUN) == 0


def rejected(reason: str, line: int | None = 1) -> Failure:
    return Failure(ending=Ending.ERROR, file="program.py", line=line, message=LOAD_CHECK[reason])


def invalid(reason: str) -> Failure:
    return Failure(ending=Ending.INVALID_RESULT, message=MALFORMED_REPLY[reason])


def raised(exception: str, line: int) -> Failure:
    return Failure(ending=Ending.ERROR, exception=exception, file="program.py", line=line)


def returning(expression: str) -> str:
    return f"import numpy as np\ndef priority(item, bins):\n    return {expression}\n"


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("import os\n", rejected("import-not-allowed")),
        ("open('/task/data/sequences.json')\n", rejected("name-not-allowed")),
        ("().__class__\n", rejected("double-underscore")),
        ("def priority(:\n", rejected("syntax-error")),
        ("x = 1\n", rejected("function-missing", None)),
        ("1 / 0\n" + BEST_FIT, raised("ZeroDivisionError", 1)),
        ("raise SystemExit(0)\n" + BEST_FIT, raised("SystemExit", 1)),
        ("def f():\n    f()\nf()\n" + BEST_FIT, raised("RecursionError", 2)),
        ("class Items42(Exception):\n    pass\nraise Items42('42 17')\n", raised("Exception", 3)),
        (returning("bins * float('nan')"), invalid("reply-not-finite")),
        (returning("bins * float('-inf')"), invalid("reply-not-finite")),
        (returning("(bins * 1.0)[:-1]"), invalid("reply-length")),
        (returning("np.ones(10_000)"), invalid("reply-length")),
        (returning("np.ones((len(bins), 1))"), invalid("reply-shape")),
        (returning("None"), invalid("reply-type")),
        (returning("1.0"), invalid("reply-shape")),
        (returning("bins * 1j"), invalid("reply-dtype")),
        (returning("bins.astype(str)"), invalid("reply-dtype")),
        (returning("bins.astype(object)"), invalid("reply-dtype")),
        (returning("1 / 0"), raised("ZeroDivisionError", 3)),
        (returning("exit_now(0)").replace("import", "def exit_now(n): raise SystemExit(n)\nimport"), None),
    ],
)
def test_a_broken_program_fails_for_its_own_reason(evaluate: Evaluate, program: str, failure: Failure | None) -> None:
    verdict = evaluate(program)
    assert verdict.metrics is None
    assert verdict.failure == (failure or raised("SystemExit", 1))


def test_a_subclass_of_an_array_is_no_array(evaluate: Evaluate) -> None:
    program = (
        "import numpy as np\nclass Mine(np.ndarray):\n    def tobytes(self):\n        return b''\n"
        "def priority(item, bins):\n    return (bins * 1.0).view(Mine)\n"
    )
    verdict = evaluate(program)
    assert verdict.metrics is None
    assert verdict.failure is not None
    assert verdict.failure.ending is Ending.INVALID_RESULT


HUNGRY = [
    ("while True: pass\n" + BEST_FIT, Ending.TIMEOUT),
    (returning("sum(iter(int, 1))"), Ending.TIMEOUT),
    ("import numpy as np\nx = np.ones(1 << 28)\n" + BEST_FIT, Ending.MEMORY),
    (returning("np.ones(1 << 28)[:len(bins)]"), Ending.MEMORY),
    ("while True: print('x' * 100000)\n" + BEST_FIT, Ending.OUTPUT_LIMIT),
    ("def priority(item, bins):\n    while True: print('x' * 100000)\n", Ending.OUTPUT_LIMIT),
]


@pytest.mark.parametrize(("program", "ending"), HUNGRY)
def test_a_program_that_takes_too_much_is_ended_and_the_next_one_scores_as_ever(
    evaluate: Evaluate, honest: Verdict, program: str, ending: Ending
) -> None:
    verdict = evaluate(program)
    assert verdict.failure == Failure(ending=ending), verdict.outcome.detail
    assert evaluate(BEST_FIT).metrics == honest.metrics


def test_a_printed_verdict_is_only_printed(evaluate: Evaluate, honest: Verdict, task: Task) -> None:
    forged = '{"type": "verdict", "status": "scored", "metrics": {"fitness": 1.0}}'
    verdict = evaluate(f"print('''{forged}''', flush=True)\n" + BEST_FIT)
    assert verdict.metrics is not None
    assert honest.metrics is not None
    scores = {"fitness", "excess_percent", "deviation"}
    assert {name: verdict.metrics[name] for name in scores} == {name: honest.metrics[name] for name in scores}
    assert forged.encode() in verdict.outcome.output
    assert forged not in repr(TaskDisclosure(Policy.model_fields["disclosure"].default, task).verdict(verdict))


class Recorder:
    """Passes everything on to a sandbox and keeps what goes into candidates and analyses."""

    def __init__(self, sandbox: DockerSandbox) -> None:
        self._sandbox = sandbox
        self.policy = sandbox.policy
        self.import_volume = sandbox.import_volume
        self.warm = sandbox.warm
        self.live_containers = sandbox.live_containers
        self.close = sandbox.close
        self.sent: list[bytes] = []

    @contextmanager
    def session(self, request: SessionRequest) -> Iterator[Session]:
        with self._sandbox.session(request) as session:
            if request.purpose is not Purpose.EVALUATOR:
                self._tap(session)
            yield session

    def _tap(self, session: Session) -> None:
        send = session.send

        def recording(frame: Frame) -> None:
            self.sent.append(repr(dict(frame.head)).encode() + frame.body)
            send(frame)

        object.__setattr__(session, "send", recording)


SEARCH_EVERYTHING = """
import os, stat

def content(path):
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return b""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(descriptor, 4 << 20)
    finally:
        os.close(descriptor)

searched = found = 0
for root, folders, files in os.walk("/"):
    for name in files:
        try:
            found += b"CANARY-" in content(os.path.join(root, name))
            searched += 1
        except OSError:
            pass
found += sum("CANARY-" in value for value in os.environ.values())
print("found", found, "searched", searched)
"""


def test_a_canary_in_the_hidden_data_reaches_no_program_no_analysis_and_no_model(
    sandbox: DockerSandbox, tmp_path: Path
) -> None:
    package = new_task(tmp_path, "canary_task")
    code = package / "evaluator" / "evaluate.py"
    planted = code.read_text().replace(
        "return {", 'return {"canary.txt": b"CANARY-" + str(seed).encode() + b"-END", ', 1
    )
    code.write_text(planted + "\n# CANARY-CODE-END\n")
    task = load_task(package)
    recorder = Recorder(sandbox)
    seeds = SeedSource.installation(tmp_path / "home")
    host = EvaluatorHost(recorder, task, "hidden", SplitStore(home=tmp_path / "home", seeds=seeds))
    programs = (task.initial, FileTree({"program.py": b"def estimate(x):\n    raise KeyError(x)\n"}))
    verdicts = [host.evaluate(program, run_id=RUN, attempt_id="test") for program in programs]
    assert verdicts[0].is_scored
    script = SEARCH_EVERYTHING.replace("CANARY-", "CANARY\\x2d")  # the script itself must not be a find
    files = FileTree({**task.initial, "analysis.py": script.encode()})
    analysis = SandboxAnalyst(recorder, task).analyse(files, run_id=RUN, attempt_id="test")
    found, searched = map(int, analysis.output.split()[1::2])
    assert found == 0
    assert searched > 1000
    disclosure = TaskDisclosure(sandbox.policy.disclosure, task)
    told = repr([disclosure.verdict(one) for one in verdicts]) + disclosure.analysis(analysis)
    everything = b"\0".join([*recorder.sent, told.encode(), repr(verdicts).encode()])
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home" / "hidden").iterdir())
    canary = b"CANARY-" + str(seeds.seed("canary_task", "hidden")).encode()
    assert canary in kept
    for secret in (canary, b"CANARY-CODE", str(seeds.seed("canary_task", "hidden")).encode(), seeds.key.hex().encode()):
        assert secret not in everything
