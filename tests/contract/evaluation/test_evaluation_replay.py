"""A recorded run evaluates and analyses without a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.records import to_record
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.errors import RunStateError
from orchestrator.evaluation.replay import ReplayAnalyst, ReplayEvaluator
from orchestrator.ports import AnalysisResult
from orchestrator.storage.journal import SqliteJournal

ONE, TWO, THREE = (FileTree({"program.py": text}) for text in (b"1\n", b"2\n", b"3\n"))


def outcome(output: bytes = b"") -> Outcome:
    return Outcome(
        ending=Ending.OK,
        exit_code=0,
        wall_seconds=1.5,
        cpu_seconds=None,
        memory_peak_bytes=None,
        output=output,
        output_truncated=False,
    )


def scored(fitness: float) -> Verdict:
    return Verdict(split="hidden", metrics={"fitness": fitness}, failure=None, secret=True, outcome=outcome(b"\xff"))


FAILED = Verdict(
    split="hidden",
    metrics=None,
    failure=Failure(ending=Ending.ERROR, exception="KeyError", file="program.py", line=1),
    secret=True,
    outcome=outcome(),
)


def printed(text: bytes) -> AnalysisResult:
    return AnalysisResult(output=text, omitted_bytes=0, outcome=outcome())


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "run.sqlite") as journal:
        journal.put("run", {"task": "t", "payload": "not a candidate"})
        for key, tree, verdict in (
            ("initial", ONE, scored(0.1)),
            ("i0/commit/c01", TWO, scored(0.2)),
            ("i1/commit/c01", TWO, scored(0.3)),
            ("i1/commit/c02", THREE, FAILED),
        ):
            journal.put(key, {"payload": tree.digest, "files": {}, "verdict": to_record(verdict)})
        for key, text in (("i0/analysis/0001", b"first"), ("i0/analysis/0002", b"second")):
            journal.put(key, {"payload": ONE.digest, "files": {}, "result": to_record(printed(text))})
        yield journal


def test_recorded_verdicts_come_back_whole(journal: SqliteJournal) -> None:
    evaluator = ReplayEvaluator(journal)
    assert evaluator.evaluate(ONE, run_id="run", attempt_id="initial") == scored(0.1)
    assert evaluator.evaluate(THREE, run_id="run", attempt_id="i1-c02") == FAILED


def test_of_equal_files_the_same_attempt_is_meant_and_otherwise_the_first(journal: SqliteJournal) -> None:
    evaluator, analyst = ReplayEvaluator(journal), ReplayAnalyst(journal)
    assert evaluator.evaluate(TWO, run_id="run", attempt_id="i1-c01") == scored(0.3)
    assert evaluator.evaluate(TWO, run_id="run", attempt_id="i2-c09") == scored(0.2)
    assert analyst.analyse(ONE, run_id="run", attempt_id="i0-a0002") == printed(b"second")
    assert analyst.analyse(ONE, run_id="run", attempt_id="i0-a0009") == printed(b"first")


def test_what_was_never_run_is_an_error(journal: SqliteJournal) -> None:
    with pytest.raises(RunStateError, match="holds no verdict for i0-c05"):
        ReplayEvaluator(journal).evaluate(FileTree({"program.py": b"new"}), run_id="run", attempt_id="i0-c05")
    with pytest.raises(RunStateError, match="holds no analysis for i0-a0005"):
        ReplayAnalyst(journal).analyse(TWO, run_id="run", attempt_id="i0-a0005")
