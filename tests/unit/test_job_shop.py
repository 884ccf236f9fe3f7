"""The job shop's simulation: against schedules by hand, against an independent one, and against queueing theory."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

EVALUATOR = Path(__file__).parents[2] / "tasks" / "dynamic_job_shop" / "evaluator"
NAMES = ("arrivals", "operations", "simulation", "shop", "rules", "scoring", "instances")


def evaluator_modules() -> Any:
    """The task's modules, which know each other by plain names; nothing of them stays importable."""
    sys.path.insert(0, str(EVALUATOR))
    try:
        return SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    finally:
        sys.path.remove(str(EVALUATOR))
        for name in NAMES:
            sys.modules.pop(name, None)


task = evaluator_modules()
SPT, REFERENCE = task.rules.shortest_processing_time, task.rules.reference
Route = list[tuple[int, int]]
"""(machine, processing time) of each operation."""


def batch(arrivals: Sequence[float], routes: Sequence[Route], due_dates: Sequence[float] | None = None) -> Any:
    """Jobs; without due dates their tardiness is the time at which they are done."""
    return task.arrivals.Batch(
        arrivals=np.array(arrivals, dtype=float),
        due_dates=np.zeros(len(arrivals)) if due_dates is None else np.array(due_dates, dtype=float),
        operations=np.array([len(route) for route in routes]),
        processing_times=np.array([time for route in routes for _, time in route], dtype=float),
        machines=np.array([machine for route in routes for machine, _ in route]),
    )


def done(jobs: Any, rule: Callable[[Any], Any], machines: int) -> list[float]:
    """Tardiness of all jobs under a rule."""
    shop = task.shop.Shop([[jobs]], range(len(jobs.arrivals)), machines)
    task.rules.follow(shop, rule)
    times: list[float] = shop.tardiness[0].tolist()
    return times


def recorder(seen: list[dict[str, Any]], rule: Callable[[Any], Any] = SPT) -> Callable[[Any], Any]:
    def decide(decisions: Any) -> Any:
        kept = {name: values.tolist() for name, values in decisions.attributes.items()}
        seen.append(kept | {"now": decisions.now.tolist(), "queue_length": decisions.lengths.tolist()})
        return rule(decisions)

    return decide


# By hand


def test_a_small_schedule_comes_out_as_by_hand() -> None:
    # At 0 job 0 alone takes machine 0 until 5. Jobs 1, 2 and 3 arrive at 1 and 2 and wait there.
    jobs = batch([0, 1, 1, 2], [[(0, 5), (1, 2)], [(0, 4), (1, 9)], [(0, 3)], [(0, 3), (1, 1)]], [20, 18, 5, 30])
    seen: list[dict[str, Any]] = []
    # SPT takes job 2 at 5 and job 3 at 8, then job 1 alone at 11; machine 1 has job 0 at 5, job 3 at 11, job 1 at 15.
    assert done(jobs, recorder(seen), 2) == [0, 6, 3, 0]
    assert seen == [
        {
            "processing_time": [4, 3, 3],
            "remaining_work": [13, 3, 4],
            "remaining_operations": [2, 1, 2],
            "due_date": [18, 5, 30],
            "job_arrival": [1, 1, 2],
            "queue_arrival": [1, 1, 2],
            "next_time": [9, 0, 1],
            "winq": [2, 0, 2],  # job 0's second operation came to machine 1 at this very instant, which chooses later
            "now": [5],
            "queue_length": [3],
        },
        {
            "processing_time": [4, 3],
            "remaining_work": [13, 4],
            "remaining_operations": [2, 2],
            "due_date": [18, 30],
            "job_arrival": [1, 2],
            "queue_arrival": [1, 2],
            "next_time": [9, 1],
            "winq": [0, 0],
            "now": [8],
            "queue_length": [2],
        },
    ]


