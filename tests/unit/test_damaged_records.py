"""Whatever a journal's records hold, commands say what is wrong with which run and never fall over it."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from orchestrator.cli.main import execute
from orchestrator.errors import EvolvariumError
from orchestrator.evaluation.tasks import load_task
from orchestrator.storage.runs import RunStore
from tests.command_line import ROOT
from tests.recorded_runs import Recording

GONE = object()
ODD = (GONE, None, 10**30, -1, 1.5, True, "", "x", [], {}, [None], {"": 0})
"""What stands in the place of a part of a record; GONE: nothing does."""
Call = Callable[..., tuple[int, str, str]]
Place = tuple[str, tuple[str | int, ...]]


@dataclass(frozen=True, kw_only=True)
class Home:
    """A home with one sound run and one whose records are changed."""

    path: Path
    recording: Recording
    sound: str
    odd: str
    records: dict[str, Any]
    """Of the run that is changed, as they were."""

    @property
    def journal(self) -> Path:
        """Of the run that is changed."""
        return self.path / "runs" / self.odd / "journal.sqlite"

    def change(self, place: Place, value: object) -> None:
        """Put a value, and nothing else, into a record, with a digest that fits."""
        for suffix in ("-wal", "-shm"):
            self.journal.with_name(self.journal.name + suffix).unlink(missing_ok=True)
        shutil.copyfile(self.path / "kept", self.journal)
        key, parts = place
        text = json.dumps(_changed(self.records[key], parts, value), separators=(",", ":"))
        digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        with sqlite3.connect(self.journal) as database:
            database.execute("UPDATE records SET record = ?, digest = ? WHERE key = ?", [text, digest, key])
        database.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    path = tmp_path_factory.mktemp("home")
    recording = Recording.of(path, load_task(ROOT / "tasks" / "online_bin_packing"), analysis=True, interval=1)
    sound, odd = recording.made(), recording.made()
    with RunStore(path).open(odd, read_only=True) as journal:
        records = {key: dict(record) for key, record in journal.records()}
    shutil.copyfile(path / "runs" / odd / "journal.sqlite", path / "kept")
    return Home(path=path, recording=recording, sound=sound, odd=odd, records=records)


@pytest.fixture
def call(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("EVOLVARIUM_HOME", str(home.path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


FOUND = {
    "a huge number for a digest": (("i0/commit/c01", ("files", "program.py")), 10**30),
    "nothing for the parents": (("i0/commit/c01", ("parents",)), None),
    "an empty parent": (("i0/commit/c01", ("parents", 0)), ""),
    "a parent that is not there": (("i0/commit/c01", ("parents", 0)), "i7-c99"),
    "no fitness": (("i0/commit/c01", ("verdict", "metrics")), {"excess_percent": 1.0}),
    "a candidate shown that is not there": (("i0/migration/01", ("shown",)), ["i7-c99"]),
    "a negative price": (("i0/request/0001", ("reply", "usage", "usd")), "-1"),
    "no number for a price": (("i0/request/0001", ("reply", "usage", "usd")), "NaN"),
    "no analysis": (("i0/analysis/0001", ("result",)), GONE),
}


@pytest.mark.parametrize(("place", "value"), FOUND.values(), ids=FOUND)
def test_what_cannot_have_been_recorded_is_a_problem_of_its_run_alone(
    home: Home, call: Call, place: Place, value: object
) -> None:
    home.change(place, value)
    listed = json.loads(call("runs", "list", "--json")[1])["runs"]
    problems = {entry["run"]: entry["problem"] for entry in listed}
    assert problems[home.sound] is None
    assert place[0] in problems[home.odd]
    assert call("show", home.odd)[0] == 2
    assert call("report", home.sound, home.odd)[0] == 2


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chance=st.randoms(use_true_random=True))
def test_no_change_of_a_record_is_more_than_an_error_of_ours(home: Home, call: Call, chance: Random) -> None:
    key = chance.choice(sorted(home.records))
    place = key, chance.choice(list(_places(home.records[key])))
    value = chance.choice(ODD)
    note(f"{value!r} at {place}")
    home.change(place, value)
    code, out, err = call("runs", "list", "--json")
    assert code == 0, err
    assert {entry["run"] for entry in json.loads(out)["runs"]} >= {home.sound, home.odd}
    for arguments in (["show", home.odd], ["show", home.odd, "best", "--json"], ["report", home.odd, home.sound]):
        code, _, err = call(*arguments)
        assert code in (0, 2), (place, err)
        assert "unexpected" not in err
    _require_ours(lambda: _go_on(home))


def test_a_replay_of_damaged_records_is_no_more_than_an_error_of_ours(home: Home, call: Call) -> None:
    for found in ("nothing for the parents", "no fitness", "no number for a price"):
        home.change(*FOUND[found])
        code, _, err = call("run", "online_bin_packing", "--model", f"replay/{home.odd}")
        assert code in (0, 2, 5), err
        assert "unexpected" not in err


def _go_on(home: Home) -> None:
    with RunStore(home.path).open(home.odd) as journal:
        home.recording.go_on(home.odd, journal)


def _require_ours(act: Callable[[], None]) -> None:
    try:
        act()
    except EvolvariumError as error:
        assert str(error)  # noqa: PT017 - anything else than one of ours fails the test
    except ExceptionGroup as failures:
        assert failures.split(EvolvariumError)[1] is None  # noqa: PT017


def _places(value: object, before: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Ways to all parts of a record, but not to itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield (*before, name)
        yield from _places(part, (*before, name))


def _changed(record: Any, parts: tuple[str | int, ...], value: object) -> Any:
    changed = deepcopy(record)
    owner = changed
    for part in parts[:-1]:
        owner = owner[part]
    if value is GONE:
        del owner[parts[-1]]
    else:
        owner[parts[-1]] = value
    return changed
