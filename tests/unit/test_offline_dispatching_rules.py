"""Dispatching rules: figures from a description, operators that keep them sound, programs that say what they say."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.offline.dispatching_choices import next_operator, summary
from orchestrator.llm.offline.dispatching_features import ATTRIBUTES, FEATURES, needed
from orchestrator.llm.offline.dispatching_operators import FEWER, FURTHER, OPERATORS, PRODUCTS, additions, applicable
from orchestrator.llm.offline.dispatching_operators import changed as change_structure
from orchestrator.llm.offline.dispatching_programs import read_rule, render
from orchestrator.llm.offline.dispatching_rules import MAX_TERMS, DispatchingTask, Rule, Term

TASK = DispatchingTask(
    function="score",
    machines=10,
    operations=(2, 14),
    times=(1, 99),
    scenarios=((0.85, 2.0), (0.85, 4.0), (0.95, 2.0), (0.95, 4.0), (0.95, 6.0)),
    warm_up=500,
    counted=2000,
)
FOLDER = Path(__file__).parents[2] / "tasks" / "dynamic_job_shop"
DESCRIPTION = (FOLDER / "description.md").read_text("utf-8")
INITIAL = (FOLDER / "initial" / "program.py").read_text("utf-8")
Chance = random.Random
seeds = st.integers(0, 2**32)


def grown(seed: int, steps: int) -> Rule:
    """A rule after some structural steps, with weights that no two rules share."""
    chance = Chance(seed)
    rule = Rule.shortest()
    for _ in range(steps):
        rule = change_structure(chance.choice(applicable(rule)), rule, chance, chance.uniform(0.1, 0.5))
        rule = Rule(tuple(Term(term.weight + chance.gauss(0, 0.1), term.factors) for term in rule.terms)).scaled()
    return rule


def waiting(chance: random.Random) -> dict[str, Any]:
    """Arguments of one decision among five."""
    draw = np.random.default_rng(chance.getrandbits(32))
    remaining = draw.integers(1, 14, 5)
    time = draw.integers(1, 100, 5).astype(float)
    now = 5000.0
    return {
        "processing_time": time,
        "remaining_work": time + 50.0 * (remaining - 1),
        "remaining_operations": remaining,
        "due_date": now + draw.normal(0, 2000, 5),
        "job_arrival": now - draw.uniform(500, 2000, 5),
        "queue_arrival": now - draw.uniform(0, 500, 5),
        "next_time": draw.integers(0, 100, 5).astype(float),
        "winq": 100.0 * draw.integers(0, 9, 5),
        "now": now,
        "queue_length": 5,
    }


def run_program(text: str, arguments: dict[str, Any]) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)  # noqa: S102 - rendered by us
    return names["score"](*(arguments[name] for name in ATTRIBUTES))


def value(name: str, arguments: dict[str, Any]) -> Any:
    """A feature by its own expression, apart from the program's order of computation."""
    names = {"np": np, "OPERATION": TASK.mean_time, "JOB": TASK.mean_work}
    if name in arguments:
        return arguments[name]
    inputs = {part: value(part, arguments) for part in FEATURES[name].inputs}
    return eval(FEATURES[name].expression, names | inputs)  # noqa: S307 - our own library


def test_the_figures_come_from_the_description() -> None:
    assert DispatchingTask.read(DESCRIPTION, INITIAL) == TASK
    assert (TASK.mean_time, TASK.mean_work) == (50, 400)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ten machines", "some machines"),
        ("number of operations", "count of steps"),
        ("from 1 to 99", "from 99 to 1"),
        ("are the warm-up", "come first"),
        ("(0.85, 2), (0.85, 4), (0.95, 2), (0.95, 4) and (0.95, 6)", "no others"),
        ("uniform from 2 to 14", "uniform from 2 to 9999"),
        ("uniform from 2 to 14", "uniform from 14 to 2"),
    ],
)
def test_a_description_without_its_figures_is_another_task(old: str, new: str) -> None:
    assert old in DESCRIPTION
    assert DispatchingTask.read(DESCRIPTION.replace(old, new), INITIAL) is None


@pytest.mark.parametrize(
    "program",
    [
        "",
        "def priority(item, bins):\n    return bins\n",
        f"def score({', '.join(reversed(ATTRIBUTES))}):\n    return now\n",
        f"def score({', '.join(ATTRIBUTES[:-1])}):\n    return now\n",
        "def score(" + "processing_time, " * 20_000 + ")",
    ],
    ids=["nothing", "placement", "another-order", "one-less", "endless"],
)
def test_another_function_is_another_task(program: str) -> None:
    assert DispatchingTask.read(DESCRIPTION, program) is None


def test_the_reading_of_a_hostile_description_ends() -> None:
    hostile = ["number of operations from " * 5000, "(0.9, " * 20_000, "jobs 1 to " * 9000, "processing times " * 9000]
    for text in hostile:
        assert DispatchingTask.read(text, INITIAL) is None


@given(seeds, st.integers(0, 40))
def test_operators_keep_a_rule_sound_and_bounded(seed: int, steps: int) -> None:
    rule = grown(seed, steps)
    assert 1 <= len(rule.terms) <= MAX_TERMS
    assert all(term.is_sound for term in rule.terms)
    assert len({term.factors for term in rule.terms}) == len(rule.terms)
    assert max(abs(term.weight) for term in rule.terms) == 1
    assert Rule.from_json(json.loads(json.dumps(rule.as_json()))) == rule
    assert len(summary(rule)) < 1000


