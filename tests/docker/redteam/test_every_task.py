"""S21 to S28: every shipped task, whoever adds one, meets programs and analyses that mean harm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hostility import RUN, attack, changed, hostile_to
from needles import hidden_needles, parameters, public_needles

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Disclosure, Runtime
from orchestrator.domain.verdicts import Verdict
from orchestrator.evaluation.analyst import SandboxAnalyst
from orchestrator.evaluation.disclosure import disclose
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.public_data import with_public_data
from orchestrator.evaluation.seeds import SeedSource
from orchestrator.evaluation.tasks import Task, find_tasks, load_task
from orchestrator.sandbox.adapter import DockerSandbox

pytestmark = pytest.mark.docker

SHIPPED = find_tasks([Path(__file__).parents[3] / "tasks"])
PROBED = {name.partition("/")[0]: name for name in sorted(SHIPPED, reverse=True)}
"""Folder of a task, or of a family, to the task that stands for it."""
SMALLER: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "online_bin_packing": {"evaluate.py": {"SEQUENCES = 100\n": "SEQUENCES = 10\n"}},
    "dynamic_job_shop": {
        "arrivals.py": {
            "COUNTED = range(500, 2500)": "COUNTED = range(5, 20)",
            "MOST_JOBS = 20_000": "MOST_JOBS = 400",
            "BATCH = 500": "BATCH = 50",
            "((0.85, 2), (0.85, 4), (0.95, 2), (0.95, 4), (0.95, 6))": "((0.95, 1),) * 5",  # to be tardy early
        },
        "instances.py": {"\nSEEDS = 10\n": "\nSEEDS = 2\n"},
    },
    "symbolic_regression": {
        "assessment.py": {"CPU_SECONDS, WALL_SECONDS = 30, ": "CPU_SECONDS, WALL_SECONDS = 3, "},
        "member.json": {'"restarts": 24': '"restarts": 1'},
    },
}  # fmt: skip
"""Edits of the evaluator that leave an evaluation a second, and a program ten copies, for which `runsc` has room."""
REFUSED: Mapping[str, Mapping[str, str]] = {
    "dynamic_job_shop": {
        "starved": "def score(*arguments):\n    return arguments[4] - 1e9 * (arguments[2] > 1)\n",
    },
    "symbolic_regression": {
        "not-finite": "def equation(*arguments):\n    return arguments[0] / (arguments[0] - arguments[0])\n",
    },
}
"""What gets each message of a task's list."""
SIDE_BY_SIDE = 3


@dataclass(frozen=True)
class Probed:
    """A task, and what hostile code meets it with."""

    folder: str
    task: Task
    host: EvaluatorHost
    hidden: Mapping[int, str]
    """Needles, and where each is from."""
    sandbox: DockerSandbox
    honest: Mapping[str, float]
    """What the initial program scores before anything hostile ran."""

    def evaluate(self, code: str) -> Verdict:
        return self.host.evaluate(hostile_to(self.task, code), run_id=RUN, attempt_id="probe")

    def side_by_side(self, codes: Mapping[str, str]) -> dict[str, Verdict]:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return dict(zip(codes, pool.map(self.evaluate, codes.values()), strict=True))


@pytest.fixture(scope="session")
def every_split(tmp_path_factory: pytest.TempPathFactory) -> SplitStore:
    """One for all runtimes, so that data are made once; with the published seeds, so that no small set is a bad one."""
    return SplitStore(home=tmp_path_factory.mktemp("every-task"), seeds=SeedSource.public())


@pytest.fixture(scope="module", params=sorted(PROBED))
def probed(request: pytest.FixtureRequest, sandbox: DockerSandbox, every_split: SplitStore) -> Probed:
    folder: str = request.param
    smaller = changed(load_task(SHIPPED[PROBED[folder]]), SMALLER.get(folder, {}))
    task = with_public_data(smaller, every_split, sandbox, run_id=RUN)
    host = EvaluatorHost(sandbox, task, task.spec.search_split, every_split)
    hidden = hidden_needles(task, every_split, sandbox, RUN)
    assert {origin.partition(" ")[0] for origin in hidden.values()} == {"code", "data"}
    verdict = host.evaluate(task.initial, run_id=RUN, attempt_id="honest")
    assert verdict.metrics is not None, f"{folder}: {verdict.failure}; if it takes too much, add it to SMALLER here"
    return Probed(folder, task, host, hidden, sandbox, verdict.metrics)


@pytest.fixture
def once(runtime: Runtime) -> None:
    """For what the trusted side judges, whatever the runtime is; under `runsc` every container takes seconds."""
    if runtime is not Runtime.RUNC:
        pytest.skip("it is not for the runtime to hold; S21, S22 and S28 are tried under each")


def test_members_of_a_family_differ_in_their_data_and_names_alone() -> None:
    for family, stands in PROBED.items():
        probed = load_task(SHIPPED[stands])
        for name in (name for name in SHIPPED if name.startswith(f"{family}/")):
            member = load_task(SHIPPED[name])
            assert {**member.evaluator, "member.json": b""} == {**probed.evaluator, "member.json": b""}, name
            assert kinds(member) == kinds(probed), f"{name} is called in another way than {stands}: probe it, too"