def test_machines_choose_in_the_order_of_their_index_and_the_next_one_sees_what_started() -> None:
    # At 10 both machines come free, and two operations wait at each, which go on at the other machine.
    routes: list[Route] = [[(0, 10)], [(1, 10)], [(0, 1), (1, 1)], [(0, 2), (1, 1)], [(1, 3), (0, 1)], [(1, 4), (0, 1)]]
    seen: list[dict[str, Any]] = []
    done(batch([0, 0, 1, 1, 1, 1], routes), recorder(seen), 2)
    assert [(one["now"], one["processing_time"], one["winq"]) for one in seen[:2]] == [
        ([10], [1, 2], [7, 7]),
        ([10], [3, 4], [2, 2]),
    ]


def test_all_that_happens_at_an_instant_waits_before_any_machine_chooses() -> None:
    # At 4 job 0 leaves machine 0, job 1 comes there from machine 1, and jobs 2 and 3 arrive.
    routes: list[Route] = [[(0, 4)], [(1, 4), (0, 5)], [(0, 6)], [(0, 2)]]
    seen: list[dict[str, Any]] = []
    assert done(batch([0, 0, 4, 4], routes), recorder(seen), 2) == [4, 11, 17, 6]
    assert seen[0]["processing_time"] == [5, 6, 2], "of one instant by the number of the job"


def test_ties_go_to_the_earliest_in_the_queue_and_then_to_the_lower_number() -> None:
    # Job 3 waits at machine 0 since 2, jobs 1 and 2 since 3; job 2 gets there by way of machine 1.
    routes: list[Route] = [[(0, 9)], [(1, 3), (0, 5)], [(2, 3), (0, 5)], [(0, 5)]]
    assert done(batch([0, 0, 0, 2], routes), SPT, 3) == [9, 19, 24, 14]


def test_the_rule_is_not_asked_where_a_single_operation_waits() -> None:
    seen: list[dict[str, Any]] = []
    assert done(batch([0, 1, 20], [[(0, 5)], [(0, 5)], [(0, 5)]]), recorder(seen), 1) == [5, 10, 25]
    assert seen == []


def test_deviation_is_the_share_of_decisions_in_which_another_operation_starts_than_spt_chooses() -> None:
    jobs = batch([0, 1, 1, 1, 1], [[(0, 9)], [(0, 4)], [(0, 3)], [(0, 2)], [(0, 2)]])

    def deviation(rule: Callable[[Any], Any]) -> float:
        share: float = task.rules.follow(task.shop.Shop([[jobs]], range(5), 1), rule)
        return share

    assert deviation(SPT) == 0
    # Of 4, 3, 2, 2 the longest first is another one twice and SPT's own at last; the last one first is another one
    # only at first, where the third of them would do as well.
    assert deviation(lambda decisions: decisions.attributes["processing_time"]) == pytest.approx(2 / 3)
    assert deviation(lambda decisions: np.arange(float(len(decisions.attributes["winq"])))) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("scores", "lengths", "positions"),
    [([1, 3, 3, 2, 2], [3, 2], [1, 0]), ([-0.0, 0.0], [2], [0]), ([-1e308, 1e308, 1e308, 5, 6], [1, 2, 2], [0, 0, 1])],
)
def test_the_first_of_the_highest_scores_wins(scores: list[float], lengths: list[int], positions: list[int]) -> None:
    assert task.shop.first_best(np.array(scores, dtype=float), np.array(lengths)).tolist() == positions


# Ends


def test_a_rule_that_keeps_a_counted_job_waiting_is_starved() -> None:
    arrivals = [0, *range(0, 40, 2)]
    routes: list[Route] = [[(0, 5)], *([(0, 2)] for _ in range(20))]

    def last(decisions: Any) -> Any:
        return decisions.attributes["job_arrival"] + (decisions.attributes["processing_time"] < 5)

    shop = task.shop.Shop([[batch(arrivals, routes)]], range(1), 1)
    assert shop.live([0]) == [0]
    with pytest.raises(task.simulation.Starved):
        task.rules.follow(shop, last)


