"""A sweep on the demo shop with scripted models: what variants share, interruptions, and what commands make of it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.sql.configurations import Configuration, shared_replies
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.replies import RememberingModel
from orchestrator.bootstrap.sql.running import END_KEY, Opened, Watch
from orchestrator.bootstrap.sql.sweep import SweepBegun, end_record, measure
from orchestrator.bootstrap.sql.sweep_choices import SweepChoices
from orchestrator.bootstrap.sql.sweep_file import SweepFile, parse_sweep
from orchestrator.bootstrap.sql.sweep_header import read_sweep_header, sweep_header
from orchestrator.bootstrap.sql.sweep_results import SweepView, read_sweep
from orchestrator.bootstrap.sql.sweep_tallies import Tally
from orchestrator.cli.sql_progress import SWEEP, ProgressLines
from orchestrator.cli.sql_sweep_figures import pareto_figure
from orchestrator.cli.sql_sweep_summaries import sweep_document
from orchestrator.cli.terminal import Terminal
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import Conversation, Reply, Sampling
from orchestrator.errors import ModelError
from orchestrator.evaluation.sql_judge import Metric
from orchestrator.methods.evosql import Settings
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.scripted_bench import Bench, Writer

K = 3
QUESTIONS = 3
FILE = f"""
datasets:
  - {{name: first, kind: jsonl, root: questions.jsonl}}
  - {{name: second, kind: jsonl, root: questions.jsonl}}
base: {{candidates: {K}, rounds: 2, seed: 4, stop_share: 0.6}}
grid:
  rounds: [2, 1]
  time_discount: [0.9, 0.5]
variants:
  - {{temperature: 0.5}}
"""


class CountingWriter(Writer):
    """Remembers what it was asked."""

    def __init__(self, golds: dict[str, str], fails_at: int | None = None) -> None:
        super().__init__(golds, fails_at)
        self.asked: Counter[str] = Counter()

    def complete(self, conversation: Conversation, tools: Any, sampling: Sampling) -> Reply:
        self.asked[repr((conversation, sampling))] += 1
        return super().complete(conversation, tools, sampling)


class Sweep:
    """A sweep over the demo's questions, without an engine."""

    def __init__(self, bench: Bench, text: str = FILE) -> None:
        self.bench = bench
        bench.data = replace(bench.data, questions=bench.data.questions[:QUESTIONS])
        self.file: SweepFile = parse_sweep(text.encode(), "sweep.yaml")
        self.choices = SweepChoices(data=str(Path(bench.choices.root).parent))
        self.golds = {question.text: question.gold or "" for question in bench.data.questions}

    def opened(self, writer: Writer, workers: int = 1) -> list[Opened]:
        one = Opened(
            data=self.bench.data,
            choices=self.bench.choices,
            settings=self.file.settings,
            generator=writer,
            critic=writer,
            place=self.bench.place(workers),
            conditions=self.bench.conditions(),
        )
        return [one] * len(self.file.datasets)

    def begun(self) -> tuple[str, SqliteJournal]:
        run_id, journal = RunStore(self.bench.home).create()
        journal.put("run", sweep_header(self.file, self.choices, self.opened(Writer({}))))
        return run_id, journal

    def run(self, journal: SqliteJournal, writer: Writer | None = None, workers: int = 1) -> SweepView:
        opened = self.opened(writer or Writer(self.golds), workers)
        watch = Watch[SweepBegun](
            token=opened[0].place.token,
            note=self.bench.notes.append,
            on_start=lambda _: None,
            on_total=lambda *_: None,
            on_outcome=lambda _: None,
        )
        header = read_sweep_header("r", journal)
        parts = measure(header, opened, "r", journal, watch)
        if journal.get(END_KEY) is None:
            journal.put(END_KEY, end_record(header, parts))
        return read_sweep("r", journal)


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return Sweep(Bench(tmp_path))


@pytest.fixture
def journal(sweep: Sweep) -> Iterator[SqliteJournal]:
    _, journal = sweep.begun()
    with journal:
        yield journal


