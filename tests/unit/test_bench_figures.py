"""Figures of `make bench` against their targets."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from orchestrator.cli.terminal import json_line
from tests.bench.figures import BenchDocument, Figure, Machine, Status

MACHINE = Machine(processors=2, load=0.5, python="3.11.2", engine="20.10.24", runtime="runc")


def figure(value: float, at_most: float | None) -> Figure:
    return Figure(what="a wait", value=value, unit="ms", at_most=at_most)


@pytest.mark.parametrize(
    ("value", "at_most", "status"),
    [(30.0, 30.0, Status.PASS), (30.1, 30.0, Status.MISS), (0.0, 0.0, Status.PASS), (9e9, None, Status.REPORTED)],
)
def test_a_figure_passes_up_to_its_target(value: float, at_most: float | None, status: Status) -> None:
    assert figure(value, at_most).status is status


def test_one_miss_is_a_miss_of_the_whole_and_a_reported_figure_is_none() -> None:
    assert BenchDocument(machine=MACHINE, figures=[figure(1, 2), figure(3, 2)]).has_miss
    assert not BenchDocument(machine=MACHINE, figures=[figure(1, 2), figure(3, None)]).has_miss


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValidationError):
        figure(float("nan"), 1)


def test_the_json_says_how_each_figure_stands() -> None:
    document = json.loads(json_line(BenchDocument(machine=MACHINE, figures=[figure(40, 30)])))
    assert document["figures"][0] == {
        "what": "a wait", "value": 40, "unit": "ms", "at_most": 30, "detail": "", "status": "miss",
    }  # fmt: skip


def test_the_table_shows_target_and_figure_in_the_same_unit() -> None:
    (row,) = BenchDocument(machine=MACHINE, figures=[figure(1234.5, 30)]).rows().rows
    assert row[:4] == ["a wait", "1234 ms", "30 ms", "miss"]
