"""`compare` on recorded runs: figures, pictures, what is refused and what is said. No engine, no container."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator.evaluation.tasks import Task, load_task
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.recorded_runs import Recording

ROOT = Path(__file__).parents[2]

NO_SCORE = "split 'fresh' has no score, or one of more than 1e+150 in size,"


@pytest.fixture
def task() -> Task:
    return load_task(ROOT / "tasks" / "online_bin_packing")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def record(home: Path, task: Task) -> Callable[..., str]:
    """Makes a finished run, as `run` would; gives its id."""

    def make(seed: int = 1, **chosen: Any) -> str:
        return Recording.of(home, task, seed=seed, **chosen).made()

    return make


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(home, monkeypatch, capsys)


def compared(call: Call, *arguments: str) -> dict[str, Any]:
    code, out, err = call("compare", *arguments, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def refused(call: Call, *arguments: str) -> str:
    code, out, err = call("compare", *arguments)
    assert (code, out) == (2, "")
    return err


def test_two_groups_in_figures(call: Call, record: Callable[..., str]) -> None:
    first, other = [record(seed) for seed in (1, 2, 3)], [record(seed, analysis=True) for seed in (1, 2)]
    document = compared(call, *first, "--with", *other)
    assert [run["run"] for run in document["a"]["runs"]] == first
    assert [run["run"] for run in document["b"]["runs"]] == other
    hidden, fresh = document["splits"]
    assert (hidden["split"], hidden["seen"], fresh["split"], fresh["seen"]) == ("hidden", True, "fresh", False)
    a, b = ([run["quality"]["hidden"] for run in document[group]["runs"]] for group in "ab")
    shown = json.loads(call("show", first[0], "best", "--json")[1])["metrics"]["excess_percent"]
    assert a[0] == shown
    assert (hidden["a"]["n"], hidden["b"]["n"]) == (3, 2)
    assert (hidden["a"]["mean"], hidden["a"]["sd"]) == pytest.approx((fmean(a), stdev(a)))
    assert hidden["points"] == pytest.approx(fmean(b) - fmean(a))  # a lower excess is better
    assert hidden["low"] <= hidden["points"] <= hidden["high"]
    better = sum((one < two) + (one == two) / 2 for one in a for two in b)
    assert (hidden["u"], hidden["pairs"]) == (better, 6)
    assert (hidden["p_method"] == "exact") == (len({*a, *b}) == 5)
    assert 0.2 <= hidden["p"] <= 1  # two of the ten ways to choose are the least
    assert any("with 3 and 2 runs the p-value is 0.2 at the least" in warning for warning in document["warnings"])


def test_the_interval_depends_on_the_seed_alone(call: Call, record: Callable[..., str]) -> None:
    names = [record(1), record(2), record(3), "--with", record(4), record(5), record(6)]
    ends = [
        [(split["low"], split["high"]) for split in compared(call, *names, "--seed", seed)["splits"]] for seed in "778"
    ]
    assert ends[0] == ends[1]
    assert compared(call, *names, "--seed", "7")["seed"] == 7


def test_bands_start_at_the_initial_program_and_end_where_the_runs_do(call: Call, record: Callable[..., str]) -> None:
    document = compared(call, record(1), record(2), "--with", record(3), record(4, commits=2))
    bands = {(band["group"], band["spent"]): band for band in document["bands"]}
    assert {spent for _, spent in bands} == {
        "evaluations",
        "tokens",
        "cpu_seconds",
    }  # the offline engine costs no money
    rows = bands["a", "evaluations"]["rows"]
    assert bands["a", "evaluations"]["band"] == "min-max"
    initial = document["splits"][0]["initial"]
    assert rows[0] == [0, initial, initial, initial]
    best = [run["quality"]["hidden"] for run in document["a"]["runs"]]
    assert rows[-1] == [6, fmean(best), min(best), max(best)]
    assert [median for _, median, _, _ in rows] == sorted((median for _, median, _, _ in rows), reverse=True)
    cpu = bands["b", "cpu_seconds"]["rows"]
    assert (cpu[0][0], cpu[-1][0]) == (0.25, 1.75)  # 0.25 s for each of the initial program and six commits
    assert [run["cpu_seconds"] for run in document["b"]["runs"]] == [1.75, 1.25]


def test_analyses_count_as_processor_time(call: Call, record: Callable[..., str]) -> None:
    document = compared(call, record(1, analysis=True), "--with", record(1))
    (run,) = document["a"]["runs"]
    analyses = json.loads(call("show", run["run"], "--json")[1])["analyses"]
    assert analyses > 0
    assert run["cpu_seconds"] > document["b"]["runs"][0]["cpu_seconds"]
    method = next(condition for condition in document["conditions"] if condition["name"] == "method")
    assert (method["a"], method["b"]) == (["agentic-evolve"], ["agentic-evolve-no-analysis"])


def test_single_runs_have_neither_deviation_nor_interval(call: Call, record: Callable[..., str]) -> None:
    (hidden, _) = compared(call, record(1), "--with", record(2))["splits"]
    assert hidden["a"]["sd"] is None
    assert (hidden["low"], hidden["high"], hidden["p"]) == (None, None, 1.0)


def test_a_folder_receives_page_document_and_pictures(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "comparison"
    names = (record(1), record(2), "--with", record(3), record(4), "-o", str(folder))
    document = compared(call, *names)
    assert {path.name for path in folder.iterdir()} == {Path(path).name for path in document["files"]}
    assert json.loads((folder / "compare.json").read_text()) == document
    page = (folder / "compare.md").read_text()
    assert "| fresh |" in page
    heading = next(line for line in page.splitlines() if document["label"] in line)
    assert heading.endswith("of the best (lower is better); split hidden guides the search")
    assert "![Median and band of the best so far of both groups](best_so_far.png)" in page
    assert (folder / "best_so_far.png").read_bytes().startswith(b"\x89PNG")
    svg = folder / "best_so_far.svg"
    assert ET.parse(svg).getroot().tag.endswith("svg")  # noqa: S314 - our own file
    drawn = svg.read_bytes()
    assert "--force" in refused(call, *names)
    assert call("compare", *names, "--force")[0] == 0
    assert svg.read_bytes() == drawn


@pytest.mark.parametrize("name", ["page.pdf", "compare.md", "page.HTML"])
def test_a_name_of_another_kind_of_file_is_refused_before_any_work(call: Call, tmp_path: Path, name: str) -> None:
    message = refused(call, "nobody", "--with", "none", "-o", str(tmp_path / name))
    assert f"ends in {Path(name).suffix.lower()!r}" in message
    assert "a folder, whose name has no such ending" in message
    assert not (tmp_path / name).exists()


def test_the_help_has_an_example(call: Call) -> None:
    assert "For example: evolvarium compare latest --with previous" in call("compare", "--help")[1]


def test_tables_name_the_groups_and_say_how_it_was_worked_out(call: Call, record: Callable[..., str]) -> None:
    code, out, err = call("compare", record(1), record(2), "--with", record(3), record(4))
    assert code == 0
    assert "split hidden guides the search" in out
    assert "percentile bootstrap, 10000 resamples, seed 0" in out
    assert "exact" in out or "normal approximation" in out
    assert "note: with 2 and 2 runs the p-value is 0.333 at the least" in err


def test_runs_come_from_files_too(call: Call, record: Callable[..., str], tmp_path: Path) -> None:
    first, second, third = record(1), record(2), record(3)
    listed = tmp_path / "group-a"
    listed.write_text(f"# without analyses\n{first}\n\n{second[:10]}  # the second\n")
    document = compared(call, str(listed), "--with", "latest")
    assert [run["run"] for run in document["a"]["runs"]] == [first, second]
    assert [run["run"] for run in document["b"]["runs"]] == [third]
    listed.write_text(f"{first}\nnobody\n")
    assert "group-a', line 2: there is no run 'nobody'" in refused(call, str(listed), "--with", "latest")
    listed.write_text("# nothing yet\n")
    assert "names no run" in refused(call, str(listed), "--with", "latest")
    listed.write_bytes(b"\xff")
    assert "not UTF-8" in refused(call, str(listed), "--with", "latest")
    assert "there is no file" in refused(call, str(tmp_path / "group-b"), "--with", "latest")
    assert "Is a directory" in refused(call, str(tmp_path), "--with", "latest")
    assert "there is no run 'nobody'" in refused(call, "nobody", "--with", "latest")


def test_names_after_another_option_are_of_the_first_group(call: Call, record: Callable[..., str]) -> None:
    first, second, third = record(1), record(2), record(3)
    document = compared(call, "--with", second, "--seed", "3", first, third)
    assert [run["run"] for run in document["a"]["runs"]] == [first, third]
    assert [run["run"] for run in document["b"]["runs"]] == [second]
    document = compared(call, f"--with={second}", first)
    assert [run["run"] for run in document["b"]["runs"]] == [second]


def test_both_groups_are_needed(call: Call, record: Callable[..., str]) -> None:
    run = record(1)
    assert "for example, `evolvarium compare latest --with previous`" in refused(call, run)
    assert "--with" in refused(call, run, "--with")
    assert "--with" in refused(call, run, "--with", "--seed", "1")
    assert "RUN" in refused(call, "--with", run)


def test_a_run_counts_once(call: Call, record: Callable[..., str]) -> None:
    first, second = record(1), record(2)
    assert f"run {first} is named twice" in refused(call, first, first[:12], "--with", second)
    assert f"run {second} is in both groups" in refused(call, first, "latest", "--with", second)


def test_runs_that_repeat_each_other_are_named(call: Call, record: Callable[..., str]) -> None:
    first, again, other = record(1), record(1), record(2)
    (warning,) = [text for text in compared(call, first, again, "--with", other)["warnings"] if "same programs" in text]
    assert f"group A: runs {first} and {again} made the same programs" in warning


def test_runs_that_have_not_ended_are_named_and_left_out(call: Call, record: Callable[..., str], home: Path) -> None:
    first, other = record(1), record(2)
    with RunStore(home).open(first, read_only=True) as source:
        header = dict(source.get("run") or {})
    unfinished, journal = RunStore(home).create()
    with journal:
        journal.put("run", header)
    document = compared(call, first, unfinished, "--with", other)
    assert [run["run"] for run in document["a"]["runs"]] == [first]
    (left_out,) = document["a"]["left_out"]
    assert left_out == {
        "run": unfinished,
        "reason": f"it has not ended; `evolvarium resume {unfinished}` goes on with it",
    }
    assert any(f"run {unfinished} is left out" in warning for warning in document["warnings"])
    assert f"no run of group B can be compared: {unfinished}" in refused(call, first, "--with", unfinished)


def test_a_split_that_a_run_lacks_is_said(call: Call, record: Callable[..., str], home: Path, task: Task) -> None:
    first, other, run_id = record(1), record(2), Recording.of(home, task, seed=3).made(measured=False)
    document = compared(call, first, "--with", other, run_id)
    fresh = document["splits"][1]
    assert (fresh["b"]["n"], fresh["missing"]) == (1, [run_id])
    assert f"{NO_SCORE} of the best of {run_id}, which does not count there" in document["warnings"]
    fresh = compared(call, first, "--with", run_id)["splits"][1]
    assert (fresh["b"], fresh["points"], fresh["p"]) == (None, None, None)
    again = Recording.of(home, task, seed=4).made(measured=False)
    warnings = compared(call, first, "--with", run_id, again)["warnings"]
    assert f"{NO_SCORE} of the best of {run_id}, {again}, which do not count there" in warnings


def test_other_tasks_and_evaluators_are_refused(call: Call, record: Callable[..., str], home: Path, task: Task) -> None:
    first = record(1)
    renamed = replace(task, spec=task.spec.model_copy(update={"name": "another"}))
    second = Recording.of(home, renamed, seed=2).made()
    message = refused(call, first, "--with", second)
    assert "different tasks" in message
    assert f"'another' in {second}" in message
    third = Recording.of(home, replace(task, evaluator={"evaluate.py": b"# another one\n"}), seed=2).made()
    message = refused(call, first, "--with", third)
    assert "its evaluator differs" in message
    assert first in message
    assert third in message
    assert "its evaluator differs" in refused(call, first, "--with", third, "--allow-different-data")


def test_other_data_are_refused_unless_they_are_accepted(call: Call, record: Callable[..., str]) -> None:
    first, other = record(1, data="sha256:1"), record(2, data="sha256:2")
    message = refused(call, first, "--with", other)
    assert "other data of split 'hidden'" in message
    assert f"'sha256:2' in {other}" in message
    assert "--allow-different-data" in message
    document = compared(call, first, "--with", other, "--allow-different-data")
    assert any("other data" in warning for warning in document["warnings"])
    assert compared(call, first, "--with", record(3, data="sha256:1"))["splits"][0]["seen"]


def test_another_budget_is_said(call: Call, record: Callable[..., str]) -> None:
    document = compared(call, record(1), "--with", record(2, commits=2), record(3, commits=2))
    assert "the budgets differ in commits per island: 3 in A, 2 in B" in document["warnings"]
    document = compared(call, record(4), "--with", record(5), record(6, commits=2))
    assert "group B: the runs differ in commits per island" in document["warnings"]


def test_runs_of_other_kinds_are_named(call: Call, record: Callable[..., str], home: Path) -> None:
    first = record(1)
    run_id, journal = RunStore(home).create()
    with journal:
        journal.put("run", {"kind": "sql-bench"})
    assert f"run {run_id} is a Text-to-SQL bench" in refused(call, first, "--with", run_id)