def test_a_simulation_ends_with_the_last_counted_job_and_takes_no_more_jobs_than_it_needs() -> None:
    taken = []

    def stream() -> Any:
        for number in range(1000):
            taken.append(number)
            yield batch([10.0 * number], [[(0, 4)]])

    shop = task.shop.Shop([stream()], range(2, 5), 1)
    assert shop.live([0]) == []
    assert shop.tardiness.tolist() == [[24, 34, 44]]
    assert len(taken) == 6


# Against others


def by_the_words(jobs: Any, machines: int, score: Callable[..., float]) -> list[float]:
    """The same schedule, as slowly and plainly as the rules are worded."""
    count = len(jobs.arrivals)
    ends = np.cumsum(jobs.operations).tolist()
    starts = [0, *ends[:-1]]
    times, places = jobs.processing_times.tolist(), jobs.machines.tolist()
    at, state, event = [first - 1 for first in starts], ["away"] * count, jobs.arrivals.tolist()
    queued = [math.nan] * count

    def waiting(machine: int) -> list[int]:
        return [job for job in range(count) if state[job] == "waits" and places[at[job]] == machine]

    def facts(job: int, now: float, length: int) -> list[float]:
        this, rest, following = at[job], times[at[job] : ends[job]], at[job] + 1
        is_last = following == ends[job]
        winq = 0.0 if is_last else sum(times[at[other]] for other in waiting(places[following]))
        due, arrival = jobs.due_dates[job], jobs.arrivals[job]
        next_time = 0.0 if is_last else times[following]
        return [times[this], sum(rest), len(rest), due, arrival, queued[job], next_time, winq, now, length]

    while "away" in state or "runs" in state:
        now = min(event[job] for job in range(count) if state[job] in ("away", "runs"))
        for job in range(count):
            if state[job] in ("away", "runs") and event[job] == now:
                at[job] += 1
                state[job] = "waits" if at[job] < ends[job] else "done"
                queued[job] = now
        for machine in range(machines):
            queue = sorted(waiting(machine), key=lambda job: (queued[job], job))
            if queue and not any(state[job] == "runs" and places[at[job]] == machine for job in range(count)):
                scores = [score(*facts(job, now, len(queue))) for job in queue]
                job = queue[scores.index(max(scores))]
                state[job], event[job] = "runs", now + times[at[job]]
    return [max(0.0, time - due) for time, due in zip(event, jobs.due_dates.tolist(), strict=True)]


@st.composite
def shops(draw: st.DrawFn) -> list[Any]:
    """Jobs of one to three simulations with three machines, all of the same number."""
    count = draw(st.integers(1, 9))
    operation = st.tuples(st.integers(0, 2), st.integers(1, 4))

    def some(each: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(each, min_size=count, max_size=count))

    return [
        batch(
            sorted(some(st.integers(0, 15))),
            some(st.lists(operation, min_size=1, max_size=4)),
            some(st.integers(0, 30)),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]


def shop_of(drawn: list[Any]) -> Any:
    return task.shop.Shop([[jobs] for jobs in drawn], range(len(drawn[0].arrivals)), 3)


@settings(deadline=None, max_examples=40)
@given(shops(), st.lists(st.integers(-3, 3), min_size=10, max_size=10))
def test_many_simulations_at_once_equal_each_by_the_words_of_the_rules(drawn: list[Any], weights: list[int]) -> None:
    def rule(decisions: Any) -> Any:
        lengths = decisions.lengths
        columns = [*decisions.attributes.values(), decisions.now.repeat(lengths), lengths.repeat(lengths)]
        return np.array(sum(weight * column for weight, column in zip(weights, columns, strict=True)), dtype=float)

    def score(*facts: float) -> float:
        return sum(weight * fact for weight, fact in zip(weights, facts, strict=True))

    shop = shop_of(drawn)
    task.rules.follow(shop, rule)
    assert shop.tardiness.tolist() == [by_the_words(jobs, 3, score) for jobs in drawn]


@settings(deadline=None, max_examples=40)
@given(shops(), st.randoms(use_true_random=False))
def test_simulations_may_advance_in_any_order(drawn: list[Any], chance: Any) -> None:
    together, apart = shop_of(drawn), shop_of(drawn)
    task.rules.follow(together, REFERENCE)
    while live := apart.live(range(len(drawn))):
        some = chance.sample(live, chance.randint(1, len(live)))
        decisions = apart.decisions(some)
        positions = task.shop.first_best(REFERENCE(decisions), decisions.lengths)
        apart.start(decisions.ids, positions.tolist())
    assert np.array_equal(together.tardiness, apart.tardiness)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=20))
