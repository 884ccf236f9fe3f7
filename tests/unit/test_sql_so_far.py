"""What is said of benches and sweeps that are interrupted, resumed, or given less than a first round costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.sql import running
from orchestrator.bootstrap.sql.bench import Begun, begin_bench
from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.first_rounds import require_first_round
from orchestrator.bootstrap.sql.outcomes import Outcome
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.bootstrap.sql.running import Opened, Watch
from orchestrator.bootstrap.sql.sweep import SweepBegun, measure
from orchestrator.bootstrap.sql.sweep_header import read_sweep_header
from orchestrator.bootstrap.sql.sweep_results import read_sweep
from orchestrator.cli.documents import RunsDocument
from orchestrator.cli.run_entries import run_entry, runs_rows
from orchestrator.cli.sql_progress import SWEEP, ProgressLines
from orchestrator.cli.sql_summaries import bench_entry
from orchestrator.cli.sql_sweep_documents import SqlSweepDocument, SqlSweepPoint
from orchestrator.cli.sql_sweep_summaries import sweep_document
from orchestrator.cli.sql_sweep_tables import headline, variant_rows
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import BudgetExhausted, ModelError
from orchestrator.runtime.workers import CancelToken
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.scripted_bench import SETTINGS, Bench, Writer
from tests.unit.test_sql_sweep import QUESTIONS, Sweep

NEEDED = 3 * 100 + SETTINGS.max_output_tokens
"""Tokens of a first round of the scripted writer: three prompts, and room for one reply."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(bench.home, monkeypatch, capsys)


def opened(bench: Bench, writer: Writer | None = None) -> Opened:
    writer = writer or Writer({})
    return Opened(
        data=bench.data,
        choices=bench.choices,
        settings=SETTINGS,
        generator=writer,
        critic=writer,
        place=bench.place(),
        conditions=bench.conditions(),
    )


def listed(bench: Bench) -> object:
    """What `runs list` says of the only run's quality."""
    store = RunStore(bench.home)
    (info,) = store.list()
    table = runs_rows(RunsDocument(runs=[run_entry(store, info)]))
    return table.rows[0][list(table.columns).index("quality")]


def test_an_interrupted_bench_is_listed_with_how_many_questions_its_share_is_of(bench: Bench) -> None:
    _, journal = bench.begun()
    with journal, pytest.raises(ModelError):
        bench.run(journal, bench.configuration(fails_at=40))
    assert listed(bench) == "100.00 % strict of 4 of 6"
    with RunStore(bench.home).open(RunStore(bench.home).list()[0].id) as journal:
        bench.run(journal, bench.configuration())
    assert re.fullmatch(r"\d+\.\d\d % strict", str(listed(bench)))


def test_a_bench_whose_budget_reached_some_questions_is_listed_with_how_many(bench: Bench) -> None:
    _, journal = bench.begun()
    with journal:
        bench.run(journal, bench.configuration())
        entry = bench_entry(read_bench("r", journal), RunStore(bench.home).list()[0])
    some = entry.model_copy(update={"accuracy": 0.5, "not_reached": 2})
    assert runs_rows(RunsDocument(runs=[some])).rows[0][8] == "50.00 % strict (budget reached 4 of 6)"


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (
            SqlBudget(tokens=6 * NEEDED - 1),
            f"at least {NEEDED} tokens per question, the share of each of 6 is {NEEDED - 1}; give --budget-tokens",
        ),
        (SqlBudget(tokens=6 * NEEDED), ""),
        (SqlBudget(usd=Decimal("0.00001")), ""),  # the scripted writer says beforehand that it costs nothing
        (SqlBudget(), ""),
    ],
)
def test_a_budget_of_less_than_a_first_round_is_refused_with_what_is_needed(
    bench: Bench, budget: SqlBudget, said: str
) -> None:
    if not said:
        require_first_round(budget, [opened(bench)], [SETTINGS])
        return
    with pytest.raises(BudgetExhausted) as refused:
        require_first_round(budget, [opened(bench)], [SETTINGS])
    assert said in str(refused.value)
    surely = 6 * 3 * (100 + SETTINGS.max_output_tokens)
    assert (
        f" {6 * NEEDED} or more ({surely} is surely enough for first rounds), or fewer questions with --limit"
        in str(refused.value)
    )
    assert "nothing was spent, and no run is kept" in str(refused.value)


def test_one_question_that_is_covered_is_enough_and_one_without_gold_is_not_counted(bench: Bench) -> None:
    first, *others = bench.data.questions
    bench.data = replace(bench.data, questions=(replace(first, gold=None), *others))
    require_first_round(SqlBudget(tokens=5 * NEEDED), [opened(bench)], [SETTINGS])
    short = SETTINGS.model_copy(update={"max_output_tokens": 64})
    with pytest.raises(BudgetExhausted, match="per evolution of a question, the share of each of 10"):
        require_first_round(SqlBudget(tokens=10 * 363), [opened(bench)], [SETTINGS, short])
    require_first_round(SqlBudget(tokens=10 * 364), [opened(bench)], [SETTINGS, short])


