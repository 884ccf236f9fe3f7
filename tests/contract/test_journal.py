"""What every journal promises, for each adapter of the port."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import RunStateError
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken, WorkerGroup
from orchestrator.storage.journal import SqliteJournal, canonical_json, check_key
from orchestrator.storage.scoped_journal import ScopedJournal


class MemoryJournal:
    """The port in its simplest form: what the contract says, and no more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, str] = {}
        self._blobs: dict[str, bytes] = {}

    def get(self, key: str) -> Mapping[str, Any] | None:
        """See `ports.Journal`."""
        text = self._records.get(key)
        return None if text is None else json.loads(text)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """See `ports.Journal`."""
        check_key(key)
        text = canonical_json(key, record)
        with self._lock:
            if key in self._records:
                msg = f"step {key!r} has a record already"
                raise RunStateError(msg)
            self._records[key] = text

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """See `ports.Journal`."""
        with self._lock:
            found = [(key, text) for key, text in self._records.items() if key.startswith(prefix)]
        return iter([(key, json.loads(text)) for key, text in found])

    def put_blob(self, content: bytes) -> str:
        """See `ports.Journal`."""
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        self._blobs[digest] = content
        return digest

    def get_blob(self, digest: str) -> bytes:
        """See `ports.Journal`."""
        try:
            return self._blobs[digest]
        except KeyError as error:
            msg = f"there is no content with digest {digest!r}"
            raise RunStateError(msg) from error


@pytest.fixture(params=["memory", "sqlite", "scoped"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    if request.param == "memory":
        yield MemoryJournal()
    elif request.param == "scoped":
        shared = MemoryJournal()
        ScopedJournal(shared, "d2/").put("run", {"of": "another scope"})
        yield ScopedJournal(shared, "d1/")
    else:
        with SqliteJournal(tmp_path / "journal.sqlite") as journal:
            yield journal


shared_journal = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
texts = st.text(st.characters(), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(texts, children, max_size=4),
    max_leaves=12,
)
records = st.dictionaries(texts, values, max_size=5)


@given(record=records)
@shared_journal
def test_a_record_comes_back_as_it_was_written(journal: Journal, record: dict[str, Any]) -> None:
    key = f"step/{sum(1 for _ in journal.records())}"
    assert journal.get(key) is None
    journal.put(key, record)
    assert journal.get(key) == record
    assert list(journal.records())[-1] == (key, record)


@given(content=st.binary(max_size=5000))
@shared_journal
def test_content_comes_back_by_its_digest_however_often_it_was_stored(journal: Journal, content: bytes) -> None:
    digest = journal.put_blob(content)
    assert digest == "sha256:" + hashlib.sha256(content).hexdigest()
    assert journal.put_blob(content) == digest
    assert journal.get_blob(digest) == content


def test_a_key_is_written_once(journal: Journal) -> None:
    journal.put("run", {"seed": 1})
    with pytest.raises(RunStateError, match="run' has a record already"):
        journal.put("run", {"seed": 2})
    assert journal.get("run") == {"seed": 1}
    journal.put("next", {})
    assert [key for key, _ in journal.records()] == ["run", "next"]


def test_records_come_in_the_order_of_writing_and_by_prefix(journal: Journal) -> None:
    keys = ["run", "i1/request/0002", "i1/request/0001", "i10/request/0001", "i1/commit/c01", "I1/x", "i1_request/1"]
    for number, key in enumerate(keys):
        journal.put(key, {"n": number})
    assert [key for key, _ in journal.records()] == keys
    assert [key for key, _ in journal.records("i1/")] == ["i1/request/0002", "i1/request/0001", "i1/commit/c01"]
    assert [record for _, record in journal.records("i1/request/")] == [{"n": 1}, {"n": 2}]
    assert list(journal.records("i2")) == []
    assert list(journal.records("%")) == []


def test_long_journals_are_listed_whole(journal: Journal) -> None:
    for number in range(200):
        journal.put(f"{'even' if number % 2 == 0 else 'odd'}/{number}", {"n": number})
    assert [record["n"] for _, record in journal.records()] == list(range(200))
    assert [record["n"] for _, record in journal.records("odd/")] == list(range(1, 200, 2))


def test_an_iteration_does_not_see_what_is_written_meanwhile(journal: Journal) -> None:
    journal.put("a", {})
    seen = []
    for key, _ in journal.records():
        seen.append(key)
        journal.put(f"{key}x", {})
    assert seen == ["a"]


def test_records_that_are_not_json_are_refused_and_not_written(journal: Journal) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    for record in ({"x": float("nan")}, {"x": float("inf")}, {"x": b"bytes"}, {"x": object()}, endless):
        with pytest.raises(ValueError, match="a' is not JSON"):
            journal.put("a", record)
    assert journal.get("a") is None


@pytest.mark.parametrize("key", ["", "/a", "a b", "a\n", "ä", "a" * 201, "../a", "a\x00"])
def test_malformed_keys_are_refused(journal: Journal, key: str) -> None:
    with pytest.raises(ValueError, match="is malformed"):
        journal.put(key, {})


def test_content_that_nobody_stored_is_an_error(journal: Journal) -> None:
    with pytest.raises(RunStateError, match="sha256:0000"):
        journal.get_blob("sha256:" + "0" * 64)
    with pytest.raises(RunStateError, match="nonsense"):
        journal.get_blob("nonsense")


def test_one_of_many_writers_of_a_key_wins_and_the_others_are_told(journal: Journal) -> None:
    outcomes: list[str] = []

    def write(name: int) -> None:
        for step in range(10):
            try:
                journal.put(f"step/{step}", {"by": name})
                outcomes.append("won")
            except RunStateError:
                outcomes.append("told")
            journal.put_blob(b"same")
            journal.put(f"own/{name}/{step}", {})

    with WorkerGroup("writers", limit=4, token=CancelToken()) as group:
        for name in range(4):
            group.spawn(str(name), lambda n=name: write(n))
    assert outcomes.count("won") == 10
    assert outcomes.count("told") == 30
    assert len(list(journal.records())) == 50