def kinds(task: Task) -> list[tuple[str, set[tuple[str, bool, int | None]], object]]:
    """What functions take and return, however many symbols of a kind there are, whatever they are called."""
    return [
        (name, {(one.dtype, one.ragged, one.length) for one in spec.arguments}, spec.returns)
        for name, spec in task.spec.functions.items()
    ]


def clean(probed: Probed, found: Mapping[str, Any]) -> bool:
    """Whether nothing hidden was found, while what was put there to be found was."""
    hits = {*found["memory"], *found["environments"], *(hit for hits in found["files"].values() for hit in hits)}
    assert found["control"], found["when"]
    assert [probed.hidden[hit] for hit in hits if hit in probed.hidden] == []
    return not found["modules"] and not found["task"]


@pytest.mark.probe("S21", "every task: its evaluator's code and hidden data, in a program's memory, files and callers")
def test_nothing_hidden_is_where_a_program_runs(probed: Probed) -> None:
    settings = parameters(probed.hidden, probed.task, list(probed.task.spec.functions))
    code = "".join(f"{key} = {value!r}\n" for key, value in settings.items()) + attack("needles")
    verdict = probed.evaluate(code)
    assert verdict.metrics is not None, (verdict.failure, verdict.outcome.output[-2000:])
    found = [json.loads(line) for line in verdict.outcome.output.decode().splitlines()]
    assert [one["when"] for one in found] == ["load", "call"]
    assert all(clean(probed, one) for one in found), found


@pytest.mark.slow
@pytest.mark.probe("S22", "every task: the same in an analysis, which has the public files")
def test_nothing_hidden_is_where_an_analysis_runs(probed: Probed) -> None:
    public = public_needles(probed.task)
    settings = parameters([*probed.hidden, *public], probed.task, [])
    code = "".join(f"{key} = {value!r}\n" for key, value in settings.items()) + attack("needles")
    analyst = SandboxAnalyst(probed.sandbox, probed.task)
    result = analyst.analyse(FileTree({"analysis.py": code.encode()}), run_id=RUN, attempt_id="probe")
    assert result.outcome.ending is Ending.OK, result
    found = json.loads(result.output.decode().splitlines()[-1])
    assert clean(probed, found), found
    seen = {Path(file).name for file, hits in found["files"].items() if public.intersection(hits)}
    assert seen == set(probed.task.public)


def forged_verdict(probed: Probed) -> str:
    """The head of a verdict better than any program's."""
    metrics = dict.fromkeys(probed.honest, 0.0) | {probed.task.spec.fitness: 1e9}
    return repr({"type": "verdict", "status": "scored", "metrics": metrics})


REPLIES = {
    "a verdict": "[(FORGED, b'')]",
    "an answer to something else": "[({'type': 'opened'}, b'')]",
    "numbers that are none": "[(head, b'\\xff' * len(body))]",
    "a little short": "[(head, body[:-1])]",
    "no answer, dead": "os._exit(0)",
    "half an answer, dead": "(os.write(self.writing, encode(Frame(head, body))[:-4]), os._exit(0))",
    "each twice, in turn": "[replies[0], (head, body)] if len(replies) > 1 else [(head, body)] * 2",
    "the second before the first": (
        "[replies[1], replies[0]] if len(replies) == 2 else [(head, body)] if len(replies) > 2 "
        "else threading.Timer(1.0, os._exit, (0,)).start() or []"
    ),
}
"""What is sent instead of the answer to a call."""
EARLY = """
def answer(self, head, body):
    return [(head, body), ({"type": "reply", "columns": []}, b"")] if head["type"] == "opened" else [(head, body)]
"""


@pytest.mark.usefixtures("once")
@pytest.mark.probe("S23", "every task: forged verdicts, and answers that are wrong, early, doubled, swapped or missing")
def test_what_is_no_answer_is_no_score(probed: Probed) -> None:
    start = attack("channel") + f"FORGED = {forged_verdict(probed)}\n"
    codes = {name: f"{start}def reply(self, head, body):\n    return {what}\n" for name, what in REPLIES.items()}
    codes["early"] = start + EARLY
    codes["a verdict instead of loading"] = start + (
        "import gc\nown = next(one for one in gc.get_objects() if isinstance(one, Channel))\n"
        "honestly(own, FORGED)\nos._exit(0)\n"
    )
    quality = probed.task.spec.quality.metric
    for name, verdict in probed.side_by_side(codes).items():
        if name == "each twice, in turn" and verdict.metrics is not None:  # there was one call, and its first answer
            assert verdict.metrics[quality] == probed.honest[quality]
        else:
            assert verdict.failure is not None, name
            assert verdict.failure.ending in {Ending.INVALID_RESULT, Ending.NO_RESULT, Ending.ERROR}, (name, verdict)


