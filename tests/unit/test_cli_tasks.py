"""Names of tasks on the command line, checks of families, and what `task new` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.evaluation.new_task import new_task
from tests.in_process import Call, without_engine


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(tmp_path / "home", monkeypatch, capsys)


def test_close_names_of_tasks_are_suggested_first(call: Call) -> None:
    told = call("run", "online_binpacking")[2]
    assert "no task 'online_binpacking'; did you mean 'online_bin_packing'? it is neither a known task (" in told
    assert "did you mean 'symbolic_regression/PO1'? it is neither" in call("run", "po1")[2]
    assert "online_bin_packing, symbolic_regression/...) nor" in call("run", "nothing_like_it")[2]


@pytest.mark.parametrize("name", ["coolin", "./coolin"])
def test_a_task_in_the_working_directory_is_suggested(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    new_task(tmp_path, "cooling")
    monkeypatch.chdir(tmp_path)
    assert "did you mean './cooling'?" in call("task", "check", name)[2]


def test_a_family_is_checked_member_by_member(call: Call) -> None:
    code, out, _ = call("task", "check", "symbolic_regression", "--json")
    assert code == 0
    assert len(json.loads(out)["tasks"]) == 12
    assert call("task", "check", "symbolic_regression")[1].count("is well formed") == 12


def test_a_member_that_is_not_well_formed_is_told_among_the_others(call: Call, tmp_path: Path) -> None:
    family = tmp_path / "curves"
    new_task(family, "one")
    (family / "family.yaml").write_text("version: 1\ntitle: Curves\n")
    (family / "two").mkdir()
    (family / "two" / "task.yaml").write_text("title: Two\n")
    code, out, _ = call("task", "check", str(family), "--json")
    assert (code, [task["name"] for task in json.loads(out)["tasks"]]) == (2, ["curves/one", "curves/two"])


def test_only_run_has_advice_on_running_all_members(call: Call) -> None:
    assert call("run", "symbolic_regression")[2].endswith("; or run all with --all\n")
    told = call("estimate", "run", "symbolic_regression")[2]
    assert "name one of its members: symbolic_regression/BPG18, " in told
    assert "--all" not in told
    assert "did you mean" not in told


def test_a_folder_that_was_made_for_a_new_task_is_told(call: Call, tmp_path: Path) -> None:
    assert "did not exist and was made" in call("task", "new", "one", "--into", str(tmp_path / "new"))[2]
    assert "did not exist" not in call("task", "new", "two", "--into", str(tmp_path / "new"))[2]
