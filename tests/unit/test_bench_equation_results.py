"""What `make results` says of the equations."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.cli.batch_documents import AssessmentDocument, BatchDocument
from tests.bench.results.equations_page import MeasuredBatch, equation_checks, equation_rows, equations_section
from tests.bench.results.equations_plan import EquationTargets, planned_assessment, planned_batches
from tests.bench.results.records import AssessmentRecord, BatchRecord

USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "usd": 0}


def batch(structures: Mapping[str, str | None], *, analysis: bool = True) -> MeasuredBatch:
    """A finished batch; a task whose structure is None has no score."""
    planned = planned_batches(None)[0 if analysis else 1]
    said = planned_assessment("abc", planned)
    members = [{"task": f"family/{name}", "run": name, "state": "done", "evaluations": 12} for name in structures]
    document = {
        "run": "abc", "family": "family", "model": "offline", "state": "done", "pause": None, "members": members,
        "evaluations": 24, "analyses": 3, "requests": 9, "usage": USAGE, "containers_left": 0,
    }  # fmt: skip
    runs = [
        {
            "run": name, "task": f"family/{name}", "choice": "exact", "commit": None if found is None else "i0-c01",
            "quality": "nmse", "splits": [{"split": "train", "value": None if found is None else 1.5e-14}],
            "assessment": None if found is None else {"structure": found, "nodes": 12},
        }
        for name, found in structures.items()
    ]  # fmt: skip
    common = {"version": "commit abc", "wall_seconds": 90.0}
    return MeasuredBatch(
        planned=planned,
        record=BatchRecord(
            arguments=planned.arguments,
            document=BatchDocument.model_validate(document),
            **common,  # type: ignore[arg-type]
        ),
        planned_assessment=said,
        assessment=AssessmentRecord(
            arguments=said.arguments,
            document=AssessmentDocument.model_validate({"batch": "abc", "meanings": {}, "runs": runs}),
            **common,  # type: ignore[arg-type]
        ),
    )


def nine(recovered: int) -> dict[str, str | None]:
    """Nine equations of which so many are recovered."""
    return {f"E{n}": "exact" if n < recovered else "not-recovered" for n in range(9)}


def reached(ours: MeasuredBatch, without: MeasuredBatch) -> list[bool]:
    return [check.is_reached for check in equation_checks(ours, without, EquationTargets())]


def test_each_target_is_missed_by_itself() -> None:
    assert reached(batch(nine(8)), batch(nine(4), analysis=False)) == [True, True]
    assert reached(batch(nine(7)), batch(nine(0), analysis=False)) == [False, True]
    assert reached(batch(nine(8)), batch(nine(5), analysis=False)) == [True, False]


def test_negligible_terms_count_and_another_forms_exactness_does_not() -> None:
    found = batch({"A": "negligible-extra-terms", "B": "exact (four powers)", "C": None, "D": "not-assessed"})
    assert found.recovered == ["family/A"]
    rows = equation_rows(found, batch({"A": "not-recovered"}, analysis=False)).rows
    assert [row[1] for row in rows] == ["negligible-extra-terms", "exact (four powers)", "no score", "not-assessed"]
    assert rows[0][-2:] == ["not-recovered", "1.5e-14"]


def test_the_page_holds_every_command_and_how_the_laws_were_judged() -> None:
    text = equations_section(batch(nine(8)), batch(nine(0), analysis=False), EquationTargets(), "2 processors")
    assert "evolvarium run symbolic_regression --all --seed 1 --commits 4 --no-analysis" in text
    assert "evolvarium task assess RUN\n" in text
    assert "| recovered laws | at least 8 of 9 | 8 | yes |" in text
    assert "In all: 8 exact, 1 not-recovered." in text
