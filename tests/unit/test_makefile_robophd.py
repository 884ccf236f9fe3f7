"""`make demo-robophd` shows people what it runs, in an order in which each command finds what it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = """#!/bin/bash
echo "$*" >> "$LOG"
while [ $# -gt 0 ]; do if [ "$1" = --run-id-file ]; then echo abc > "$2"; fi; shift; done
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_evolves_scores_exports_and_asks(tmp_path: Path) -> None:
    stub, place = tmp_path / "stub", tmp_path / "collections"
    stub.write_text(STUB)
    stub.chmod(0o755)
    place.mkdir()
    done = subprocess.run(
        ["make", "--old-file=images", "demo-robophd", f"EVOLVARIUM={stub}", f"COLLECTIONS={place}"],
        cwd=ROOT,
        # Not as a part of the `make` that may be running the tests.
        env={**{k: v for k, v in os.environ.items() if not k.startswith("MAKE")}, "LOG": str(tmp_path / "log")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    ran = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in ran] == ["sql", "final", "export", "answer"]
    assert ran[0].startswith(f"sql evolve --jsonl {place}/questions.jsonl --iterations 3 --seed 1 --run-id-file ")
    assert ran[1] == "final abc"
    shown = [line for line in done.stdout.splitlines() if line.startswith("$ evolvarium ")]
    assert shown[0] == f"$ evolvarium sql evolve --jsonl {place}/questions.jsonl --iterations 3 --seed 1"
    assert f"$ evolvarium export abc -o {place}/champion --force" in shown
    assert "sql evolve --replay abc" in done.stdout.splitlines()[-1]
