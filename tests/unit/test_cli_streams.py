"""Closed and full streams: never exit code 1, which says that the candidate failed, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.streams import Guarded
from orchestrator.errors import OutputError
from orchestrator.storage.runs import RunStore
from tests.command_line import COMMAND, ROOT


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("evolvarium evaluate nosuchtask P --json >/dev/full 2>&-", 2),
        ("evolvarium sandbox prune 2>/dev/full", 3),
        ("evolvarium runs remove latest <&-", 2),
        ("evolvarium runs list --json <&- >&- 2>&-", 0),
        ("evolvarium runs list --json >/dev/full", 6),
        ("evolvarium --help >/dev/full", 6),
        ("evolvarium --help | head -c 0", 0),
    ],
)
def test_a_stream_that_is_closed_or_full_never_looks_like_a_failed_candidate(
    tmp_path: Path, line: str, code: int
) -> None:
    if "remove" in line:
        RunStore(tmp_path).create()[1].close()
    done = _shell(tmp_path, line)
    assert done.returncode == code, done.stderr
    for word in ("Traceback", "unexpected", "Exception ignored"):
        assert word not in done.stderr
    if code == OutputError.exit_code:
        assert "cannot write to stdout: No space left on device" in done.stderr
    if "remove" in line:
        assert "confirm it with --yes" in done.stderr


def test_notes_that_cannot_be_written_are_dropped_and_a_result_is_an_error_once() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        notes, result = Guarded(full, is_result=False), Guarded(full, is_result=True)
        assert notes.write(b"note") == 4
        with pytest.raises(OutputError, match="No space left"):
            result.write(b"result")
        assert result.write(b"rest") == 4
    finally:
        os.close(full)


def test_what_nobody_reads_is_dropped() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert Guarded(writer, is_result=True).write(b"result") == 6
    finally:
        os.close(writer)


def _shell(home: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which `evolvarium` is the command, and no engine answers."""
    environment = {
        **os.environ,
        "EVOLVARIUM_HOME": str(home),
        "DOCKER_HOST": "unix:///nonexistent/engine.sock",
        "PYTHON": sys.executable,
        "CODE": COMMAND[2],
        "PYTHONPATH": str(ROOT),
    }
    script = f'evolvarium() {{ "$PYTHON" -c "$CODE" "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