@pytest.fixture
def call(sweep: Sweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(sweep.bench.home, monkeypatch, capsys)


def tallies(view: SweepView) -> list[dict[str, Tally]]:
    return [dict(dataset.tallies) for dataset in view.datasets]


def test_variants_share_gold_first_rounds_and_rounds(sweep: Sweep, journal: SqliteJournal) -> None:
    view = sweep.run(journal)
    labels = ["base", "gamma 0.5", "T 1", "T 1, gamma 0.5", "temperature 0.5"]
    assert [one.label for one in view.header.variants] == labels
    keys = [key for key, _ in journal.records()]
    assert sum(key.endswith("/gold") for key in keys) == 2 * QUESTIONS
    assert sum("/elicit/" in key for key in keys) == 2 * 2 * QUESTIONS * K  # two data sets, two temperatures
    assert {key.split("/outcome/")[1] for key in keys if "/outcome/" in key} == {"e001", "e002", "e003"}
    assert all(tally.answered == QUESTIONS for dataset in view.datasets for tally in dataset.tallies.values())


def test_a_variant_of_fewer_rounds_comes_to_what_it_comes_to_alone(sweep: Sweep, journal: SqliteJournal) -> None:
    together = tallies(sweep.run(journal))[0]
    assert together["v001"] != together["v003"]  # the second round changes something
    alone = Sweep(sweep.bench, FILE.replace("rounds: [2, 1]", "rounds: [1]").replace("rounds: 2", "rounds: 1"))
    _, other = alone.begun()
    with other:
        found = tallies(alone.run(other))[0]
    assert [found["v001"], found["v002"]] == [together["v003"], together["v004"]]


def test_data_sets_with_the_same_ids_are_kept_apart(sweep: Sweep, journal: SqliteJournal) -> None:
    first, second = tallies(sweep.run(journal))
    assert first == second
    assert all(key.startswith(("d1/", "d2/")) for key, _ in journal.records() if key not in {"run", END_KEY})


@pytest.mark.parametrize("calls", [1, 40])
def test_after_a_failure_a_sweep_goes_on_to_the_same_figures(sweep: Sweep, journal: SqliteJournal, calls: int) -> None:
    _, undisturbed = sweep.begun()
    with undisturbed:
        expected = sweep.run(undisturbed, workers=2)
    with pytest.raises(ModelError, match="away"):
        sweep.run(journal, Writer(sweep.golds, calls), workers=2)
    partial = sweep_document(read_sweep("r", journal))
    assert (partial.state, partial.panels) == ("unfinished", [])
    view = sweep.run(journal)
    assert tallies(view) == tallies(expected)
    assert (view.state, view.requests, view.usage) == ("done", expected.requests, expected.usage)


def test_equal_requests_of_a_repeatable_model_are_answered_once_per_question(
    sweep: Sweep, journal: SqliteJournal
) -> None:
    writer = CountingWriter(sweep.golds)
    view = sweep.run(journal, writer)
    assert set(writer.asked.values()) == {2}  # once for each data set
    assert view.requests > writer.asked.total()


def test_a_model_that_is_not_repeatable_is_always_asked() -> None:
    writer = CountingWriter({})
    writer.is_repeatable = False
    one = Configuration(settings=Settings(), methods=(Method.EVOSQL,), generator=writer, critic=writer, budget=Budget())
    assert [found.generator for found in shared_replies([one, one])] == [writer, writer]
    writer.is_repeatable = True
    (found, _) = shared_replies([one, one])
    assert isinstance(found.generator, RememberingModel)
    assert found.generator is found.critic
    assert shared_replies([one]) == [one]


def test_a_budget_that_covers_nothing_makes_every_variant_wrong_and_says_so(sweep: Sweep) -> None:
    sweep.choices = sweep.choices.model_copy(update={"budget": sweep.choices.budget.model_copy(update={"tokens": 10})})
    _, poor = sweep.begun()
    with poor:
        document = sweep_document(sweep.run(poor))
    assert document.state == "budget-spent"
    assert document.requests == 0
    assert {share.right for one in document.variants for score in one.scores for share in score.greedy.values()} == {0}


def test_the_ledger_of_a_sweep_counts_every_request_once(sweep: Sweep, journal: SqliteJournal) -> None:
    document = sweep_document(sweep.run(journal))
    assert {line.role for line in document.ledger} == {"generator", "critic"}
    assert sum(line.requests for line in document.ledger) == document.requests > 0
    assert sum(line.usage.input_tokens for line in document.ledger) == document.usage.input_tokens


def test_two_data_sets_give_four_panels_of_one_against_the_other(sweep: Sweep, journal: SqliteJournal) -> None:
    document = sweep_document(sweep.run(journal))
    assert [(panel.metric, panel.measure) for panel in document.panels] == [
        ("strict", "greedy"), ("strict", "pass_at_k"), ("relaxed", "greedy"), ("relaxed", "pass_at_k")
    ]  # fmt: skip
    for panel in document.panels:
        assert (panel.x, panel.y) == ("first", "second")
        assert sorted(name for point in panel.points for name in point.variants) == [f"v00{n}" for n in range(1, 6)]
        assert any(point.on_front for point in panel.points)
        best = max(panel.points, key=lambda point: point.x)
        assert best.x == best.y  # both are the same questions
    first = document.variants[0].scores[0]
    assert first.greedy["strict"].right <= first.pass_at_k["strict"].right
    assert {dataset.gold_as_prediction["strict"].share for dataset in document.datasets} == {1.0}


def test_one_data_set_is_drawn_against_tokens(sweep: Sweep) -> None:
    alone = Sweep(sweep.bench, FILE.replace("  - {name: second, kind: jsonl, root: questions.jsonl}\n", ""))
    _, journal = alone.begun()
    with journal:
        document = sweep_document(alone.run(journal))
    assert {(panel.x, panel.y) for panel in document.panels} == {("tokens per question", "first")}
    tokens = {one.id: one.scores[0].tokens / QUESTIONS for one in document.variants}
    for point in document.panels[0].points:
        assert {round(tokens[name], 1) for name in point.variants} == {point.x}
    assert tokens["v003"] < tokens["v001"]


def test_the_figure_names_what_it_shows(sweep: Sweep, journal: SqliteJournal) -> None:
    document = sweep_document(sweep.run(journal))
    figure = pareto_figure(document)
    figure.draw_without_rendering()
    assert figure.get_suptitle() == (
        f"EvoSQL, 5 variants on {QUESTIONS} questions of first and {QUESTIONS} questions of second; scripted; run r"
    )
    first, second, *_ = figure.axes
    assert (first.get_xlabel(), first.get_ylabel()) == ("strict accuracy on first, %", "strict accuracy on second, %")
    assert first.get_title() == "strict, greedy: the answer is right"
    assert second.get_title() == "strict, Pass@3: any of the 3 best candidates is right"
    (front,) = [point for point in document.panels[0].points if point.on_front]
    assert [text.get_text() for text in first.texts] == [f"v001 (base) and {len(front.variants) - 1} more"]
    assert all(tick <= 100 for axes in figure.axes for tick in (*axes.get_xticks(), *axes.get_yticks()))
    assert "Pareto front" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_a_sweep_is_listed_shown_and_written_like_any_run(sweep: Sweep, call: Call, tmp_path: Path) -> None:
    run_id, journal = sweep.begun()
    with journal:
        view = sweep.run(journal)
    (entry,) = json.loads(call("runs", "list", "--json")[1])["runs"]
    assert (entry["run"], entry["method"], entry["task"], entry["state"]) == (
        run_id, "sql sweep", "first, second", "done"
    )  # fmt: skip
    target = tmp_path / "written"
    code, out, _ = call("show", run_id, "-o", str(target), "--json")
    assert code == 0
    shown = json.loads(out)
    assert {**shown, "files": []} == {**sweep_document(view).model_dump(mode="json"), "run": run_id}
    assert sorted(map(str, target.iterdir())) == sorted(shown["files"])
    rows = list(csv.DictReader(io.StringIO((target / "sweep.csv").read_text())))
    assert [(row["variant"], row["dataset"]) for row in rows[:2]] == [("v001", "first"), ("v001", "second")]
    assert rows[0]["greedy_strict"] == str(view.datasets[0].tallies["v001"].right[Metric.STRICT])
    assert (target / "pareto.svg").read_text().startswith("<?xml")
    code, out, _ = call("show", run_id)
    assert code == 0
    assert "Pareto front, relaxed, Pass@3" in out
    assert call("show", run_id, "-o", str(target))[0] == 2  # nothing is overwritten
    assert json.loads(call("resume", "latest", "--json")[1]) == {**shown, "files": []}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "latest", "best"], "leave out ID"),
        (["report", "latest"], "is a Text-to-SQL sweep; `evolvarium show"),
        (["resume", "latest", "--accept-policy-change"], "the figures of a Text-to-SQL sweep are one measurement"),
        (["show", "latest", "-o", "written"], "has no results to write yet"),
        (["show", "latest", "--questions", "all"], "leave out --questions"),
        (["run", "online_bin_packing", "--model", "replay/latest"], "is a Text-to-SQL sweep, which cannot be replayed"),
    ],
)
def test_what_a_sweep_is_no_use_for_is_said_in_one_line(
    sweep: Sweep, call: Call, arguments: list[str], message: str
) -> None:
    _, journal = sweep.begun()
    journal.close()
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a sweep is a mapping"),
        ("datasets: []", "`datasets` is []: must have at least 1 entries"),
        ("datasets: [{kind: spider}]", "`datasets.0.root` is missing"),
        ("datasets: [{kind: oracle, root: x}]", "must be 'bird', 'spider' or 'jsonl'"),
        ("datasets: [{kind: bird, root: x}, {kind: bird, root: y}]", "give one of them a `name`"),
        (
            "datasets: [{kind: bird, root: x}]\nbase: {gamma: 1}",
            "`base`: there is no setting 'gamma'; did you mean 'tim",
        ),
        ("datasets: [{kind: bird, root: x}]\ngrid: {tau: [8]}", "`grid`: there is no setting 'tau'; did you mean 'con"),
        ("datasets: [{kind: bird, root: x}]\nvariants: [{}, {tau: 8}]", "`variants.1`: there is no setting 'tau'; did"),
        ("datasets: [{kind: bird, root: x}]\ngrid: {payload: [0]}", "`grid.payload` is 0: must be at least 1"),
        ("datasets: [{kind: bird, root: x}]\ngrid: {payload: []}", "`grid.payload` is []"),
        ("datasets: [{kind: bird, root: x}]\nvariants: [{rounds: many}]", "`variants.0.rounds` is 'many'"),
        ("datasets: [{kind: bird, root: x}]\ngrid: {seed: [" + "1, " * 1000 + "2]}", "at most 1000"),
        ("datasets: [{kind: bird, root: x}]\ncritics: 2", "`critics` is not a key"),
    ],
)
def test_a_malformed_file_is_one_line_that_names_it(call: Call, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    code, out, err = call("sql", "sweep", str(path))
    assert (code, out) == (2, "")
    assert "sweep.yaml" in err
    assert message in err
    assert err.count("\n") == 1


def test_what_is_on_top_is_the_best_variant_everywhere(sweep: Sweep, call: Call) -> None:
    run_id, journal = sweep.begun()
    with journal:
        view = sweep.run(journal)
    document = json.loads(call("show", run_id, "--json")[1])
    rights = {
        variant["id"]: sum(score["greedy"]["strict"]["right"] for score in variant["scores"])
        for variant in document["variants"]
    }
    best = max(rights, key=lambda name: rights[name])
    share = {"right": rights[best], "of": 2 * QUESTIONS, "share": rights[best] / (2 * QUESTIONS)}
    assert (document["best"]["variant"], document["best"]["strict"]) == (best, share)
    assert document["best"]["base"]["right"] == rights["v001"]
    (entry,) = json.loads(call("runs", "list", "--json")[1])["runs"]
    assert (entry["questions"], entry["methods"]) == (2 * QUESTIONS, ["evosql"])
    assert (entry["accuracy_of"], entry["accuracy"]) == (best, share["share"])
    equal = sum(right == rights[best] for right in rights.values()) - 1
    others = f"and {equal} other{'s' if equal > 1 else ''} that come to the same are" if equal else "is"
    label = view.header.variants[int(best[1:]) - 1].label
    assert f"{best} ({label}) {others} right most often" in call("show", run_id)[1]
    (short,) = [line for line in call("runs", "list")[1].splitlines() if run_id in line]
    assert f"({2 * QUESTIONS} questions)" in short
    assert f"{100 * share['share']:.2f} % strict" in short


def test_what_o_asked_for_is_written_by_whatever_ends_the_sweep(sweep: Sweep, call: Call, tmp_path: Path) -> None:
    target = tmp_path / "written"
    sweep.choices = sweep.choices.model_copy(update={"output": str(target)})
    run_id, journal = sweep.begun()
    with journal:
        sweep.run(journal)
    code, out, err = call("resume", run_id, "--json")
    assert code == 0, err
    assert sorted(map(str, target.iterdir())) == sorted(json.loads(out)["files"])
    (target / "sweep.md").write_text("mine now")
    code, out, err = call("resume", run_id, "--json")  # it is done, and has written them already
    assert (code, json.loads(out)["files"]) == (0, [])
    assert "nothing will be written" not in err
    assert (target / "sweep.md").read_text() == "mine now"


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    sweep: Sweep, call: Call, tmp_path: Path, place: str
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("datasets: [{kind: jsonl, root: shop/questions.jsonl}]")
    (tmp_path / "file").write_text("not a folder")
    code, out, err = call("sql", "sweep", str(file), "-o", str(tmp_path / place))
    assert (code, out) == (2, "")
    assert f"cannot write into {str(tmp_path / place)!r}: {str(tmp_path / 'file')!r} is not a folder; choose" in err
    assert RunStore(sweep.bench.home).list() == ()
    code, _, err = call("sql", "sweep", str(file), "-o", str(tmp_path / "new" / "folder"))
    assert code == 3, err  # there is no engine
    assert not (tmp_path / "new").exists()
    code, _, err = call("sql", "sweep", str(file), "-o", "/proc/written")
    assert code == 2
    assert "cannot write into '/proc/written'" in err


def test_questions_that_are_left_out_are_named(sweep: Sweep, call: Call) -> None:
    first, *others = sweep.bench.data.questions
    sweep.bench.data = replace(sweep.bench.data, questions=(replace(first, gold="SELECT nope"), *others))
    run_id, journal = sweep.begun()
    with journal:
        sweep.run(journal)
    document = json.loads(call("show", run_id, "--json")[1])
    assert [[one["id"] for one in dataset["left_out"]] for dataset in document["datasets"]] == [[first.id], [first.id]]
    assert f"1 gold_error: {first.id}" in call("show", run_id)[1]


def test_progress_says_what_is_done_how_well_and_what_is_left(
    sweep: Sweep, journal: SqliteJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ProgressLines(Terminal(), SWEEP)
    watch = Watch[SweepBegun](
        token=sweep.bench.place().token,
        note=lines.note,
        on_start=lines.start,
        on_total=lines.total,
        on_outcome=lines.outcome,
    )
    measure(read_sweep_header("r", journal), sweep.opened(Writer(sweep.golds)), "r", journal, watch)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == (
        "run r: 5 variants on 3 questions of first and 3 questions of second, offline; 3 evolutions of each question "
        "answer for all variants"
    )
    assert "running 3 gold queries of second, and each again like a prediction" in told
    assert "18 evolutions of questions that can be evaluated" in told
    assert "answering 3 questions of first, 3 evolutions of each" in told
    assert any(" left; strict so far: evosql " in line for line in told)
    assert re.match(r"18 of 18 evolutions after .*; strict so far: evosql \d+\.\d %, majority .*; \d+ tokens", told[-1])


def test_the_command_explains_itself(call: Call) -> None:
    code, out, err = call("sql", "sweep", "--help")
    assert (code, err) == (0, "")
    assert "Usage" in out


def test_a_file_is_needed_and_its_data_are_looked_for_beside_it(call: Call, tmp_path: Path) -> None:
    assert "cannot read the sweep" in call("sql", "sweep", str(tmp_path / "missing.yaml"))[2]
    path = tmp_path / "sweep.yaml"
    path.write_text("datasets: [{kind: bird, root: nowhere}]")
    code, _, err = call("sql", "sweep", str(path))
    assert code == 2
    assert str(tmp_path / "nowhere") in err
    assert "give --data DIR, the folder that 'nowhere' lies in" in err
    code, _, err = call("sql", "sweep", str(path), "--data", str(tmp_path))
    assert code == 2
    assert "without --data" not in err


def test_the_example_is_a_sweep_with_the_paper_s_directions() -> None:
    example = Path(__file__).parents[2] / "docs" / "sweeps" / "small.yaml"
    file = parse_sweep(example.read_bytes(), "small.yaml")
    assert len(file.expanded()) == 24
    assert len(file.model_copy(update={"catalogue": "paper"}).expanded()) > 56


def test_a_sweep_whose_model_is_not_to_be_had_is_paused_until_it_goes_on(
    sweep: Sweep, journal: SqliteJournal, call: Call
) -> None:
    journal.put("run/paused/0001", {"reason": "nobody serves"})
    document = sweep_document(read_sweep("r", journal))
    assert (document.state, document.pause) == ("paused", "nobody serves")
    assert {one.unchanged for one in document.datasets} == {None}
    out = call("runs", "list", "--json")[1]
    assert [(one["state"], one["pause"]) for one in json.loads(out)["runs"]] == [("paused", "nobody serves")]
    sweep.run(journal)
    document = sweep_document(read_sweep("r", journal))
    assert (document.state, document.pause) == ("done", None)