def test_a_single_machine_conserves_work_under_every_rule(drawn: list[tuple[int, int]]) -> None:
    arrivals = np.cumsum([gap for gap, _ in drawn])
    jobs = batch(arrivals.tolist(), [[(0, time)] for _, time in drawn])
    free = 0
    for arrival, (_, time) in zip(arrivals.tolist(), drawn, strict=True):
        free = max(free, arrival) + time
    for rule in (SPT, lambda decisions: -SPT(decisions), lambda decisions: decisions.attributes["job_arrival"]):
        finished = done(jobs, rule, 1)
        assert max(finished) == free
        starts = sorted(finish - time for finish, (_, time) in zip(finished, drawn, strict=True))
        assert all(earlier <= later for earlier, later in zip(sorted(finished), starts[1:], strict=False))


def test_mm1_has_its_known_mean_flow_time() -> None:
    """With rate 1 of service and load 0.7 a job stays 1 / (1 - 0.7) on average, first come, first served."""
    load, jobs, means = 0.7, 4000, []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1 / load, jobs))
        times = rng.exponential(1.0, jobs)
        stream = task.arrivals.Batch(
            arrivals=arrivals,
            due_dates=arrivals,
            operations=np.ones(jobs, dtype=int),
            processing_times=times,
            machines=np.zeros(jobs, dtype=int),
        )
        shop = task.shop.Shop([[stream]], range(200, jobs), 1)
        task.rules.follow(shop, lambda decisions: -decisions.attributes["queue_arrival"])
        means.append(shop.tardiness.mean())
    standard_error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert standard_error < 0.1
    assert abs(np.mean(means) - 1 / (1 - load)) < 3 * standard_error


# The task's own


