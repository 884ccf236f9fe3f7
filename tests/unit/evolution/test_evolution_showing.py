"""What `show`, `runs list` and `runs remove` do with an evolution."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.documents import RunsDocument
from orchestrator.cli.run_entries import run_entry, runs_rows
from tests.in_process import Call, without_engine
from tests.recorded_evolution import SETTINGS, RecordedEvolutions


@pytest.fixture(scope="module")
def evolutions(tmp_path_factory: pytest.TempPathFactory) -> RecordedEvolutions:
    return RecordedEvolutions(tmp_path_factory.mktemp("evolutions"), canary="x-canary")


@pytest.fixture(scope="module")
def run_id(evolutions: RecordedEvolutions) -> str:
    return evolutions.made()


@pytest.fixture
def call(evolutions: RecordedEvolutions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(evolutions.home, monkeypatch, capsys)


def test_show_prints_a_package_with_files_parents_and_accuracy_by_database(run_id: str, call: Call) -> None:
    code, out, _ = call("show", run_id, "p02", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["package"]["parents"] == ["naive"]
    assert {file["path"] for file in document["files"]} >= {"agent.json", "eval_instructions.md", "tools/analyze.py"}
    assert {one["purpose"] for one in document["databases"]} == {"evolve", "select"}
    champion = json.loads(call("show", run_id, "--json")[1])["champion"]
    best = json.loads(call("show", run_id, "best", "--json")[1])
    assert (best["package"]["id"], best["is_champion"]) == (champion, True)
    assert "x-canary" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-o", "x"), "`evolvarium export RUN -o DIR` writes a package"),
        (("p02", "-o", "x"), "`evolvarium export RUN --agent p02 -o DIR`"),
        (("best", "-o", "x"), "`evolvarium export RUN -o DIR`"),
        (("p99",), "the run has no package 'p99'; there are naive, p02"),
        (("--gold",), "is an evolution of packages, which has nothing of the kind; leave out --gold"),
        (("--questions", "failed"), "leave out --questions"),
    ],
)
def test_show_says_the_way_out_of_what_an_evolution_has_not(
    run_id: str, call: Call, arguments: tuple[str, ...], told: str
) -> None:
    code, _, err = call("show", run_id, *arguments)
    assert code == 2
    assert told.replace("RUN", run_id) in err


def test_a_package_that_is_not_there_yet_or_came_to_nothing_is_said_to_be_so(
    evolutions: RecordedEvolutions, run_id: str, call: Call
) -> None:
    kept = ("run", "q/", "it/01/", "package/naive", "it/02/plan")
    with evolutions.store.open(run_id, read_only=True) as source:
        records = {key: dict(record) for key, record in source.records() if key.startswith(kept)}
        records = {key: record for key, record in records.items() if not key.startswith("run/")}
        blobs = [source.get_blob(digest) for digest in records["package/naive"]["files"].values()]
    unfinished, journal = evolutions.store.create()
    with journal:
        for content in blobs:
            journal.put_blob(content)
        for key, record in records.items():
            journal.put(key, record)
    code, _, err = call("show", unfinished, "p02")
    assert code == 2
    assert f"package 'p02' is being made in iteration 2 of run {unfinished}" in err
    assert f"`evolvarium resume {unfinished}` goes on" in err
    assert "the run has no package 'p03'; there are naive" in call("show", unfinished, "p03")[2]
    with evolutions.store.open(unfinished) as journal:
        journal.put("it/02/evolve/end", {"package": None, "failure": "it said nothing", "requests": 3})
    told = call("show", unfinished, "p02")[2]
    assert "there is no package 'p02': the evolution of iteration 2 failed: it said nothing" in told
    evolutions.store.remove(unfinished)


def test_runs_are_listed_by_their_champion_and_can_be_removed(evolutions: RecordedEvolutions, call: Call) -> None:
    extra = evolutions.made(SETTINGS.model_copy(update={"iterations": 1}))
    code, out, _ = call("runs", "list", "--json")
    (entry,) = [one for one in json.loads(out)["runs"] if one["run"] == extra]
    assert code == 0
    assert (entry["method"], entry["state"], entry["questions"]) == ("sql evolve", "done", 21)
    assert (entry["accuracy_of"], entry["methods"]) == ("naive", None)
    assert 0 < entry["accuracy"] < 1
    assert call("runs", "remove", extra, "--yes")[0] == 0
    assert extra not in call("runs", "list")[1]


def test_the_list_says_what_an_accuracy_is_of(evolutions: RecordedEvolutions, run_id: str) -> None:
    info = next(info for info in evolutions.store.list() if info.id == run_id)
    rows = runs_rows(RunsDocument(runs=[run_entry(evolutions.store, info)]))
    assert str(rows.rows[0][8]).endswith(" % on selection")
