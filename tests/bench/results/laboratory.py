"""Makes the measured runs with the command line, each once, and keeps their records."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.terminal import Terminal
from orchestrator.errors import EvolvariumError
from tests.bench.results.plan import PlannedRun
from tests.bench.results.records import (
    AssessmentRecord,
    BatchRecord,
    EvolutionRecord,
    FinalRecord,
    R,
    Record,
    Records,
    SqlRecord,
)

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """Makes runs, each once."""

    home: Path
    again: bool
    terminal: Terminal

    @property
    def runs(self) -> Records[Record]:
        """Finished searches."""
        return self._records(Record)

    @property
    def benches(self) -> Records[SqlRecord]:
        """Finished benches of Text-to-SQL."""
        return self._records(SqlRecord)

    def run(self, planned: PlannedRun) -> Record:
        """The record of a search, which is made now if there is none.

        Raises:
            EvolvariumError: It failed; those before it are kept.
        """
        return self._measured(planned, self.runs)

    def bench(self, planned: PlannedRun) -> SqlRecord:
        """Likewise of a bench; one whose gold queries disagree with themselves is a result, too."""
        return self._measured(planned, self.benches, accepted=(0, 1))

    def evolution(self, planned: PlannedRun) -> EvolutionRecord:
        """Likewise of an evolution of packages."""
        return self._measured(planned, self._records(EvolutionRecord))

    def batch(self, planned: PlannedRun) -> BatchRecord:
        """Likewise of a batch of searches."""
        return self._measured(planned, self._records(BatchRecord))

    def final(self, planned: PlannedRun, run_id: str) -> FinalRecord:
        """The final scores of an evolution; those of an earlier one do not count."""
        return self._measured(planned, self._records(FinalRecord), is_of=lambda one: one.document.run == run_id)

    def assessment(self, planned: PlannedRun, batch_id: str) -> AssessmentRecord:
        """What the task's own code says of the final candidates of a batch; that of an earlier one does not count."""
        records = self._records(AssessmentRecord)
        return self._measured(planned, records, is_of=lambda one: one.document.batch == batch_id)

    def _records(self, kind: type[R]) -> Records[R]:
        return Records(self.home / "results", kind)

    def _measured(
        self,
        planned: PlannedRun,
        records: Records[R],
        *,
        accepted: Sequence[int] = (0,),
        is_of: Callable[[R], bool] = lambda _: True,
    ) -> R:
        record = None if self.again else records.find(planned.arguments)
        if record is not None and is_of(record):
            self.terminal.note(f"kept: {planned.command}")
            return record
        self.terminal.note(f"running: {planned.command}")
        printed, seconds = _made(planned, self.home, accepted=accepted)
        record = records.kind.model_validate(
            {
                "arguments": planned.arguments,
                "version": _version(),
                "wall_seconds": seconds,
                "document": json.loads(printed),
            }
        )
        records.keep(record)
        return record


def _made(planned: PlannedRun, home: Path, *, accepted: Sequence[int]) -> tuple[bytes, float]:
    """What a command printed last, and its wall time in seconds; its progress goes to stderr.

    Raises:
        EvolvariumError: It failed; it has said why.
    """
    program = str(Path(sys.executable).with_name("evolvarium"))
    command = [program, *planned.verb, *planned.argv(), "--json", "--home", str(home)]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            printed, _ = process.communicate()
        except BaseException:  # an interrupt reaches the run, too, and it needs time to remove its containers
            process.wait()
            raise
    seconds = time.monotonic() - began
    if process.returncode not in accepted:
        code = process.returncode
        msg = f"`{planned.command}` ended with exit code {code}; start again when it is mended, what is done is kept"
        raise EvolvariumError(msg)
    return printed.splitlines()[-1], seconds


def _version() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"commit {done.stdout.strip()}"