class Priced(Writer):
    """Names a price beforehand."""

    def worst_case(self, *arguments: Any) -> Any:
        return replace(super().worst_case(*arguments), usd=Decimal("0.01"))


def test_a_budget_in_dollars_is_held_against_one_request(bench: Bench) -> None:
    with pytest.raises(BudgetExhausted, match=r"at least 0\.01 US dollars .* is 0\.009999; give --budget-usd 0\.06 or"):
        require_first_round(SqlBudget(usd=Decimal("0.059999")), [opened(bench, Priced({}))], [SETTINGS])
    require_first_round(SqlBudget(usd=Decimal("0.06")), [opened(bench, Priced({}))], [SETTINGS])


def test_a_bench_that_is_refused_for_its_budget_leaves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def scripted(*_: object) -> Iterator[list[Opened]]:
        yield [opened(bench)]

    monkeypatch.setattr(running, "_opened", scripted)
    begun: list[Begun] = []
    watch = Watch[Begun](
        token=CancelToken(),
        note=bench.notes.append,
        on_start=begun.append,
        on_total=lambda *_: None,
        on_outcome=lambda _: None,
    )
    poor = bench.choices.model_copy(update={"budget": SqlBudget(tokens=100)})
    with pytest.raises(BudgetExhausted) as refused:
        begin_bench(find_places(bench.home, None), poor, SETTINGS, watch)
    assert refused.value.exit_code == 4
    assert begun == []
    assert RunStore(bench.home).list() == ()


@pytest.fixture
def sweep(bench: Bench) -> Sweep:
    return Sweep(bench)


@pytest.fixture
def journal(sweep: Sweep) -> Iterator[SqliteJournal]:
    _, journal = sweep.begun()
    with journal:
        yield journal


def told_of(sweep: Sweep, journal: SqliteJournal, capsys: pytest.CaptureFixture[str], most: int | None = None) -> str:
    """The last line of progress; with `most`, of a sweep that fails after so many evolutions."""
    lines = ProgressLines(Terminal(), SWEEP)
    left = [most]

    def outcome(one: Outcome) -> None:
        lines.outcome(one)
        if left[0] is not None:
            left[0] -= 1
            if not left[0]:
                msg = "the model is away"
                raise ModelError(msg)

    watch = Watch[SweepBegun](
        token=sweep.bench.place().token,
        note=lines.note,
        on_start=lines.start,
        on_total=lines.total,
        on_outcome=outcome,
    )
    opened = sweep.opened(Writer(sweep.golds))
    if most is None:
        measure(read_sweep_header("r", journal), opened, "r", journal, watch)
    else:
        with pytest.raises(ModelError, match="away"):
            measure(read_sweep_header("r", journal), opened, "r", journal, watch)
    return capsys.readouterr().err.splitlines()[-1]


def test_progress_after_resume_ends_like_that_of_a_sweep_that_nothing_disturbed(
    sweep: Sweep, journal: SqliteJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    _, other = sweep.begun()
    with other:
        undisturbed = told_of(sweep, other, capsys)
    told_of(sweep, journal, capsys, most=7)
    resumed = told_of(sweep, journal, capsys)
    timed = re.compile(r" after [^;]*")
    assert timed.sub("", resumed) == timed.sub("", undisturbed)
    assert "; strict so far: evosql " in resumed


def test_the_headline_of_an_unfinished_sweep_says_so_far(
    sweep: Sweep, journal: SqliteJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    told_of(sweep, journal, capsys, most=3)  # every variant on the first question
    document = sweep_document(read_sweep("r", journal))
    assert document.best is not None
    assert f" of 1 questions so far, of {2 * QUESTIONS}, " in headline(document)[0]
    told_of(sweep, journal, capsys)
    assert "so far" not in headline(sweep_document(read_sweep("r", journal)))[0]


def _tied(document: SqlSweepDocument) -> SqlSweepDocument:
    """The same, with every variant at one point of every panel."""
    everyone = [one.id for one in document.variants]
    points = [SqlSweepPoint(x=1, y=1, variants=everyone, on_front=True)]
    panels = [panel.model_copy(update={"points": points}) for panel in document.panels]
    return document.model_copy(update={"panels": panels})


def test_variants_are_marked_only_where_a_mark_tells_them_apart(sweep: Sweep, journal: SqliteJournal) -> None:
    document = sweep_document(sweep.run(journal))
    marked = variant_rows(document)
    assert marked.title.endswith("; * is on the Pareto front")
    assert any(str(cell).endswith(" *") for row in marked.rows for cell in row)
    tied = variant_rows(_tied(document))
    assert tied.title.endswith("; all are on the Pareto front")
    assert not any(str(cell).endswith(" *") for row in tied.rows for cell in row)


def test_a_wrong_choice_is_told_without_words_of_the_checker(call: Call, tmp_path: Path) -> None:
    code, _, err = call("sql", "bench", "--dataset", "oracle", "--root", str(tmp_path))
    assert code == 2
    assert "Invalid value for '--dataset': 'oracle' is not one of 'bird', 'spider', 'jsonl'" in err
    assert "Value error" not in err
