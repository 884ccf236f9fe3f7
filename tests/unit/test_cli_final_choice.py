"""`--choice`, and what `show` and `report` call the best of a task that says how it is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.bootstrap.finals import pending
from orchestrator.errors import RunStateError
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.methods.agentic_evolve.final_choice import final_entry, rule_of
from orchestrator.search.final_choice import Rule
from orchestrator.storage.runs import RunStore
from tests.command_line import Ended
from tests.in_process import without_engine
from tests.recorded_equations import record_run

Call = Callable[..., Ended]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    run = without_engine(home, monkeypatch, capsys)
    return lambda *arguments: Ended(*run(*arguments))


@pytest.mark.parametrize(
    ("option", "rule", "best"),
    [
        ((), "exact", "i0-c02"),
        (("--choice", "paper"), "paper", "i0-c03"),
        (("--choice", "fitness"), "fitness", "i0-c03"),
    ],
)
def test_the_best_is_what_the_rule_takes(call: Call, home: Path, option: tuple[str, ...], rule: str, best: str) -> None:
    run_id = record_run(home, "CRK35")
    shown = call("show", run_id, *option, "--json").document
    assert (shown["choice"], shown["best"]["id"]) == (rule, best)
    assert call("show", run_id, "best", *option, "--json").document["id"] == best
    assert call("report", run_id, *option, "--json").document["runs"][0]["run"]["best"]["id"] == best
    assert f"{best}" in call("show", run_id, *option).out


@pytest.mark.parametrize(("option", "best"), [((), "i0-c02"), (("--choice", "fitness"), "i0-c03")])
def test_the_page_shows_the_one_that_the_rule_takes(
    call: Call, home: Path, tmp_path: Path, option: tuple[str, ...], best: str
) -> None:
    run_id, page = record_run(home, "CRK35"), tmp_path / "page.html"
    assert call("report", run_id, *option, "-o", str(page)).code == 0
    assert f'"best": "{best}"' in page.read_text() or f'"best":"{best}"' in page.read_text()


def test_the_final_candidate_is_measured_on_the_other_splits(home: Path) -> None:
    run_id = record_run(home, "CRK35")
    with RunStore(home).open(run_id, read_only=True) as journal:
        history = read_history(journal)
        assert rule_of(history) is Rule.EXACT
        assert [entry.id for _, _, entry in pending(journal, ["in_domain"])] == ["initial", "i0-c02"]
        assert final_entry(history, Rule.FITNESS) == history.best


def test_a_rule_that_the_task_has_no_metrics_for_is_refused(call: Call, home: Path) -> None:
    run_id = record_run(home, "CRK35")
    assert call("show", run_id, "--choice", "best").code == 2
    with RunStore(home).open(run_id, read_only=True) as journal:
        history = read_history(journal)
    history.header["task"].pop("final_choice")  # type: ignore[attr-defined] # what was read is ours
    with pytest.raises(Exception, match="declares no error and no size, which the rule 'paper' chooses by"):
        final_entry(history, Rule.PAPER)
    assert final_entry(history) == history.best


def test_a_damaged_record_is_named(home: Path) -> None:
    run_id = record_run(home, "CRK35")
    with RunStore(home).open(run_id, read_only=True) as journal:
        history = read_history(journal)
    history.header["task"]["final_choice"]["rule"] = "newest"
    with pytest.raises(RunStateError, match=r"task\.final_choice"):
        final_entry(history)
