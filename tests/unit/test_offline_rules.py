"""Placement rules: figures from a description, operators that keep choices, programs that say what a rule says."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.offline.placement_operators import OPERATORS, add_crowding, add_rooms, add_share, applicable
from orchestrator.llm.offline.placement_programs import read_rule, render
from orchestrator.llm.offline.placement_rules import PlacementTask, Rule

TASK = PlacementTask(function="priority", capacity=150, items=120, smallest=20, largest=100)
FOLDER = Path(__file__).parents[2] / "tasks" / "online_bin_packing"
Chance = random.Random
seeds = st.integers(0, 2**32)


def grown(seed: int, steps: int) -> Rule:
    """A rule after some structural steps, with values that no two rules share."""
    chance = Chance(seed)
    rule = Rule.best_fit(TASK, chance)
    for _ in range(steps):
        rule = OPERATORS[chance.choice(applicable(rule))](rule, TASK, chance)
        rule = rule.with_values(lambda value: round(value + chance.gauss(0, 0.1), 4))
    return rule


def points(chance: random.Random) -> list[tuple[float, int]]:
    return [(chance.random(), chance.randint(0, TASK.capacity)) for _ in range(50)]


def run_program(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)  # noqa: S102 - rendered by us
    return names


def test_the_figures_come_from_the_description() -> None:
    description = (FOLDER / "description.md").read_text("utf-8")
    program = (FOLDER / "initial" / "program.py").read_text("utf-8")
    assert PlacementTask.read(description, program) == TASK


@pytest.mark.parametrize(
    ("description", "program"),
    [
        ("Ten machines, jobs with 2 to 14 operations.", "def score(now, queue):\n    return -now\n"),
        ("120 items, uniformly from 20 to 100, into bins", "def priority(item, bins):\n    return bins\n"),
        ("120 items, uniformly from 20 to 100, capacity 150", "def choose(left):\n    return left\n"),
        ("120 items, uniformly from 200 to 100, capacity 150", "def priority(item, bins):\n    return bins\n"),
        ("999999 items, uniformly from 1 to 9, capacity 999999", "def priority(item, bins):\n    return bins\n"),
    ],
)
def test_another_task_is_not_mistaken_for_placement(description: str, program: str) -> None:
    assert PlacementTask.read(description, program) is None


@given(seeds)
def test_the_first_rule_is_best_fit_up_to_ties(seed: int) -> None:
    rule = Rule.best_fit(TASK, Chance(seed))
    values = [rule.cost(1.0, room) for room in range(TASK.capacity + 1)]
    slopes = np.diff(values)
    assert (slopes > 0).all()
    assert (np.diff(slopes) < 1e-12).all()  # concave: the tightest bin gains most, or as much as another


@given(seeds, st.integers(0, 8), st.sampled_from([add_share, add_rooms, add_crowding]))
def test_new_knots_change_no_cost(seed: int, steps: int, operator: Any) -> None:
    rule, chance = grown(seed, steps), Chance(seed)
    if operator is add_crowding and not rule.crowding:
        rule = add_crowding(rule, TASK, chance)
    changed = operator(rule, TASK, chance)
    assert changed != rule
    for share, room in points(chance):
        assert changed.cost(share, room) == pytest.approx(rule.cost(share, room), abs=2e-9)
        assert changed.crowding_cost(share, room) == pytest.approx(rule.crowding_cost(share, room), abs=2e-9)


@given(seeds, st.integers(0, 60))
def test_structure_stays_bounded(seed: int, steps: int) -> None:
    rule = grown(seed, steps)
    assert len(rule.rooms) <= 23
    assert len(rule.shares) <= 5
    assert 1 <= rule.reach <= 8
    assert len(render(rule, TASK, "grown")) < 20_000


@given(seeds, st.integers(0, 8), st.integers(0, 8))
def test_a_mixture_lies_halfway_at_the_knots(seed: int, steps: int, others: int) -> None:
    rule, other = grown(seed, steps), grown(seed + 1, others)
    mixed = rule.mixed_with(other)
    for share in rule.shares:
        for room in rule.rooms:
            assert mixed.cost(share, room) == pytest.approx((rule.cost(share, room) + other.cost(share, room)) / 2)


@given(seeds, st.integers(0, 12))
def test_a_rule_survives_being_written_as_a_program(seed: int, steps: int) -> None:
    rule = grown(seed, steps)
    program = render(rule, TASK, "grown")
    assert read_rule(program, TASK) == rule
    assert Rule.from_json(json.loads(json.dumps(rule.as_json())), TASK) == rule


@given(seeds, st.integers(0, 12))
def test_a_program_passes_the_load_check_and_reads_well(seed: int, steps: int) -> None:
    program = render(grown(seed, steps), TASK, "grown")
    tree = ast.parse(program)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [alias.name for node in imports for alias in node.names] == ["numpy"]
    assert "__" not in program
    assert "@" not in program
    assert max(map(len, (line for line in program.splitlines() if not line.lstrip().startswith("[")))) <= 120
    assert ast.get_docstring(tree)


@given(seeds, st.integers(0, 12), st.integers(20, 100))
def test_a_program_has_the_priorities_of_its_rule(seed: int, steps: int, item: int) -> None:
    rule = grown(seed, steps)
    names = run_program(render(rule, TASK, "grown"))
    rooms = np.arange(item, TASK.capacity + 1)
    gains = names["priority"](item, rooms)
    share = 1 - 1 / TASK.items if rule.has_fading else 1.0
    expected = [rule.cost(share, room) - rule.cost(share, room - item) for room in rooms]
    assert gains == pytest.approx(expected, abs=1e-9)  # nothing is open yet, so nothing crowds


def test_open_bins_with_a_similar_room_crowd_a_place() -> None:
    rule = replace(grown(5, 0), reach=2, crowding_rooms=(19, 130), crowding=((1.0, 1.0),))
    names = run_program(render(rule, TASK, "grown"))
    names["priority"](60, np.array([150]))  # leaves 90
    gains = names["priority"](60, np.array([150, 151 - 2, 147]))  # would leave 90, 89 and 87
    alone = run_program(render(rule, TASK, "grown"))["priority"](60, np.array([150, 149, 147]))
    assert alone - gains == pytest.approx([1.0, 0.5, 0.0])


def test_the_simulation_packs_exactly_as_the_program(tmp_path: Path) -> None:
    """With knots at every room and values that floats hold exactly, so that rounding decides no tie."""
    chance = Chance(1)
    rooms = tuple(range(TASK.capacity + 1))

    def exact() -> tuple[float, ...]:
        return tuple(chance.randrange(1 << 12) / (1 << 12) for _ in rooms)

    rule = Rule(shares=(1.0,), rooms=rooms, costs=(exact(),), reach=4, crowding_rooms=rooms, crowding=(exact(),))
    template = Template(files("orchestrator.llm.offline").joinpath("templates/placement_analysis.py.txt").read_text())
    script = template.substitute(
        task=json.dumps(TASK.as_json()),
        settings=json.dumps({"purpose": "check", "sequences": 60, "seed": 4}),
        starts=json.dumps([rule.as_json()]),
        function="priority",
        module="program",
    )
    (tmp_path / "analysis.py").write_text(script)
    (tmp_path / "program.py").write_text(render(rule, TASK, "drawn"))
    done = subprocess.run(
        [sys.executable, "-B", "analysis.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert " 0 sequences differ" in done.stdout
    assert "0.000 not Best Fit's" not in done.stdout


@pytest.mark.parametrize(
    "change",
    [
        {"shares": []},
        {"shares": [1.0, 0.0]},
        {"rooms": [0, 10, 5]},
        {"rooms": [0.5, 10]},
        {"rooms": [0, 151]},
        {"costs": [[0.0]]},
        {"costs": [[float("nan"), 1.0]]},
        {"costs": [["0", 1.0]]},
        {"costs": [[True, 1.0]]},
        {"costs": [[1e9, 1.0]]},
        {"reach": 9},
        {"reach": 1.0},
        {"crowding": [[1.0]], "crowding_rooms": []},
        {"crowding": "none", "crowding_rooms": [1]},
    ],
)
def test_what_is_no_rule_is_not_read_as_one(change: dict[str, Any]) -> None:
    good = {"shares": [1.0], "rooms": [0, 150], "costs": [[0.0, 1.0]]}
    assert Rule.from_json(good, TASK) is not None
    assert Rule.from_json(good | change, TASK) is None


@pytest.mark.parametrize(
    "program",
    [
        "",
        "def priority(item, bins):\n    return -bins\n",
        "ROOMS = [0, 150]\nCOSTS = [[0, NaN]]\n\n",
        "ROOMS = " + "[" * 5000 + "\nCOSTS = 1\n\n",
        "COSTS = [\n" * 2000,
        "ROOMS = [0, 150]\n\nCOSTS = [[0.0, 1.0]]\n\n" + " " * 50_000,
    ],
)
def test_a_program_of_somebody_else_has_no_rule(program: str) -> None:
    assert read_rule(program, TASK) is None
