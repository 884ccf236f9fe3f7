"""`make demo` shows people what it runs, and nothing of the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = """#!/bin/bash
echo "ran $*" >> "$LOG"
while [ $# -gt 0 ]; do if [ "$1" = --run-id-file ]; then basename "$2" > "$2"; fi; shift; done
echo '{"run": "json"}'
echo "a table" >&2
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_prints_its_commands_and_ends_with_what_to_do_next(tmp_path: Path) -> None:
    stub = tmp_path / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)
    done = subprocess.run(
        ["make", "--old-file=images", "demo", f"EVOLVARIUM={stub}", "DEMO_ARGS=some_task --seed 1"],
        cwd=ROOT,
        # Not as a part of the `make` that may be running the tests.
        env={**{k: v for k, v in os.environ.items() if not k.startswith("MAKE")}, "LOG": str(tmp_path / "log")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert "$ evolvarium run some_task --seed 1 --no-analysis" in lines
    assert [line for line in lines if line.startswith("+")] == []
    assert lines.count('{"run": "json"}') == 1, "of `report` alone"
    assert "show with best" in lines[-2]
    assert "report with without -o report" in lines[-1]
    assert len((tmp_path / "log").read_text().splitlines()) == 3
