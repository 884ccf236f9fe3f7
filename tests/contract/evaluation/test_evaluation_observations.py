"""What is made of lines that a tool's own process has told of its doings, whatever they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.tool_runs import ToolObservation
from orchestrator.evaluation.tool_claims import parse_observation

ENTRIES: list[Mapping[str, Any]] = [
    {"type": "import", "text": "socket"},
    {"type": "open", "text": "r a"},
    {"type": "open", "text": "r a"},
    {"type": "sql", "text": "SELECT\n1"},
    {"type": "event", "text": "os.fork", "count": 4},
    {"type": "event", "text": "os.fork", "count": 2},
    {"type": "omitted", "count": 8},
]


def test_an_observation_is_read_as_it_was_told() -> None:
    raw = b"".join(json.dumps(entry).encode() + b"\n" for entry in ENTRIES)
    assert parse_observation(raw) == ToolObservation(
        imports=("socket",), opened=("r a",), sql=("SELECT\n1",), events={"os.fork": 4}, omitted=8
    )


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 5000, b"\xff", b'"import"', b'{"type": "import"}', b'{"type": "import", "text": 1}',
        b'{"type": "event", "text": "x", "count": 0}', b'{"type": "event", "text": "x", "count": 1e999}',
        b'{"type": "event", "text": "x", "count": -5}', b'{"type": "import", "text": "a", "text": "b"}',
        b'{"type": "import", "text": "' + b"x" * 401 + b'"}', b'{"type": "sql", "text": "' + b"x" * 2001 + b'"}',
        b'{"type": "import", "text": "\\ud800"}', b'{"type": "verdict", "text": "fine"}', b'{"type": "import", "te',
    ],
)  # fmt: skip
def test_what_is_no_entry_of_an_observation_is_counted(line: bytes) -> None:
    assert parse_observation(b'{"type": "import", "text": "a"}\n' + line) == ToolObservation(imports=("a",), omitted=1)


def test_an_observation_is_bounded() -> None:
    many = b"".join(b'{"type": "%s", "text": "%d", "count": 1}\n' % (kind, n) for n in range(600) for kind in (
        b"import", b"open", b"sql", b"event",
    ))  # fmt: skip
    found = parse_observation(many)
    assert {len(found.imports), len(found.opened), len(found.sql), len(found.events), found.omitted} == {500, 400}
    assert parse_observation(b"x\n" * 30_000).omitted == 20_001


@given(st.binary(max_size=500))
def test_any_bytes_are_an_observation(raw: bytes) -> None:
    assert parse_observation(raw).omitted <= raw.count(b"\n") + 1
