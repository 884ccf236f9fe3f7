"""What `make results` says of the dynamic job shop."""

from __future__ import annotations

from typing import Any

from orchestrator.cli.documents import RunDocument
from tests.bench.results.records import Record
from tests.bench.results.shop_page import QUALITY, MeasuredShop, shop_checks, shop_section
from tests.bench.results.shop_plan import ShopTargets, full_shop_run, shop_pair
from tests.unit.test_bench_results import document


def search(hidden: float, fresh: float) -> Record:
    """A finished search whose initial program is at 1.4."""
    plain = document(hidden, fresh).model_dump(mode="json")
    renamed = _renamed(plain)
    renamed["initial"] = {"metrics": {QUALITY: 1.4}}
    return Record(
        arguments=("task",), version="commit abc", wall_seconds=600, document=RunDocument.model_validate(renamed)
    )


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {QUALITY if key == "excess_percent" else key: _renamed(item) for key, item in value.items()}
    return [_renamed(item) for item in value] if isinstance(value, list) else value


def shop(ours: tuple[float, float], theirs: tuple[float, float], full: Record | None = None) -> MeasuredShop:
    return MeasuredShop(
        planned=shop_pair(None),
        with_analysis=search(*ours),
        without_analysis=search(*theirs),
        full=None if full is None else (full_shop_run(), full),
    )


def reached(measured: MeasuredShop) -> list[bool]:
    return [check.is_reached for check in shop_checks(measured, ShopTargets())]


def test_the_pair_differs_in_no_analysis_alone() -> None:
    pair = shop_pair(3)
    assert pair.with_analysis.command == "evolvarium run dynamic_job_shop --public-seed --seed 1 --commits 3"
    assert pair.without_analysis.arguments == (*pair.with_analysis.arguments, "--no-analysis")


def test_the_full_run_leaves_the_number_of_commits_to_the_task() -> None:
    assert "--commits" not in full_shop_run().arguments


def test_each_target_of_the_job_shop_is_missed_by_itself() -> None:
    worse = (1.2, 1.2)
    assert reached(shop((0.90, 0.90), worse)) == [True, True, True, True]
    assert reached(shop((0.91, 0.90), worse)) == [False, True, True, True]
    assert reached(shop((0.90, 0.91), worse)) == [True, False, True, True]
    assert reached(shop((0.90, 0.90), (0.94, 1.2))) == [True, True, False, True]
    assert reached(shop((0.90, 0.90), (1.2, 0.94))) == [True, True, True, False]
    assert reached(shop((0.90, 0.90), worse, search(0.95, 0.8))) == [True, True, True, True, False, True]


def test_the_page_shows_shortest_processing_time_and_says_whose_reference_it_is() -> None:
    text = shop_section(shop((0.85, 0.86), (1.3, 1.31)), ShopTargets(), "2 processors")
    assert "| shortest processing time | 1.40 |" in text
    assert "cannot be compared with the paper's" in text
    assert "evolvarium run dynamic_job_shop --public-seed --seed 1 --commits 8 --no-analysis" in text
