"""What an orchestrator that is killed leaves behind."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from pathlib import Path

from orchestrator.errors import SandboxError
from orchestrator.sandbox.engine import Engine
from orchestrator.sandbox.owners import CONTAINER_KIND, KIND, RUN
from orchestrator.sandbox.sweep import sweep
from tests.bench import killed
from tests.bench.figures import Figure

ROOT = Path(__file__).parents[2]


def containers_after_a_kill(engine: Engine, home: Path, state: Path) -> Figure:
    """Kill -9 an orchestrator that has a pool and a running analysis; sweep once, and count.

    Raises:
        SandboxError: It did not come so far, or the engine failed.
    """
    run_id = f"killed-{secrets.token_hex(6)}"
    command = [sys.executable, "-m", killed.__name__, str(home), str(state), run_id]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline().strip() if process.stdout is not None else ""
        finally:
            process.kill()
    if said != killed.READY:
        msg = f"the orchestrator that was to be killed ended by itself with exit code {process.returncode}"
        raise SandboxError(msg)
    before = _count(engine, run_id)
    began = time.monotonic()
    sweep(engine)
    seconds = time.monotonic() - began
    return Figure(
        what="containers left after kill -9 of an orchestrator and one sweep",
        value=_count(engine, run_id),
        unit="containers",
        at_most=0,
        detail=f"{before} before the sweep, which took {seconds:.1f} s",
    )


def _count(engine: Engine, run_id: str) -> int:
    return len(engine.containers({KIND: CONTAINER_KIND, RUN: run_id}))
