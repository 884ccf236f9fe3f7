"""The analysis script of the dispatching family, run as it is, against a simulation written apart from it."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.domain.conversation import AssistantMessage, Conversation, ToolSpec, UserMessage
from orchestrator.llm.offline.dispatching_features import ATTRIBUTES
from orchestrator.llm.offline.dispatching_programs import render
from orchestrator.llm.offline.dispatching_rules import DispatchingTask, Rule, Term
from orchestrator.llm.offline.engine import respond

INITIAL = (Path(__file__).parents[2] / "tasks" / "dynamic_job_shop" / "initial" / "program.py").read_text("utf-8")
DESCRIPTION = """
Jobs arrive at a shop of three machines. The number of operations of a job is an integer, uniform from 2 to 5;
processing times are integers, uniform from 1 to 99. There are two scenarios: (0.85, 2), (0.95, 1.5). Jobs 1 to 20 are
the warm-up. Jobs 21 to 140 count.
"""
TASK = DispatchingTask.read(DESCRIPTION, INITIAL)
RULE = Rule((Term(1.0, ("length",)), Term(0.5, ("ahead",)), Term(0.3, ("slack",)), Term(-0.2, ("waiting", "crowd"))))
PROBE = """
import json
import analysis
import numpy as np

rng = np.random.default_rng(7)
jobs, window = analysis.draw(rng, 2, 1.0, 1.2)
times = jobs.columns["processing_time"]
times += (times > 0) * rng.uniform(0, 1e-4, len(times))  # no two events at one instant: a script takes them in turn
names = ("job", "machine", "processing_time", "due_date", "job_arrival")
columns = {name: jobs.columns[name].tolist() for name in names}
result = analysis.simulate(jobs, analysis.Rules(analysis.STARTS, jobs), *window)
print("probe: " + json.dumps({"columns": columns, "window": window, "begins": jobs.begins.tolist(),
                              "tardiness": result.reshape(len(result), -1).tolist()}))
