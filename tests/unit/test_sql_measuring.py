"""How benches and sweeps begin and end: data sets of another layout, nothing to evaluate, limits, what is kept."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.sql.bench import Begun
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout
from orchestrator.bootstrap.sql.data import load_data
from orchestrator.bootstrap.sql.gold import run_gold
from orchestrator.bootstrap.sql.notices import shorter_limits
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.bootstrap.sql.running import END_KEY, Opened, Watch, start
from orchestrator.cli.documents import RunsDocument
from orchestrator.cli.run_entries import run_entry, runs_rows
from orchestrator.cli.sql_bench_parts import bench_end_parts, headline
from orchestrator.cli.sql_endings import explained
from orchestrator.cli.sql_progress import BENCH, ProgressLines
from orchestrator.cli.sql_summaries import bench_document
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.domain.budgets import Budget
from orchestrator.domain.data_access import DataRule
from orchestrator.errors import Cancelled, EvolvariumError, InputError, ModelError, SandboxError
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.scripted_bench import SETTINGS, Bench, Writer


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(bench.home, monkeypatch, capsys)


def _database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")


@pytest.fixture
def spider(tmp_path: Path) -> Path:
    folder = tmp_path / "like_spider"
    _database(folder / "database" / "d" / "d.sqlite")
    (folder / "dev.json").write_text(json.dumps([{"db_id": "d", "question": "How many?", "query": "SELECT 1"}]))
    return folder


@pytest.fixture
def bird(tmp_path: Path) -> Path:
    folder = tmp_path / "like_bird"
    _database(folder / "dev_databases" / "d" / "d.sqlite")
    (folder / "dev.json").write_text(json.dumps([{"db_id": "d", "question": "How many?", "SQL": "SELECT 1"}]))
    return folder


@pytest.mark.parametrize("given", ["spider", "bird", "jsonl"])
@pytest.mark.parametrize("found", ["spider", "bird", "jsonl"])
def test_a_folder_of_another_layout_is_named_with_the_layout_it_has(
    request: pytest.FixtureRequest, bench: Bench, call: Call, given: str, found: str
) -> None:
    root = Path(bench.choices.root).parent if found == "jsonl" else request.getfixturevalue(found)
    choices = BenchChoices(layout=Layout(given), root=str(root))
    if given == found:
        assert load_data(choices).questions
        return
    code, out, err = call("sql", "bench", "--dataset", given, "--root", str(root))
    assert (code, out) == (2, "")
    assert f"{str(root)!r} is laid out like {found}, not like {given}; give --dataset {found}" in err
    with pytest.raises(InputError, match=f"give kind: {found}"):
        load_data(choices, layout_is_given_by="kind: {}")


def test_a_sweep_names_the_key_of_its_file_for_another_layout(call: Call, spider: Path, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(f"datasets: [{{kind: bird, root: {spider}}}]")
    code, _, err = call("sql", "sweep", str(file))
    assert code == 2
    assert "give kind: spider" in err


def test_a_list_without_gold_queries_is_refused_before_anything_runs(call: Call, spider: Path) -> None:
    (spider / "dev.json").write_text(json.dumps([{"db_id": "d", "question": "How many?"}]))
    code, _, err = call("sql", "bench", "--dataset", "spider", "--root", str(spider))
    assert code == 2
    assert "none of the 1 questions" in err
    assert str(spider) in err


def test_nothing_to_evaluate_is_wrong_input_that_says_why(bench: Bench) -> None:
    questions = [replace(question, gold="SELECT nope") for question in bench.data.questions]
    _, journal = bench.begun()
    with journal, pytest.raises(InputError) as refused:
        run_gold(bench.place(), questions, SqlJudge(journal, dataset="sha256:d"), label="shop", note=lambda _: None)
    said = str(refused.value)
    assert "none of the 6 questions of shop can be evaluated (6 gold_error; question " in said
    assert "no such column: nope" in said
    assert "`evolvarium show r`" in said
    assert str(explained(refused.value, ["r"], is_kept=True)) == said  # to resume it would not help


def test_a_rule_that_names_nothing_is_told_once_by_every_measurement(bench: Bench) -> None:
    bench.suspicions = ("data rule 1: `deny custmers` names nothing",)
    _, journal = bench.begun()
    with journal:
        bench.run(journal, bench.configuration())
    assert bench.notes.count(bench.suspicions[0]) == 1


def test_a_limit_over_what_the_policy_grants_is_told_with_both_values(bench: Bench) -> None:
    place = bench.place()
    assert shorter_limits(place) == []  # 30 s are half of the default policy's 60
    (told,) = shorter_limits(replace(place, query_seconds=100))
    assert "web_shop get 30 s of computing, not the 100 s of --query-seconds" in told
    assert "half of the 60 s that policy default grants" in told
    few = [DataRule(databases=("web_shop",), query_seconds=5)]
    policy = bench.policy.model_copy(update={"data": few})
    place = replace(place, sandbox=type("Sandbox", (), {"policy": policy})())
    assert "get 2.5 s of computing, not the 30 s" in shorter_limits(place)[0]


def _opened(bench: Bench) -> Opened:
    writer = Writer({})
    return Opened(
        data=bench.data,
        choices=bench.choices,
        settings=SETTINGS,
        generator=writer,
        critic=writer,
        place=bench.place(),
        conditions=bench.conditions(),
    )


@pytest.mark.parametrize(
    ("error", "records", "kept"),
    [
        (SandboxError("broken"), False, False),
        (SandboxError("broken"), True, True),
        (Cancelled("stopped"), False, True),
    ],
)
def test_a_run_that_fails_before_anything_is_recorded_is_not_kept(
    bench: Bench, error: EvolvariumError, records: bool, kept: bool
) -> None:
    watch = Watch[Begun](
        token=CancelToken(),
        note=lambda _: None,
        on_start=lambda _: None,
        on_total=lambda *_: None,
        on_outcome=lambda _: None,
    )
    found: list[str] = []

    def header(_: Sequence[Opened], journal: Journal) -> Mapping[str, Any]:
        assert journal.get("run") is None
        return {"kind": "sql-bench"}

    def perform(opened: Sequence[Opened], run_id: str, journal: Journal) -> Mapping[str, Any]:
        assert opened[0].place.run_id == run_id
        found.append(run_id)
        if records:
            journal.put("q/1/gold", {})
        raise error

    with pytest.raises(type(error)):
        start(find_places(bench.home, None), [_opened(bench)], watch, header=header, perform=perform)
    assert [info.id for info in RunStore(bench.home).list()] == (found if kept else [])


def test_what_became_of_a_run_is_said_after_a_failure() -> None:
    assert "none is kept: start it again" in str(explained(ModelError("away"), ["r1"], is_kept=False))
    assert "`evolvarium resume r1`" in str(explained(ModelError("away"), ["r1"], is_kept=True))
    assert str(explained(ModelError("away"), [], is_kept=False)) == "away"


def test_figures_say_how_many_questions_the_budget_did_not_reach(
    bench: Bench, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id, journal = bench.begun()
    lines = ProgressLines(Terminal(), BENCH)
    lines.start(Begun(run_id="r", choices=bench.choices, settings=SETTINGS, questions=6))
    lines.total(6, ())
    with journal:
        for outcome in bench.run(journal, bench.configuration(budget=Budget(tokens=100))):
            lines.outcome(outcome)
        journal.put(END_KEY, {"unchanged": ["web_shop"]})
    assert "6 not reached by the budget count as wrong" in capsys.readouterr().err.splitlines()[-1]
    document = json.loads(call("show", run_id, "--json")[1])
    assert document["not_reached"] == {method.value: 6 for method in Method}
    out = call("show", run_id)[1]
    assert "not reached by the budget" in out
    assert "0; 6 that the budget did not reach count as wrong" in out
    assert "The budget did not reach 6 of 6 questions under any method" in out.rstrip().splitlines()[-1]
    code, _, err = call("resume", run_id)
    assert code == 4
    assert "these figures say little of the methods. They are final" in err
    store = RunStore(bench.home)
    table = runs_rows(RunsDocument(runs=[run_entry(store, info) for info in store.list()]))
    assert table.rows[0][list(table.columns).index("quality")] == "- (budget reached 0 of 6)"


def test_a_bench_ends_with_its_headline_and_the_way_to_the_rest(bench: Bench) -> None:
    run_id, journal = bench.begun()
    with journal:
        bench.run(journal, bench.configuration())
        document = bench_document(read_bench(run_id, journal), 0)
    parts = bench_end_parts(document)
    assert sum(isinstance(part, Rows) for part in parts) == 2
    strict = document.methods["evosql"]["strict"]
    assert strict.share is not None
    told = f"EvoSQL is right on {strict.right} of 6 questions: {100 * strict.share:.2f} % strict"
    assert str(headline(document)[0]).startswith(told)
    assert parts[-3:-1] == [*headline(document), "Containers left: 0."]
    assert f"`evolvarium show {run_id}` has all tables" in str(parts[-1])
    assert f"`evolvarium show {run_id} --questions failed`" in str(parts[-1])


def test_a_bench_is_listed_with_its_methods_questions_and_headline(bench: Bench, call: Call) -> None:
    _, journal = bench.begun()
    with journal:
        outcomes = bench.run(journal, bench.configuration())
    (entry,) = json.loads(call("runs", "list", "--json")[1])["runs"]
    right = sum("strict" in outcome.answers[Method.EVOSQL] for outcome in outcomes)
    assert (entry["questions"], entry["accuracy_of"], entry["accuracy"]) == (6, "evosql", right / 6)
    assert entry["methods"] == [method.value for method in Method]
    out = call("runs", "list")[1]
    assert "jsonl (6 questions)" in out
    assert f"{100 * right / 6:.2f} % strict" in out


def test_a_silence_is_broken_by_what_is_being_done(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = ProgressLines(Terminal(), BENCH, clock=lambda: now[0])
    lines.note("running 20 gold queries of bird")
    lines.beat()
    now[0] = 31.0
    lines.beat()
    lines.beat()
    assert capsys.readouterr().err.splitlines() == [
        "running 20 gold queries of bird",
        "after 31 s: still running 20 gold queries of bird",
    ]
