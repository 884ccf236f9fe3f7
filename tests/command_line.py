"""The command line in processes of its own, as users start it, with a home that shares the images of all tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.storage.runs import RunStore

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-c", "from orchestrator.cli.main import main; main()")
SECONDS = 240


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The last line of stdout."""
        document: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return document


@dataclass(frozen=True)
class CommandLine:
    """Commands with one home."""

    home: Path

    @classmethod
    def beside(cls, home: Path, folder: Path) -> CommandLine:
        """With a home in `folder` that knows the images and proofs of another home."""
        for name in ("images.lock.json", "proofs.json"):
            if (home / name).exists():
                shutil.copy(home / name, folder / name)
        return cls(folder)

    def call(self, *arguments: str, folder: Path | None = None, **environment: str) -> Ended:
        """Run a command to its end, in a folder or where the tests run."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=folder,
            env=self._environment(**environment),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def killed_at(self, records: int, *arguments: str) -> str:
        """Begin a command and kill it, without any warning, once its run has this many records; gives the run."""
        process = self.start(*arguments)
        run_id = arguments[1] if arguments[0] == "resume" else self.new_run(process)
        wait_until(process, lambda: len(self.records(run_id)) >= records)
        process.kill()
        process.communicate(timeout=SECONDS)
        return run_id

    def new_run(self, process: subprocess.Popen[str]) -> str:
        """The run that a command makes, once it has begun."""
        known = {run for run in self.runs() if self.records(run)}
        found: set[str] = set()

        def has_begun() -> bool:
            found.update(run for run in set(self.runs()) - known if self.records(run))
            return bool(found)

        wait_until(process, has_begun)
        return found.pop()

    def runs(self) -> list[str]:
        """Ids of all runs that can be read."""
        return [info.id for info in RunStore(self.home).list() if info.created_at is not None]

    def records(self, run_id: str) -> dict[str, Any]:
        """What the journal of a run holds, by key."""
        with RunStore(self.home).open(run_id, read_only=True) as journal:
            return dict(journal.records())

    def _environment(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        return {**os.environ, "EVOLVARIUM_HOME": str(self.home), "PYTHONPATH": path, **more}


def wait_until(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Wait while a process runs, until something holds."""
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)
