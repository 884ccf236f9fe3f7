"""Batches: showing, reporting and listing recorded ones, their names, and how their spending limits are shared."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.bootstrap.batch_records import BatchHeader, Member
from orchestrator.bootstrap.batches import family_members, share
from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.places import find_places
from orchestrator.domain.conversation import Usage
from orchestrator.errors import InputError
from orchestrator.storage.runs import RunStore
from tests.command_line import Ended
from tests.in_process import without_engine
from tests.recorded_equations import FAMILY, record_batch, record_run

MEMBERS = ("CRK35", "PO0", "PO1")

Call = Callable[..., Ended]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    run = without_engine(home, monkeypatch, capsys)
    return lambda *arguments: Ended(*run(*arguments))


def test_a_batch_is_shown_with_a_line_for_each_member(call: Call, home: Path) -> None:
    batch_id, runs = record_batch(home, MEMBERS, begun=2)
    document = call("show", batch_id, "--json").document
    assert (document["run"], document["family"], document["state"]) == (batch_id, FAMILY, "unfinished")
    assert [member["run"] for member in document["members"]] == [*runs, None]
    assert [member["state"] for member in document["members"]] == ["done", "done", "waiting"]
    assert document["members"][0]["best"]["id"] == "i0-c02"
    assert document["evaluations"] == 8
    table = call("show", batch_id).out
    assert all(f"{FAMILY}/{member}" in table for member in MEMBERS)
    assert "nmse, train" in table
    assert "2.126e-15" in table
    assert "3e-15" in table
    assert call("show", batch_id, "--choice", "paper", "--json").document["members"][0]["best"]["id"] == "i0-c03"


def test_a_batch_is_listed_and_is_the_latest_run_although_its_members_are_newer(call: Call, home: Path) -> None:
    other = record_run(home, "PO7")
    batch_id, runs = record_batch(home, MEMBERS, begun=3)
    entries = {entry["run"]: entry for entry in call("runs", "list", "--json").document["runs"]}
    assert set(entries) == {other, batch_id, *runs}
    assert (entries[batch_id]["task"], entries[batch_id]["method"]) == (FAMILY, "batch of 3")
    assert call("show", "latest", "--json").document["run"] == batch_id
    assert call("show", "previous", "--json").document["run"] == other
    assert call("show", batch_id, "--json").document["state"] == "done"


def test_a_member_whose_run_was_removed_is_missing(call: Call, home: Path) -> None:
    batch_id, runs = record_batch(home, MEMBERS, begun=2)
    RunStore(home).remove(runs[0])
    states = [member["state"] for member in call("show", batch_id, "--json").document["members"]]
    assert states == ["missing", "done", "waiting"]


def test_the_next_member_of_a_batch_that_is_worked_on_is_being_prepared(call: Call, home: Path) -> None:
    batch_id, _ = record_batch(home, MEMBERS, begun=1)
    with RunStore(home).open(batch_id):
        states = [member["state"] for member in call("show", batch_id, "--json").document["members"]]
    assert states == ["done", "preparing", "waiting"]


def test_a_report_has_the_table_and_a_folder_for_each_member(call: Call, home: Path, tmp_path: Path) -> None:
    batch_id, runs = record_batch(home, MEMBERS, begun=2)
    folder = tmp_path / "report"
    document = call("report", batch_id, "-o", str(folder), "--json").document
    assert all(Path(file).is_file() for file in document["files"])
    assert json.loads((folder / "report.json").read_text()) == document
    assert f"Batch {batch_id}" in (folder / "report.md").read_text()
    assert json.loads((folder / "CRK35" / "report.json").read_text())["runs"][0]["run"]["run"] == runs[0]
    assert call("report", batch_id, "-o", str(folder)).code == 2
    assert call("report", batch_id, "--json").document["batch"]["run"] == batch_id


@pytest.mark.parametrize("more", [("best",), ("--gold",), ("-o", "somewhere")])
def test_what_a_batch_has_not_is_refused(call: Call, home: Path, more: tuple[str, ...]) -> None:
    batch_id, _ = record_batch(home, MEMBERS, begun=1)
    ended = call("show", batch_id, *more)
    assert ended.code == 2
    assert "is a batch of searches" in ended.err


def test_a_batch_is_no_search_and_a_search_is_no_batch(call: Call, home: Path) -> None:
    batch_id, runs = record_batch(home, MEMBERS, begun=1)
    ended = call("report", batch_id, runs[0])
    assert ended.code == 2
    assert "is a batch of searches" in ended.err


def test_one_that_has_ended_is_resumed_to_the_same_table(call: Call, home: Path) -> None:
    batch_id, _ = record_batch(home, MEMBERS, begun=3)
    ended = call("resume", batch_id, "--json")
    assert ended.code == 0, ended.err
    assert ended.document == call("show", batch_id, "--json").document
    assert "is done already" in ended.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "online_bin_packing", "--all"), "'online_bin_packing' is no family of tasks"),
        (("run", FAMILY), "PO7; or run all with --all\n"),
        (("run", FAMILY, "--all", "--model", "replay/latest"), "leave out --all"),
    ],
)
def test_wrong_input_is_met_before_anything_is_kept(
    call: Call, home: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    ended = call(*arguments)
    assert ended.code == 2
    assert complaint in ended.err
    assert RunStore(home).list() == ()


def test_without_an_engine_nothing_is_kept_of_a_batch(call: Call, home: Path) -> None:
    ended = call("run", FAMILY, "--all")
    assert ended.code == 3
    assert RunStore(home).list() == ()


def test_a_family_is_named_or_given_as_a_folder(home: Path, tmp_path: Path) -> None:
    places = find_places(home, None)
    name, members = family_members(places, FAMILY)
    assert (name, len(members)) == (FAMILY, 12)
    assert all(places.task(member).is_dir() for member in members)
    folder = places.task(members[0]).parent
    assert [Path(member).name for member in family_members(places, str(folder))[1]] == [
        member.rpartition("/")[2] for member in members
    ]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "family.yaml").write_text("version: 1\ntitle: none\n")
    with pytest.raises(InputError, match="has no members yet"):
        family_members(places, str(tmp_path / "empty"))


@given(
    total=st.decimals(0, 1000, places=6),
    tokens=st.integers(0, 10**9),
    spending=st.lists(st.tuples(st.decimals(0, 1, places=6), st.floats(0, 1)), min_size=1, max_size=12),
)
def test_members_together_never_get_more_than_the_batch(
    total: Decimal, tokens: int, spending: list[tuple[Decimal, float]]
) -> None:
    names = tuple(f"m{number}" for number in range(len(spending)))
    choices = Choices(task="f", budget_usd=total, budget_tokens=tokens)
    header = BatchHeader(family="f", members=names, choices=choices, settings={})
    used: dict[str, Usage] = {}
    for number, (of_usd, of_tokens) in enumerate(spending):
        found = [
            Member(number=n + 1, task=name, run_id=name if name in used else None, end="done" if name in used else None)
            for n, name in enumerate(names)
        ]
        mine = share(header, found, used.__getitem__)
        assert mine.budget_usd is not None
        assert mine.budget_tokens is not None
        part = Usage(usd=mine.budget_usd * of_usd, output_tokens=int(mine.budget_tokens * of_tokens))
        used[names[number]] = part
    assert sum((one.usd or Decimal(0) for one in used.values()), Decimal(0)) <= total
    assert sum(one.tokens for one in used.values()) <= tokens


def test_what_a_member_leaves_goes_to_those_that_follow() -> None:
    choices = Choices(task="f", budget_usd=Decimal(3), budget_tokens=900)
    header = BatchHeader(family="f", members=("a", "b", "c"), choices=choices, settings={})
    found = [
        Member(number=1, task="a", run_id="a", end="done"),
        Member(number=2, task="b", run_id=None, end=None),
        Member(number=3, task="c", run_id=None, end=None),
    ]
    mine = share(header, found, lambda _: Usage(usd=Decimal("0.5"), input_tokens=100))
    assert (mine.budget_usd, mine.budget_tokens) == (Decimal("1.25"), 400)