@given(seeds, st.integers(0, 20), st.sampled_from([FURTHER, PRODUCTS]))
def test_what_may_be_added_is_new_and_sound(seed: int, steps: int, operator: str) -> None:
    rule = grown(seed, steps)
    found = additions(operator, rule, Chance(seed))
    assert len(found) == len(set(found)) <= 16
    assert all(Term(0.1, factors).is_sound and not rule.has(factors) for factors in found)
    assert all(len(factors) == (1 if operator == FURTHER else 2) for factors in found)


@given(seeds, st.integers(0, 20))
def test_every_applicable_operator_does_what_its_name_says(seed: int, steps: int) -> None:
    rule = grown(seed, steps)
    for operator in applicable(rule):
        after = change_structure(operator, rule, Chance(seed), 0.2)
        difference = {FURTHER: 1, PRODUCTS: 1, FEWER: -1}.get(operator, 0)
        assert len(after.terms) == len(rule.terms) + difference
    assert next_operator(rule, Chance(seed)) in OPERATORS


def test_a_search_begins_with_single_attributes() -> None:
    assert next_operator(Rule.shortest(), Chance(0)) == FURTHER


@given(seeds, st.integers(0, 20), st.integers(0, 20))
def test_a_mixture_is_sound(seed: int, steps: int, others: int) -> None:
    mixed = grown(seed, steps).mixed_with(grown(seed + 1, others))
    assert Rule.from_json(mixed.as_json()) == mixed


def test_a_rule_mixed_with_its_opposite_is_the_first_one() -> None:
    rule = Rule((Term(1.0, ("length",)),))
    assert rule.mixed_with(Rule((Term(-1.0, ("length",)),))) == Rule.shortest()


@given(seeds, st.integers(0, 20))
def test_a_rule_survives_being_written_as_a_program(seed: int, steps: int) -> None:
    rule = grown(seed, steps)
    program = render(rule, TASK, "grown in a test")
    assert len(program) < 6000
    assert read_rule(program, TASK) == rule


@given(seeds, st.integers(0, 20))
def test_a_program_passes_the_load_check_and_reads_well(seed: int, steps: int) -> None:
    program = render(grown(seed, steps), TASK, "grown in a test")
    tree = ast.parse(program)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [alias.name for node in imports for alias in node.names] == ["numpy"]
    assert "__" not in program
    assert "$" not in program
    assert max(map(len, program.splitlines())) <= 120
    assert ast.get_docstring(tree)


@given(seeds, st.integers(0, 20))
def test_a_program_scores_as_its_rule(seed: int, steps: int) -> None:
    rule, arguments = grown(seed, steps), waiting(Chance(seed))
    scores = run_program(render(rule, TASK, "grown in a test"), arguments)
    factors = {name: value(name, arguments) for term in rule.terms for name in term.factors}
    cost = sum(term.weight * np.prod([factors[name] * np.ones(5) for name in term.factors], 0) for term in rule.terms)
    assert scores == pytest.approx(-cost, rel=1e-12, abs=1e-12)
    assert np.isfinite(scores).all()


def test_the_first_rule_is_the_initial_program() -> None:
    arguments = waiting(Chance(3))
    ours = run_program(render(Rule.shortest(), TASK, "given"), arguments)
    assert np.array_equal(np.argsort(ours), np.argsort(run_program(INITIAL, arguments)))


def test_features_stand_after_what_they_need() -> None:
    names = [*ATTRIBUTES, *FEATURES]
    assert all(names.index(part) < names.index(name) for name in FEATURES for part in FEATURES[name].inputs)
    assert needed(frozenset({"sharp_urgency"})) == ["slack", "urgency", "sharp_urgency"]


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        [],
        "length",
        [[1.0]],
        [[1.0, "length"], [0.5, "length"]],
        [[float("nan"), "length"]],
        [[float("inf"), "length"]],
        [[10**400, "length"]],
        [[True, "length"]],
        [["1", "length"]],
        [[1.0, "volume"]],
        [[1.0, 3]],
        [[1.0, "crowd"]],
        [[1.0, "crowd", "crowd"]],
        [[1.0, "ahead", "length"]],
        [[1.0, "length", "ahead", "slack"]],
        [[1e9, "length"]],
        [[1.0, "length"]] * (MAX_TERMS + 1),
    ],
    ids=str,
)
def test_what_is_no_rule_is_not_read_as_one(document: object) -> None:
    assert Rule.from_json(document) is None


GOOD = render(Rule((Term(1.0, ("length",)), Term(-0.25, ("ahead", "slack")))), TASK, "grown in a test")


@pytest.mark.parametrize(
    "program",
    [
        "",
        INITIAL,
        GOOD.replace("winq / JOB", "-winq / JOB"),
        GOOD.replace("- 0.25", "- 0.250"),
        GOOD.replace("- 0.25 * ahead", "- 0.25 * volume"),
        GOOD.replace("- 0.25", "- 0.2.5"),
        GOOD.replace("- 0.25", "- 9e999"),
        GOOD.replace("return -cost", "return cost"),
        GOOD + "import os\n",
        GOOD + "#" * 30_000,
        "    cost = (\n" + "        1.0 * length\n" * 900,
        "The weights were $function.\n    cost = (\n        1.0 * length\n    )\n",
    ],
    ids=[
        "nothing",
        "initial",
        "sign",
        "digits",
        "unknown",
        "number",
        "huge",
        "result",
        "more",
        "long",
        "open",
        "dollar",
    ],
)
def test_a_program_of_somebody_else_has_no_rule(program: str) -> None:
    assert read_rule(GOOD, TASK) is not None
    assert read_rule(program, TASK) is None
