"""Real gold queries give through the service what plain SQLite gives: no limit here changes a result."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.sql import Cell, QueryStatus

if TYPE_CHECKING:
    from conftest import Serve

DATA = Path(os.environ.get("EVOLVARIUM_DATA") or Path(__file__).parents[4] / "shared" / "data")


@pytest.mark.parametrize(
    ("data_set", "databases", "key"), [("spider", "database", "query"), ("bird", "dev_databases", "SQL")]
)
def test_no_gold_result_differs(serve_sql: Serve, data_set: str, databases: str, key: str) -> None:
    if not (DATA / data_set / "dev.json").is_file():
        pytest.skip(f"no data at {DATA / data_set}; set EVOLVARIUM_DATA")
    questions: list[Mapping[str, Any]] = json.loads((DATA / data_set / "dev.json").read_bytes())
    by_database: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        by_database[question["db_id"]].append(question[key])
    for name, queries in by_database.items():
        path = DATA / data_set / databases / name / f"{name}.sqlite"
        service = serve_sql(path, query_seconds=30.0, max_rows=100_000, max_bytes=16 << 20)
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as plain:
            plain.text_factory = as_text
            for query in queries:
                answered = service.query(query)
                assert answered.status is QueryStatus.OK, (query, answered.message)
                assert [tuple(map(as_stored, row)) for row in answered.rows] == plain.execute(query).fetchall(), query


def as_text(raw: bytes) -> tuple[str, bytes]:
    """Text that is no blob."""
    return "text", raw


def as_stored(cell: Cell) -> object:
    if isinstance(cell, str):
        return as_text(cell.encode())
    return cell if cell is None or isinstance(cell, (int, float, bytes)) else as_text(cell.raw)