def some_jobs(count: int, utilisation: float = 0.95, allowance: int = 4, seed: int = 1) -> list[Any]:
    stream = task.arrivals.batches(seed, utilisation, allowance)
    return [next(stream) for _ in range(count // task.arrivals.BATCH)]


def test_jobs_are_as_the_description_says() -> None:
    drawn = some_jobs(20_000)
    operations = np.concatenate([one.operations for one in drawn])
    times = np.concatenate([one.processing_times for one in drawn])
    arrivals: NDArray[np.float64] = np.concatenate([one.arrivals for one in drawn])
    assert set(operations.tolist()) == set(range(2, 15))
    assert set(times.tolist()) == set(range(1, 100))
    assert np.bincount(operations)[2:] == pytest.approx(20_000 / 13, rel=0.1)
    assert times.mean() == pytest.approx(50, rel=0.01)
    gaps = np.diff(arrivals, prepend=0)
    assert gaps.mean() == pytest.approx(40 / 0.95, rel=0.03)
    assert gaps.std() == pytest.approx(40 / 0.95, rel=0.03)
    assert (arrivals * 65536 == np.rint(arrivals * 65536)).all()
    for one in drawn:
        first = np.cumsum(one.operations) - one.operations
        work = np.add.reduceat(one.processing_times, first)
        assert (one.due_dates == one.arrivals + 4 * work).all()
        repeats = np.flatnonzero(np.diff(one.machines) == 0) + 1
        assert set(repeats.tolist()) <= set(first.tolist())
    machines = np.concatenate([one.machines for one in drawn])
    assert np.bincount(machines, minlength=10) == pytest.approx(len(machines) / 10, rel=0.03)


def test_jobs_end_with_the_stated_bound() -> None:
    stream = list(task.arrivals.batches(3, 0.85, 2))
    assert sum(len(one.arrivals) for one in stream) == 20_000
    assert (task.arrivals.COUNTED.start, task.arrivals.COUNTED.stop) == (500, 2500)


def test_the_same_seed_gives_the_same_jobs_and_another_one_others() -> None:
    one, same, other = (some_jobs(500, seed=seed)[0] for seed in (1, 1, 2))
    assert (one.arrivals == same.arrivals).all()
    assert (one.processing_times == same.processing_times).all()
    assert not (one.arrivals == other.arrivals).any()


def test_a_table_of_operations_that_grows_keeps_what_it_held() -> None:
    small, large = task.operations.Operations(1), task.operations.Operations(100_000)
    for one in some_jobs(2000):
        assert small.add(one, range(11, 21)) == large.add(one, range(11, 21))
    size = large.size
    assert small.size == size
    assert np.array_equal(small.attributes[:, :size], large.attributes[:, :size])
    assert np.array_equal(small.next_slots[:size], large.next_slots[:size])
    assert small.machine[size - 1] == large.machine[size - 1]


def test_the_rules_have_the_known_tardiness() -> None:
    """The figures of another simulator, from two seeds, lie within what seeds differ by."""
    scenarios = task.arrivals.SCENARIOS
    known = {SPT: [535, 228, 1875, 1384, 1111], REFERENCE: [464, 136, 1403, 835, 528]}
    found = {}
    for rule, elsewhere in known.items():
        jobs = [task.arrivals.batches(seed, *scenario) for seed, scenario in enumerate(scenarios)]
        shop = task.shop.Shop(jobs, task.arrivals.COUNTED, task.arrivals.MACHINES)
        task.rules.follow(shop, rule)
        found[rule] = task.scoring.by_scenario(shop.tardiness)
        assert all(1 / 2.5 < one / other < 2.5 for one, other in zip(found[rule], elsewhere, strict=True))
    assert 1.15 < task.scoring.geometric_mean_ratio(found[SPT], found[REFERENCE]) < 1.75


def test_the_ratio_is_the_geometric_mean_over_the_scenarios() -> None:
    ratio = task.scoring.geometric_mean_ratio
    assert ratio([2, 2, 2, 2, 2], [1, 1, 1, 1, 1]) == 2
    assert ratio([1, 2, 4, 8, 16], [1, 1, 1, 1, 1]) == 4
    assert ratio([3, 5, 7, 11, 13], [3, 5, 7, 11, 13]) == 1


def test_a_scenario_is_the_mean_over_all_its_jobs() -> None:
    tardiness = np.arange(20.0).reshape(10, 2)
    assert task.scoring.by_scenario(tardiness) == [1.5, 5.5, 9.5, 13.5, 17.5]


def instances() -> Any:
    return task.instances.Instances(seeds=tuple(range(50)), reference=(1.5, 2.0, 3.0, 4.0, 0.1))


def test_what_a_split_holds_is_read_as_it_was_written() -> None:
    assert task.instances.Instances.from_json(instances().to_json()) == instances()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"1.5", b"0.0"),
        (b"1.5", b"-1.5"),
        (b"1.5", b"NaN"),
        (b"1.5, ", b""),
        (b"1.5", b'"1.5"'),
        (b"0000000000000031", b"0000000000000030"),
        (b'"00000000000000000000000000000031"', b"49"),
        (b"seeds", b"other"),
        (b"{", b'{"more": 1, '),
    ],
)
def test_a_split_that_is_damaged_is_an_error(old: bytes, new: bytes) -> None:
    content = instances().to_json()
    assert old in content
    with pytest.raises(ValueError, match=r"simulations.json does not hold 10 different seeds"):
        task.instances.Instances.from_json(content.replace(old, new, 1))
