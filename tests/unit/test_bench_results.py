"""What `make results` runs, keeps and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.documents import RunDocument
from orchestrator.errors import InputError
from tests.bench.results.page import MeasuredFull, MeasuredPair, checks, demo_rows, section
from tests.bench.results.plan import OR_LIBRARY, Targets, demo_arguments, demo_pairs, full_run
from tests.bench.results.records import Record, Records

ROOT = Path(__file__).parents[2]
DEMO = ("task", "--public-seed", "--seed", "1", "--commits", "8")


def document(hidden: float | None, fresh: float | None = None, or1: float | None = None) -> RunDocument:
    """A finished run whose best is `i0-c01`, or which has none."""
    final = [
        {"id": "i0-c01", "split": split, "metrics": {"excess_percent": value}, "failure": None, "secret": False}
        for split, value in (("fresh", fresh), ("or1", or1))
        if value is not None
    ]
    best = None if hidden is None else {"id": "i0-c01", "metrics": {"excess_percent": hidden}}
    return RunDocument.model_validate(
        {
            "run": "abc", "task": "task", "method": "agentic-evolve", "model": "offline", "seed": 1, "state": "done",
            "best": best, "initial": {"metrics": {"excess_percent": 6.7}}, "evaluations": 24, "analyses": 9,
            "requests": 30, "endings": {"ok": 24}, "final": final, "stops": [], "containers_left": 0,
            "replies": {},
            "too_long": None,
            "usage": {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "usd": 0},
        }
    )  # fmt: skip


def record(found: RunDocument, *arguments: str, seconds: float = 120.0) -> Record:
    return Record(arguments=arguments, version="commit abc", wall_seconds=seconds, document=found)


def measured(with_analysis: RunDocument, without: RunDocument, seconds: float = 120.0) -> MeasuredPair:
    (pair,) = demo_pairs(DEMO, [1], None)
    return MeasuredPair(
        planned=pair,
        with_analysis=record(with_analysis, seconds=seconds),
        without_analysis=record(without, seconds=seconds),
    )


def reached(pair: MeasuredPair, full: MeasuredFull | None = None) -> list[bool]:
    return [check.is_reached for check in checks([pair], full, Targets())]


def test_the_makefile_says_what_a_demo_is() -> None:
    arguments = demo_arguments((ROOT / "Makefile").read_text())
    assert arguments[0] == "online_bin_packing"
    assert {"--public-seed", "--seed", "--commits"} <= set(arguments)


def test_a_makefile_without_demo_arguments_is_an_error() -> None:
    with pytest.raises(InputError, match="DEMO_ARGS"):
        demo_arguments("all:\n\ttrue\n")


def test_a_pair_differs_in_no_analysis_alone_and_has_its_own_seed() -> None:
    pairs = demo_pairs(DEMO, [2, 3], None)
    assert [pair.with_analysis.command for pair in pairs] == [
        "evolvarium run task --public-seed --commits 8 --seed 2",
        "evolvarium run task --public-seed --commits 8 --seed 3",
    ]
    assert all(pair.without_analysis.arguments == (*pair.with_analysis.arguments, "--no-analysis") for pair in pairs)


def test_a_smaller_number_of_commits_takes_the_place_of_the_demos() -> None:
    (pair,) = demo_pairs(DEMO, [1], 2)
    assert pair.with_analysis.command == "evolvarium run task --public-seed --seed 1 --commits 2"


def test_a_full_run_has_the_tasks_own_commits_and_names_no_folder(tmp_path: Path) -> None:
    (tmp_path / OR_LIBRARY).parent.mkdir()
    (tmp_path / OR_LIBRARY).write_text("20\n")
    planned = full_run(DEMO, tmp_path, None)
    assert planned.command == "evolvarium run task --public-seed --seed 1 --or-library binpack1.txt"
    assert planned.argv()[-1] == str(tmp_path / OR_LIBRARY)


def test_a_full_run_without_the_or_library_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="EVOLVARIUM_DATA"):
        full_run(DEMO, tmp_path, None)


def test_a_record_is_found_by_its_arguments_and_survives_the_disk(tmp_path: Path) -> None:
    kept = record(document(4.5, 4.4), "task", "--seed", "1")
    records = Records(tmp_path / "results", Record)
    assert records.find(kept.arguments) is None
    records.keep(kept)
    assert records.find(["task", "--seed", "1"]) == kept
    assert records.find(["task", "--seed", "2"]) is None


def test_a_damaged_record_counts_as_not_measured(tmp_path: Path) -> None:
    records = Records(tmp_path, Record)
    kept = record(document(4.5), "task")
    records.keep(kept)
    (path,) = tmp_path.glob("*.json")
    path.write_text(path.read_text()[:-20])
    assert records.find(["task"]) is None


def test_targets_are_reached_at_their_very_values() -> None:
    assert reached(measured(document(4.6, 4.6), document(5.0, 5.0), seconds=300)) == [True] * 4


def test_each_target_is_missed_by_itself() -> None:
    good = document(5.5, 5.5)
    assert reached(measured(document(4.7, 4.5), good)) == [False, True, True, True]
    assert reached(measured(document(4.5, 4.7), good)) == [True, False, True, True]
    assert reached(measured(document(4.5, 4.5), document(4.8, 4.8))) == [True, True, False, True]
    assert reached(measured(document(4.5, 4.5), good, seconds=301)) == [True, True, True, False]


def test_the_worst_seed_counts() -> None:
    pairs = [measured(document(4.0, 4.0), document(5.5)), measured(document(4.9, 4.0), document(5.5))]
    hidden = checks(pairs, None, Targets())[0]
    assert (hidden.figure, hidden.is_reached) == (4.9, False)


def test_a_run_without_any_score_reaches_nothing_and_shows_no_number() -> None:
    pair = measured(document(None), document(5.5, 5.5))
    assert reached(pair) == [False, False, False, True]
    assert demo_rows([pair]).rows[0][2] is None


def test_the_page_holds_every_command_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / OR_LIBRARY).parent.mkdir()
    (tmp_path / OR_LIBRARY).write_text("20\n")
    full = MeasuredFull(planned=full_run(DEMO, tmp_path, None), record=record(document(3.7, 3.8, 3.3)))
    pair = measured(document(4.5, 4.4), document(5.5, 5.4))
    text = section([pair], full, Targets(), "2 processors")
    for planned in (pair.planned.with_analysis, pair.planned.without_analysis, full.planned):
        assert planned.command in text
    assert str(tmp_path) not in text
    assert "| full run, OR1 | at most 3.4 % | 3.30 | yes |" in text
    assert "*OR1* is the 20 instances u120" in text
    assert "Measured on 2 processors, at commit abc." in text
