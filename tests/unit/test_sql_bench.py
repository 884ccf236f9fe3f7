"""A bench on the demo shop with scripted models: outcomes, budgets, interruptions, and what commands make of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.bootstrap.spending import read_ledger
from orchestrator.bootstrap.sql.bench import Begun
from orchestrator.bootstrap.sql.blind_journal import BlindJournal
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout, SqlBudget
from orchestrator.bootstrap.sql.data import load_data, spread
from orchestrator.bootstrap.sql.header import bench_header, require_same
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.bootstrap.sql.running import END_KEY
from orchestrator.cli.sql_progress import BENCH, ProgressLines, ProgressTable
from orchestrator.cli.sql_summaries import bench_document
from orchestrator.cli.terminal import Terminal
from orchestrator.domain.budgets import Budget
from orchestrator.errors import InputError, ModelError, RunStateError
from orchestrator.evaluation.sql_judge import Metric
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.scripted_bench import SETTINGS, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def journal(bench: Bench) -> Iterator[SqliteJournal]:
    _, journal = bench.begun()
    with journal:
        yield journal


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(bench.home, monkeypatch, capsys)


def test_every_method_answers_every_question_from_the_same_first_round(bench: Bench, journal: SqliteJournal) -> None:
    outcomes = bench.run(journal, bench.configuration())
    assert len(outcomes) == 6
    for outcome in outcomes:
        assert set(outcome.answers) == set(Method)
        assert len(outcome.first) == len(outcome.first_calls) == 3
        assert outcome.evolutions[Method.SELF_EVOLUTION].ending == "rounds"
    elicited = [key for key, _ in journal.records("q/") if "/elicit/" in key]
    assert len(elicited) == 6 * 3
    assert any(len(outcome.evolutions[Method.EVOSQL].answers) == 1 for outcome in outcomes)  # some stop early
    assert all(Metric.STRICT in outcome.answers[Method.EVOSQL] for outcome in outcomes if any(outcome.first))


def test_the_number_of_workers_changes_nothing(bench: Bench, journal: SqliteJournal, tmp_path: Path) -> None:
    alone = bench.run(journal, bench.configuration())
    with SqliteJournal(tmp_path / "other.sqlite") as other:
        assert bench.run(other, bench.configuration(), workers=4) == alone
        assert {key for key, _ in other.records()} == {key for key, _ in journal.records()} - {"run"}


def test_methods_cannot_read_the_judges_records_nor_write_them(bench: Bench, journal: SqliteJournal) -> None:
    bench.run(journal, bench.configuration())
    judges = [key for key, _ in journal.records("q/") if key.endswith(("/gold", "/outcome"))]
    assert len(judges) == 2 * 6
    blind = BlindJournal(journal, "/outcome")
    assert [blind.get(key) for key in judges] == [None] * 12
    assert {key for key, _ in blind.records("q/")} == {key for key, _ in journal.records("q/")} - set(judges)
    with pytest.raises(RunStateError, match="the judge's"):
        blind.put("q/new/gold", {})


@pytest.mark.parametrize("calls", [1, 20])
def test_after_a_failure_a_bench_goes_on_to_the_same_outcomes_and_spending(
    bench: Bench, journal: SqliteJournal, tmp_path: Path, calls: int
) -> None:
    with SqliteJournal(tmp_path / "undisturbed.sqlite") as undisturbed:
        expected = bench.run(undisturbed, bench.configuration())
    with pytest.raises(ModelError, match="away"):
        bench.run(journal, bench.configuration(fails_at=calls), workers=2)
    before = {key for key, _ in journal.records()}
    assert bench.run(journal, bench.configuration()) == expected
    assert before < {key for key, _ in journal.records()}


def test_a_question_whose_budget_covers_no_request_is_wrong_and_says_so(bench: Bench, journal: SqliteJournal) -> None:
    outcomes = bench.run(journal, bench.configuration(budget=Budget(tokens=100)))
    assert all(outcome.first == () and not outcome.answers for outcome in outcomes)
    assert all(outcome.spent.requests == 0 for outcome in outcomes)


def test_a_budget_is_divided_equally_and_never_rounded_up() -> None:
    budget = SqlBudget(usd=Decimal(1), tokens=100).share(3)
    assert (budget.usd, budget.tokens) == (Decimal("0.333333"), 33)


def test_configurations_with_names_of_their_own_share_a_first_round(bench: Bench, journal: SqliteJournal) -> None:
    bench.run(journal, bench.configuration(methods=(Method.EVOSQL,)))
    before = [key for key, _ in journal.records("q/") if "/elicit/" in key]
    other = bench.configuration(
        settings=SETTINGS.model_copy(update={"time_discount": 0.5}),
        methods=(Method.EVOSQL,),
        names={Method.EVOSQL: "evosql-slow"},
        record="/outcome-slow",
    )
    assert len(bench.run(journal, other)) == 6
    assert [key for key, _ in journal.records("q/") if "/elicit/" in key] == before


def test_a_limit_takes_questions_at_even_distances(bench: Bench) -> None:
    every = load_data(bench.choices.model_copy(update={"limit": None})).questions
    assert spread(every, None) == spread(every, len(every) + 1) == list(every)
    assert [every.index(question) for question in spread(every, 6)] == [0, 10, 20, 30, 40, 50]
    with pytest.raises(InputError, match="web_shop"):
        load_data(bench.choices.model_copy(update={"databases": ("webshop",)}))


@pytest.mark.parametrize("part", ["dataset", "policy", "images", "databases", "prompts", "models"])
def test_a_bench_does_not_go_on_under_other_conditions(bench: Bench, part: str) -> None:
    header = bench_header(bench.choices, SETTINGS, bench.data, bench.conditions(), "sha256:t")
    require_same(header, bench.conditions())
    changed = {**bench.conditions(), part: {**bench.conditions()[part], "more": "sha256:f"}}
    with pytest.raises(RunStateError, match=r"has changed since the run began \(more: null, now sha256:f\)"):
        require_same(header, changed)


def test_figures_come_from_the_journal_alone(bench: Bench, journal: SqliteJournal) -> None:
    outcomes = bench.run(journal, bench.configuration())
    document = bench_document(read_bench("r", journal), ledger=read_ledger(journal))
    assert (document.state, document.evaluable, document.answered) == ("unfinished", 6, 6)
    assert {line.role for line in document.ledger} == {"generator", "critic"}
    assert sum(line.requests for line in document.ledger) == document.requests
    right = sum(Metric.BIRD in outcome.answers[Method.MAJORITY] for outcome in outcomes)
    assert document.methods["majority"]["bird"].right == right
    assert document.gold_as_prediction["strict"].share == 1
    assert document.requests == sum(outcome.spent.requests for outcome in outcomes)
    tokens = document.tokens["evosql"]
    generated = sum(one.outputs for one in document.early_stop["evosql"].rounds)
    assert tokens.total.decode == 10 * generated
    assert tokens.total.infill == 100 * (generated - 6 * 2)  # of the first round one prompt in three counts
    assert tokens.total.infill_equivalent == 100 * generated
    assert {(one.first, one.other, one.metric) for one in document.differences} == {
        ("evosql", other, metric) for other in ("self_evolution", "majority") for metric in ("strict", "bird")
    }


def test_a_bench_is_listed_shown_and_removed_like_any_run(bench: Bench, call: Call) -> None:
    run_id, journal = bench.begun()
    with journal:
        bench.run(journal, bench.configuration())
    (entry,) = json.loads(call("runs", "list", "--json")[1])["runs"]
    assert (entry["run"], entry["method"], entry["task"], entry["state"]) == (
        run_id,
        "sql bench",
        "jsonl",
        "unfinished",
    )
    code, out, _ = call("show", "latest")
    assert code == 0
    assert "Tokens (Table 11" in out
    assert "Early stopping (Table 12)" in out
    shown = json.loads(call("show", run_id, "--json")[1])
    assert shown["answered"] == 6
    assert call("runs", "remove", run_id, "--yes")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "latest"], "evolvarium show"),
        (["show", "latest", "best"], "has no question 'best'"),
        (["show", "latest", "-o", "written"], "leave out -o"),
        (["show", "latest", "--gold"], "give its id"),
        (["show", "latest", "b01", "--questions", "all"], "give one of them"),
        (["run", "online_bin_packing", "--model", "replay/latest"], "cannot be replayed"),
        (["resume", "latest", "--accept-policy-change"], "leave out --accept-policy-change"),
    ],
)
def test_what_a_bench_is_no_use_for_is_said_in_one_line(
    bench: Bench, call: Call, arguments: list[str], message: str
) -> None:
    _, journal = bench.begun()
    journal.close()
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_bench_that_has_ended_needs_no_engine_to_be_resumed(bench: Bench, call: Call) -> None:
    _, journal = bench.begun()
    with journal:
        bench.run(journal, bench.configuration())
        journal.put(END_KEY, {"unchanged": ["web_shop"]})
    code, out, err = call("resume", "latest", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["state"] == "done"
    assert document["databases"][0]["unchanged"] is True


def test_a_disagreeing_gold_query_makes_the_command_fail(bench: Bench, call: Call) -> None:
    first = replace(bench.data.questions[0], gold="SELECT random()")
    bench.data = replace(bench.data, questions=(first, *bench.data.questions[1:]))
    _, journal = bench.begun()
    with journal:
        bench.run(journal, bench.configuration())
        journal.put(END_KEY, {"unchanged": ["web_shop"]})
    code, out, err = call("resume", "latest", "--json")
    assert code == 1
    assert json.loads(out)["gold_disagreeing"] == [first.id]
    assert "cannot be trusted" in err


def test_progress_counts_questions_and_strict_answers(
    bench: Bench, journal: SqliteJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = bench.run(journal, bench.configuration())
    begun = Begun(run_id="r", choices=bench.choices, settings=SETTINGS, questions=6)
    screen = io.StringIO()
    table = ProgressTable(Console(file=screen, width=200), BENCH)
    lines = ProgressLines(Terminal(), BENCH)
    for progress in (table, lines):
        progress.start(begun)
        progress.total(6, iter(outcomes[:2]))
        for outcome in outcomes[2:]:
            progress.outcome(outcome)
    right = sum(Metric.STRICT in outcome.answers[Method.MAJORITY] for outcome in outcomes)
    told = capsys.readouterr().err.splitlines()
    tokens = sum(outcome.spent.input_tokens + outcome.spent.output_tokens for outcome in outcomes)
    assert "6 questions can be evaluated, 2 of them are answered already" in told
    assert told[-1].startswith("6 of 6 questions after ")
    assert "strict so far: " in told[-1]
    assert f"majority {100 * right / 6:.1f} %" in told[-1]
    assert told[-1].endswith(f"; {tokens} tokens")
    Console(file=screen, width=200).print(table.drawn())
    assert "6/6" in screen.getvalue()
    assert str(tokens) in screen.getvalue()


@pytest.mark.parametrize(
    "odd",
    [{"models": {"": 0}}, {"databases": {"web_shop": {}}}, {"versions": None}, {"dataset": {"name": "x"}}],
    ids=str,
)
def test_a_bench_whose_record_has_an_odd_shape_spoils_no_other_run(
    bench: Bench, call: Call, odd: dict[str, object]
) -> None:
    sound, journal = bench.begun()
    journal.close()
    other, journal = RunStore(bench.home).create()
    with journal:
        journal.put("run", {**bench_header(bench.choices, SETTINGS, bench.data, bench.conditions(), "sha256:t"), **odd})
    problems = {run["run"]: run["problem"] for run in json.loads(call("runs", "list", "--json")[1])["runs"]}
    assert problems[sound] is None
    assert other in problems[other]
    assert call("show", other)[0] == 2


def test_a_name_of_questions_beside_a_file_of_questions_is_refused(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text("{}\n")
    choices = BenchChoices(layout=Layout.JSONL, root=str(questions), question_file="x")
    with pytest.raises(InputError, match=r"--questions 'x' has no meaning"):
        load_data(choices)


def test_a_bench_whose_model_is_not_to_be_had_is_paused_until_it_goes_on(bench: Bench, call: Call) -> None:
    run_id, journal = bench.begun()
    with journal:
        journal.put("run/paused/0001", {"reason": "nobody serves"})
        (entry,) = json.loads(call("runs", "list", "--json")[1])["runs"]
        assert (entry["state"], entry["pause"]) == ("paused", "nobody serves")
        shown = json.loads(call("show", run_id, "--json")[1])
        assert (shown["state"], shown["pause"]) == ("paused", "nobody serves")
        assert "paused: nobody serves" in call("show", run_id)[1]
        bench.run(journal, bench.configuration())
    shown = json.loads(call("show", run_id, "--json")[1])
    assert (shown["state"], shown["pause"]) == ("unfinished", None)
    assert f"Run {run_id} is paused" not in call("runs", "list")[1]