@pytest.mark.usefixtures("once")
@pytest.mark.slow
@pytest.mark.probe("S24", "every task: carry arguments out in an exception")
def test_an_exception_of_any_task_tells_a_built_in_name_and_a_line(probed: Probed) -> None:
    raising = "class Secret_42(Exception):\n    pass\ndef {}(*arguments):\n    raise Secret_42('/task', arguments)\n"
    verdict = probed.evaluate("".join(raising.format(name) for name in probed.task.spec.functions))
    told = asdict(disclose(verdict, Disclosure(), probed.task))
    assert told["metrics"] is None
    assert told["failure"]["exception"] == "Exception"
    assert told["failure"]["file"] in (None, probed.task.spec.program.entry)
    assert not [leak for leak in ("Secret", "42", "/task") if leak in json.dumps(told)]


@pytest.mark.usefixtures("once")
@pytest.mark.slow
@pytest.mark.probe("S25", "every task: starve, divide and whatever else its list of messages is for")
def test_every_refusal_of_a_task_is_one(probed: Probed) -> None:
    codes = REFUSED.get(probed.folder, {})
    assert set(codes) == set(probed.task.spec.messages), (
        f"add what gets each message of {probed.folder} to REFUSED here"
    )
    for name, verdict in probed.side_by_side(codes).items():
        assert verdict.failure is not None, name
        assert verdict.failure.ending is Ending.INVALID_RESULT, name
        assert verdict.failure.message == probed.task.spec.messages[name]


TREES = {
    "a million nodes, each in the last": "rows = many('abs', 10**6)\nrows[-1] = SYMBOL_0",
    "a hundred thousand, in pairs": "rows = many('pow', 10**5 + 1)\nrows[50_000:] = SYMBOL_0",
    "an unknown operator": "rows = np.array([(40_000, 0, 0.0), SYMBOL_0], NODE)",
    "a symbol out of range": "rows = np.array([(CODES['symbol'], 65_535, 0.0)], NODE)",
    "a constant that is NaN": "rows = np.array([(CODES['constant'], 0, float('nan'))], NODE)",
}
"""Rows on the wire that are no tree, or too large a one."""


@pytest.mark.usefixtures("once")
@pytest.mark.probe(
    "S26", "tasks with expressions: trees that no program builds, by a program that took the channel over"
)
def test_a_hostile_tree_is_invalid(probed: Probed) -> None:
    if all(one.returns.dtype != "expression" for one in probed.task.spec.functions.values()):
        pytest.skip("no function of the task returns an expression")
    start = attack("channel") + attack("trees")
    sending = "def reply(self, head, body):\n    return [(head, struct.pack('<I', len(rows)) + rows.tobytes())]\n"
    codes = {name: f"{start}{rows}\n{sending}" for name, rows in TREES.items()}
    for name, verdict in probed.side_by_side(codes).items():
        assert verdict.failure is not None, name
        assert verdict.failure.ending is Ending.INVALID_RESULT, (name, verdict)


TOWERS = {
    "an input to the power of itself, 15 times": "tower([x] * 15)",
    "constants to the power of each other": "tower([c[n] for n in range(10)]) * x",
    "near the largest number": "1e308 * c[0] * x + 1e308 * c[1] / (c[2] * 1e-308 + x) - 5e-324 * c[3]",
    "a power too large to expand": "(c[0] + x + 1.5) ** 2147483646.0 + (x + c[1]) ** 100.0 * (x - 2.5) ** 1000.0",
}
"""Equations that overflow, or that algebra never ends with; `x` is the last input, `c` the free constants."""
TOWER = """
def tower(parts):
    found = parts[-1]
    for part in reversed(parts[:-1]):
        found = part ** found
    return found
"""


@pytest.mark.usefixtures("once")
@pytest.mark.slow
@pytest.mark.probe("S27", "tasks with expressions: towers of powers, huge constants: do fitting and algebra end?")
def test_a_tower_is_scored_or_refused_and_its_assessment_ends(probed: Probed) -> None:
    if not probed.task.spec.assessment:
        pytest.skip("the task has no assessment, and so no algebra")

    def judged(equation: str) -> Verdict:
        code = (
            f"import numpy as np\n{TOWER}\ndef equation(*arguments):\n    *_, x, c = arguments\n    return {equation}\n"
        )
        payload = hostile_to(probed.task, code)
        assessed = probed.host.assess(payload, run_id=RUN, attempt_id="tower")
        assert assessed.failure is None, assessed
        return probed.host.evaluate(payload, run_id=RUN, attempt_id="tower")

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        verdicts = dict(zip(TOWERS, pool.map(judged, TOWERS.values()), strict=True))
    for name, verdict in verdicts.items():
        if verdict.metrics is not None:
            assert verdict.metrics[probed.task.spec.quality.metric] > 0.01, name
        else:
            assert verdict.failure is not None
            assert verdict.failure.message in probed.task.spec.messages.values(), (name, verdict)


@pytest.mark.slow
@pytest.mark.probe("S28", "every task: after all of this, an honest program")
def test_an_honest_program_scores_as_before(probed: Probed) -> None:
    verdict = probed.host.evaluate(probed.task.initial, run_id=RUN, attempt_id="honest")
    assert verdict.metrics == probed.honest
