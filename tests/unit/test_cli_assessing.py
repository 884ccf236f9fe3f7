"""The tables of `task assess`, and what it refuses before any container is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.bootstrap.assessing import runs_to_assess
from orchestrator.bootstrap.places import find_places
from orchestrator.cli.assessing import assessment_rows
from orchestrator.cli.assessing_progress import Assessing
from orchestrator.cli.batch_documents import AssessedRun, AssessmentDocument, SplitQuality
from orchestrator.storage.runs import RunStore
from tests.command_line import Ended
from tests.in_process import without_engine
from tests.recorded_equations import record_batch, record_run

Call = Callable[..., Ended]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    run = without_engine(home, monkeypatch, capsys)
    return lambda *arguments: Ended(*run(*arguments))


def assessed(task: str, structure: str | None) -> AssessedRun:
    return AssessedRun(
        run=task,
        task=f"equations/{task}",
        choice="exact",
        commit="i0-c01",
        quality="nmse",
        splits=[SplitQuality(split="train", value=1e-15)],
        assessment=None if structure is None else {"structure": structure, "equation": f"{task} + x" * 20, "nodes": 9},
        not_assessed="timeout" if structure is None else None,
    )


def test_a_batch_has_a_table_of_all_runs_and_counts_what_they_have_in_common() -> None:
    runs = [assessed("a", "exact"), assessed("b", "not-recovered"), assessed("c", "exact"), assessed("d", None)]
    meanings = {"structure": "which it is", "equation": "how it reads", "nodes": "its size"}
    *of_runs, whole, tally = assessment_rows(AssessmentDocument(batch="f00", meanings=meanings, runs=runs))
    assert [table.title for table in of_runs] == [f"Run {n}: equations/{n}" for n in "abcd"]
    assert ["equation", "a + x" * 20] in of_runs[0].rows
    assert whole.columns == ["task", "commit", "train", "structure", "nodes", "not assessed"]
    assert whole.rows[3] == ["equations/d", "i0-c01", 1e-15, None, None, "timeout"]
    assert tally.rows == [["exact", 2, "equations/a, equations/c"], ["not-recovered", 1, "equations/b"]]


def test_a_run_by_itself_has_one_table() -> None:
    (table,) = assessment_rows(
        AssessmentDocument(batch=None, meanings={"nodes": "size"}, runs=[assessed("a", "exact")])
    )
    assert ["structure", "exact"] in table.rows


def test_a_candidate_that_a_run_has_not_is_told_with_those_it_has(call: Call, home: Path) -> None:
    run_id = record_run(home, "CRK35")
    ended = call("task", "assess", run_id, "--commit", "i9-c01")
    assert ended.code == call("show", run_id, "i9-c01").code == 2
    assert f"run '{run_id}' has no candidate 'i9-c01'; its last ones are: " in ended.err
    assert "i0-c02" in ended.err


def test_members_of_a_batch_that_have_not_ended_are_named(home: Path) -> None:
    batch_id, _ = record_batch(home, ("CRK35", "PO0"), begun=1)
    run_id = record_run(home, "PO0", batch=batch_id, has_ended=False)
    notes: list[str] = []
    places = find_places(home, None)
    assert len(runs_to_assess(places, batch_id, notes.append)) == 1
    assert notes == [f"symbolic_regression/PO0 has no run yet and is left out (`evolvarium resume {batch_id}` goes on)"]
    with RunStore(home).open(batch_id) as journal:
        journal.put("m02/begun/0001", {"run": run_id})
    notes.clear()
    assert runs_to_assess(places, batch_id, notes.append)[1] == run_id
    assert notes[0].startswith("symbolic_regression/PO0 is unfinished; its best so far is assessed")


def test_progress_names_the_member_and_the_time() -> None:
    said: list[str] = []
    now = [0.0]
    lines = Assessing(said.append, 12, clock=lambda: now[0])
    now[0] = 2.0
    assert lines.standing() == "preparing for 2 s"
    lines.begin("equations/a")
    lines.begin("equations/b")
    now[0] = 42.0
    lines.beat()
    lines.beat()
    assert said == ["after 42 s: assessing equations/b (2 of 12) for 40 s"]


def test_what_cannot_be_assessed_is_refused(call: Call, home: Path) -> None:
    run_id = record_run(home, "CRK35")
    ended = call("task", "assess", run_id, "--commit", "i0-c01", "--choice", "paper")
    assert (ended.code, "give one of them" in ended.err) == (2, True)
    batch_id, _ = record_batch(home, ("CRK35",), begun=0)
    ended = call("task", "assess", batch_id)
    assert (ended.code, "no member of batch" in ended.err) == (2, True)
    assert call("task", "assess", run_id).code == 3
