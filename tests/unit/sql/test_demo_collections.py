"""The demo's collections: enough databases for an evolution, and gold queries that give something."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.sql.datasets.jsonl import load_jsonl
from orchestrator.sql.demo.collections import COLLECTIONS, write_collections
from orchestrator.sql.gate import check


def test_every_gold_query_passes_the_gate_and_gives_rows(tmp_path: Path) -> None:
    dataset = load_jsonl(write_collections(tmp_path / "collections"))
    assert set(dataset.databases) == set(COLLECTIONS)
    assert len(dataset.questions) == 6 * len(COLLECTIONS)
    assert dataset.orphans == ()
    for question in dataset.questions:
        assert question.gold is not None
        with closing(sqlite3.connect(dataset.databases[question.database])) as connection:
            assert connection.execute(check(question.gold).text).fetchall(), question.id


def test_the_same_files_every_time_and_never_over_what_is_there(tmp_path: Path) -> None:
    one, other = write_collections(tmp_path / "a"), write_collections(tmp_path / "b")
    assert one.read_bytes() == other.read_bytes()
    for name in COLLECTIONS:
        assert (tmp_path / "a" / f"{name}.sqlite").read_bytes() == (tmp_path / "b" / f"{name}.sqlite").read_bytes()
    with pytest.raises(InputError, match="choose a new folder"):
        write_collections(tmp_path / "a")
