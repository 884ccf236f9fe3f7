"""How long an agent waits until its experiment runs, and how many experiments this machine can run."""

from __future__ import annotations

import statistics
import time

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Purpose
from orchestrator.errors import SandboxError
from orchestrator.evaluation.analyst import SCRIPT, SandboxAnalyst
from orchestrator.ports import AnalysisResult
from orchestrator.runtime.workers import spawn
from tests.bench.figures import Figure
from tests.bench.workbench import Workbench

FIRST_INSTRUCTION_MS = 30.0
_STAMP = b"import time\nnow = time.monotonic_ns()\nprint(now, flush=True)\n"
_NOTHING = b"print(1)\n"
_JOIN_SECONDS = 300.0


def first_instruction(bench: Workbench, samples: int) -> Figure:
    """Time from the call to the moment that the script itself reads off the clock it shares with this process."""
    request = bench.request(Purpose.ANALYSIS)
    analyst = SandboxAnalyst(bench.sandbox, bench.task)
    bench.sandbox.warm(request, 1)
    waits = []
    for _ in range(samples):
        bench.await_pool(request)
        waits.append(_wait_ms(analyst, bench))
    bench.sandbox.warm(request, 0)
    detail = f"median of {samples} ({min(waits):.1f} to {max(waits):.1f} ms)"
    return Figure(
        what="from `run this analysis` to its first instruction, pool warm",
        value=statistics.median(waits),
        unit="ms",
        at_most=FIRST_INSTRUCTION_MS,
        detail=detail,
    )


def containers_per_minute(bench: Workbench, seconds: float, workers: int) -> Figure:
    """Analyses in containers made for them, used and removed, by so many callers at once, without a pool."""
    analyst = SandboxAnalyst(bench.sandbox, bench.task)
    _analysed(analyst, bench, _NOTHING)
    began = time.perf_counter()

    def use() -> int:
        count = 0
        while time.perf_counter() < began + seconds:
            _analysed(analyst, bench, _NOTHING)
            count += 1
        return count

    busy = [spawn(f"bench-{number}", use) for number in range(workers)]
    for worker in busy:
        worker.join(seconds + _JOIN_SECONDS)
    elapsed = time.perf_counter() - began
    count = sum(worker.result() for worker in busy)
    return Figure(
        what="containers created, used once and removed, sustained",
        value=60 * count / elapsed,
        unit="per minute",
        detail=f"{count} analyses in {elapsed:.1f} s by {workers} callers, no pool",
    )


def _wait_ms(analyst: SandboxAnalyst, bench: Workbench) -> float:
    began = time.monotonic_ns()
    stamp = int(_analysed(analyst, bench, _STAMP).output)
    if not began <= stamp <= time.monotonic_ns():
        msg = "the clock in the container is not this machine's; measure under runc"
        raise SandboxError(msg)
    return (stamp - began) / 1e6


def _analysed(analyst: SandboxAnalyst, bench: Workbench, script: bytes) -> AnalysisResult:
    result = analyst.analyse(FileTree({SCRIPT: script}), run_id=bench.run_id, attempt_id="bench")
    if result.outcome.ending is not Ending.OK:
        msg = f"an analysis that only prints ended with {result.outcome.ending.value}: {result.outcome.detail}"
        raise SandboxError(msg)
    return result