"""


def first_script(**settings: Any) -> str:
    """The script that the engine writes first, with other settings."""
    facts = {"initial": {"id": "initial", "metrics": {"fitness": 0.5}}, "island": 0, "islands": 1, "budget": {}}
    opening = f"program.py:\n```python\n{INITIAL}```\n\n{json.dumps(facts)}"
    conversation = Conversation(system=f"# Task\n{DESCRIPTION}# Feedback\n", messages=(UserMessage(text=opening),))
    tools = tuple(ToolSpec(name=name, description="", parameters={}) for name in ("write", "commit", "run_analysis"))
    reply = respond(conversation, tools, 1)
    assert isinstance(reply, AssistantMessage)
    script = (reply.tool_calls[0].arguments or {})["content"]
    lines = str(script).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("SETTINGS = "))
    lines[place] = "SETTINGS = " + json.dumps({**json.loads(lines[place].removeprefix("SETTINGS = ")), **settings})
    return "\n".join(lines) + "\n"


def with_starts(script: str, rules: list[Rule]) -> str:
    lines = script.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("STARTS = "))
    lines[place] = "STARTS = " + json.dumps([rule.as_json() for rule in rules])
    return "\n".join(lines) + "\n"


def run(folder: Path, script: str, program: str, main: str = "analysis.py") -> str:
    (folder / "analysis.py").write_text(script)
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-B", "-W", "error", main]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def result_of(output: str, mark: str = "result: ") -> dict[str, Any]:
    line = [line for line in output.splitlines() if line.startswith(mark)][-1]
    found = json.loads(line.removeprefix(mark))
    assert isinstance(found, dict)
    return found


def mean_tardiness(operations: Any, jobs: list[tuple[float, float]], window: list[int], score: Any) -> float:
    """Of the counted jobs, by the rules of the task's description and one operation at a time.

    Args:
        operations: (machine, time) of each job.
        jobs: (arrival, due date) of each job.
        window: Number of jobs before the counted ones, and of those.
        score: A program's function.
    """
    machines = 3
    queues: list[list[tuple[float, int, int]]] = [[] for _ in range(machines)]  # (queue arrival, job, operation)
    running: list[tuple[float, int, int] | None] = [None] * machines
    pending = [(arrival, number) for number, (arrival, _) in enumerate(jobs)]
    done_at: dict[int, float] = {}
    counted = range(window[0], window[0] + window[1])
    while any(number not in done_at for number in counted):
        now = min([entry[0] for entry in running if entry] + [arrival for arrival, _ in pending[:1]])
        ready = [(number, 0) for arrival, number in pending if arrival == now]
        pending = pending[len(ready) :]
        for machine, entry in enumerate(running):
            if entry and entry[0] == now:
                running[machine] = None
                ready.append((entry[1], entry[2] + 1))
        for number, place in sorted(ready):
            if place == len(operations[number]):
                done_at[number] = now
            else:
                queues[operations[number][place][0]].append((now, number, place))
        for machine, queue in enumerate(queues):
            if queue and running[machine] is None:
                chosen = queue.pop(choose(queue, queues, operations, jobs, now, score))
                running[machine] = (now + operations[chosen[1]][chosen[2]][1], chosen[1], chosen[2])
    return sum(max(0.0, done_at[number] - jobs[number][1]) for number in counted) / window[1]


def choose(queue: Any, queues: Any, operations: Any, jobs: Any, now: float, score: Any) -> int:
    """Index of the operation that the program starts."""
    if len(queue) == 1:
        return 0
    rows = []
    for since, number, place in queue:
        rest = operations[number][place:]
        follows = rest[1] if len(rest) > 1 else None
        ahead = sum(operations[other][at][1] for _, other, at in queues[follows[0]]) if follows else 0.0
        work, later = sum(time for _, time in rest), follows[1] if follows else 0.0
        rows.append((rest[0][1], work, len(rest), jobs[number][1], jobs[number][0], since, later, ahead))
    columns = dict(zip(ATTRIBUTES, np.transpose(rows), strict=False))
    return int(np.argmax(score(*columns.values(), now, len(queue))))


@pytest.mark.parametrize("rule", [Rule.shortest(), RULE], ids=["shortest", "four-terms"])
def test_the_shops_in_lock_step_are_those_of_the_description(rule: Rule, tmp_path: Path) -> None:
    assert TASK is not None
    program = render(rule, TASK, "given")
    script = with_starts(first_script(purpose="check", seeds=1, size=0.2), [Rule.shortest(), rule, RULE])
    (tmp_path / "probe.py").write_text(PROBE)
    found = result_of(run(tmp_path, script, program, "probe.py"), "probe: ")
    names: dict[str, Any] = {}
    exec(compile(program, "program.py", "exec"), names)  # noqa: S102 - rendered by us
    columns, begins = found["columns"], [*found["begins"], len(found["columns"]["job"])]
    for instance, tardiness in enumerate(found["tardiness"][1]):
        operations: list[list[tuple[int, float]]] = []
        jobs: list[tuple[float, float]] = []
        for row in range(begins[instance], begins[instance + 1]):
            if columns["processing_time"][row]:
                operations[-1].append((columns["machine"][row], columns["processing_time"][row]))
            else:
                operations.append([])
                jobs.append((columns["job_arrival"][row], columns["due_date"][row]))
        apart = mean_tardiness(operations, jobs, found["window"], names["score"])
        assert tardiness == pytest.approx(apart, rel=1e-9)


def test_jobs_are_drawn_as_described(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE.replace("2, 1.0, 1.2", "6, 3.0, 1.0"))
    script = first_script(purpose="check", seeds=1, size=0.2)
    columns = result_of(run(tmp_path, script, INITIAL, "probe.py"), "probe: ")["columns"]
    times = [round(time) for time in columns["processing_time"] if time]
    assert sum(times) / len(times) == pytest.approx(50, abs=0.7)
    assert set(times) == set(range(1, 100))
    machines = [machine for machine, time in zip(columns["machine"], columns["processing_time"], strict=True) if time]
    assert all(machines.count(machine) / len(machines) == pytest.approx(1 / 3, abs=0.02) for machine in range(3))
    starts = [row for row, time in enumerate(columns["processing_time"]) if not time]
    counts = [after - before - 1 for before, after in pairwise(starts)]
    assert set(counts) == {2, 3, 4, 5}
    arrivals = [columns["job_arrival"][row] for row in starts]
    first, gaps = arrivals[: len(arrivals) // 12], 0.85 / (3.5 * 50 / 3)
    assert len(first) / first[-1] == pytest.approx(gaps, rel=0.12)
    for before, after in pairwise(range(len(machines))):
        assert (
            columns["machine"][before] != columns["machine"][after] or columns["job"][before] != columns["job"][after]
        )


def test_a_program_runs_the_shop_as_its_rule(tmp_path: Path) -> None:
    assert TASK is not None
    script = with_starts(first_script(purpose="check", seeds=2, size=0.5), [RULE])
    result = result_of(run(tmp_path, script, render(RULE, TASK, "given")))
    assert (result["ratio"], result["different"]) == (1.0, 0)
    assert 0 < result["deviation"] < 1


def test_a_program_that_is_not_its_rule_is_noticed(tmp_path: Path) -> None:
    script = with_starts(first_script(purpose="check", seeds=2, size=0.5), [RULE])
    result = result_of(run(tmp_path, script, INITIAL))
    assert result["different"] > 0
    assert result["deviation"] == 0


def test_a_fit_reports_a_better_rule_and_by_how_much(tmp_path: Path) -> None:
    script = first_script(generations=3, offspring=8, fresh=4, size=0.5, seeds=2, trial=1)
    output = run(tmp_path, script, INITIAL)
    result = result_of(output)
    rule = Rule.from_json(result["rule"])
    assert rule is not None
    assert 1 < len(rule.terms) <= 4
    assert result["change"] < 0
    assert 0 < result["error"] < 1
    assert len(output) < 4000


def test_a_term_can_be_dropped(tmp_path: Path) -> None:
    script = with_starts(first_script(drop=1, generations=2, offspring=4, fresh=2, size=0.2, additions=0), [RULE])
    rule = Rule.from_json(result_of(run(tmp_path, script, INITIAL))["rule"])
    assert rule is not None
    assert len(rule.terms) == 3
