"""What a formal evaluation costs, against the same work in one plain process, measured side by side."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from orchestrator.domain.policies import MountRole, Policy, Purpose
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import EvaluatorError
from orchestrator.evaluation.hidden import task_files
from orchestrator.evaluation.host import EvaluatorHost
from orchestrator.evaluation.requests import task_request
from orchestrator.ports import Session, SessionRequest
from orchestrator.sandbox.adapter import DockerSandbox
from tests.bench.figures import Figure
from tests.bench.workbench import Workbench

AT_MOST = 3.0
SPLIT = "hidden"
PLAIN = Path(__file__).parent / "plain"
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}  # as in the images; more threads only make the start slower
_PLAIN_SECONDS = 600
_COUNTED_OTHERWISE = "ast_nodes"  # the size of the program
JOB_SHOP = "dynamic_job_shop"
JOB_SHOP_PAIRS = 3  # each takes half a minute and more


class Prestarted:
    """`ports.Sandbox` that hands out sessions opened beforehand: a warm pool that does not refill meanwhile."""

    def __init__(self, sandbox: DockerSandbox) -> None:
        """Start nothing yet."""
        self._sandbox = sandbox
        self._waiting: dict[Purpose, Session] = {}

    @contextmanager
    def started(self, requests: list[SessionRequest]) -> Iterator[None]:
        """Open a session for each request, and keep it until it is asked for."""
        with ExitStack() as stack:
            for request in requests:
                self._waiting[request.purpose] = stack.enter_context(self._sandbox.session(request))
            yield

    @property
    def policy(self) -> Policy:
        """As `ports.Sandbox`."""
        return self._sandbox.policy

    def session(self, request: SessionRequest) -> AbstractContextManager[Session]:
        """As `ports.Sandbox`."""
        return self._handed(request) if request.purpose in self._waiting else self._sandbox.session(request)

    @contextmanager
    def _handed(self, request: SessionRequest) -> Iterator[Session]:
        session = self._waiting.pop(request.purpose)
        yield session
        session.finish()

    def import_volume(self, files: Mapping[str, bytes], *, run_id: str) -> str:
        """As `ports.Sandbox`."""
        return self._sandbox.import_volume(files, run_id=run_id)

    def has_volume(self, digest: str) -> bool:
        """As `ports.Sandbox`."""
        return self._sandbox.has_volume(digest)

    def warm(self, request: SessionRequest, count: int) -> None:
        """As `ports.Sandbox`."""
        self._sandbox.warm(request, count)

    def live_containers(self, run_id: str) -> int:
        """As `ports.Sandbox`."""
        return self._sandbox.live_containers(run_id)

    def close(self) -> None:
        """As `ports.Sandbox`."""
        self._sandbox.close()


def evaluation_ratio(bench: Workbench, state: Path, pairs: int) -> list[Figure]:
    """Best Fit on 100 sequences: sealed, with containers waiting, over plain.

    Args:
        bench: Where it is evaluated.
        state: A folder for the split's data.
        pairs: Of one sealed and one plain evaluation, taken in turn, after one pair that is not counted.

    Raises:
        EvaluatorError: The two do not come to the same result.
        SandboxError: The sandbox failed.
    """
    plain = _plain_evaluation(bench, state)
    quiet = _measured(_sealed_evaluation(bench), plain, pairs)
    bench.sandbox.warm(bench.request(Purpose.CANDIDATE), 1)
    bench.sandbox.warm(_evaluator_request(bench), 1)
    pooled = _measured(_pooled_evaluation(bench), plain, max(3, pairs // 3))
    for request in (bench.request(Purpose.CANDIDATE), _evaluator_request(bench)):
        bench.sandbox.warm(request, 0)
    name = "bin-packing evaluation (Best Fit, 100 sequences), pool warm, over a plain process"
    return [
        Figure(what=name, value=quiet[0], unit="x", at_most=AT_MOST, detail=quiet[1]),
        Figure(what="the same while the pool starts the next containers", value=pooled[0], unit="x", detail=pooled[1]),
    ]


def job_shop_ratio(bench: Workbench, state: Path, pairs: int) -> Figure:
    """Shortest processing time on 50 simulations: sealed, with containers waiting, over plain.

    Args:
        bench: With that task.
        state: An empty folder for the split's data.
        pairs: As for `evaluation_ratio`; no more than `JOB_SHOP_PAIRS` are taken.

    Raises:
        EvaluatorError: The two do not come to the same result.
        SandboxError: The sandbox failed.
    """
    ratio, detail = _measured(_sealed_evaluation(bench), _plain_evaluation(bench, state), min(pairs, JOB_SHOP_PAIRS))
    name = "job-shop evaluation (shortest processing time, 50 simulations), pool warm, over a plain process"
    return Figure(what=name, value=ratio, unit="x", at_most=AT_MOST, detail=f"job_shop_ratio, {detail}")


def _measured(sealed: Callable[[], float], plain: Callable[[], float], pairs: int) -> tuple[float, str]:
    sealed(), plain()
    # Whoever comes second in a pair comes first in the next, so that neither profits from the other's warm caches.
    taken = [(sealed(), plain()) if number % 2 else (plain(), sealed())[::-1] for number in range(pairs)]
    seconds = [statistics.median(column) for column in zip(*taken, strict=True)]
    ratios = [ours / theirs for ours, theirs in taken]
    detail = (
        f"median of {pairs} pairs ({min(ratios):.2f} to {max(ratios):.2f}): {seconds[0]:.3f} s to {seconds[1]:.3f} s"
    )
    return statistics.median(ratios), detail


def _plain_evaluation(bench: Workbench, state: Path) -> Callable[[], float]:
    """Seconds from the start of a fresh process to its end."""
    for path, content in _files(bench).items():
        (state / path).parent.mkdir(parents=True, exist_ok=True)
        (state / path).write_bytes(content)
    program = state / "program.py"
    program.write_bytes(bench.task.initial["program.py"])
    places = [state / "evaluator", state / "data", SPLIT, program]
    command = [sys.executable, "-I", "-B", str(PLAIN), *map(str, places)]
    reference = _metrics(
        _host(bench, bench.sandbox).evaluate(bench.task.initial, run_id=bench.run_id, attempt_id="same")
    )

    def run() -> float:
        began = time.perf_counter()
        done = subprocess.run(command, env=_ENVIRONMENT, stdout=subprocess.PIPE, check=True, timeout=_PLAIN_SECONDS)
        seconds = time.perf_counter() - began
        metrics = json.loads(done.stdout)
        if any(metrics[name] != value for name, value in reference.items() if name != _COUNTED_OTHERWISE):
            msg = f"a plain evaluation comes to {metrics}, a sealed one to {reference}; they are not the same work"
            raise EvaluatorError(msg)
        return seconds

    return run


def _sealed_evaluation(bench: Workbench) -> Callable[[], float]:
    """Seconds of an evaluation whose containers wait; their removal and the audit records are part of it."""
    prestarted = Prestarted(bench.sandbox)
    host = _host(bench, prestarted)
    requests = [bench.request(Purpose.CANDIDATE), _evaluator_request(bench)]

    def run() -> float:
        with prestarted.started(requests):
            return _timed(host, bench)

    return run


def _pooled_evaluation(bench: Workbench) -> Callable[[], float]:
    host = _host(bench, bench.sandbox)
    requests = [bench.request(Purpose.CANDIDATE), _evaluator_request(bench)]

    def run() -> float:
        for request in requests:
            bench.await_pool(request)
        return _timed(host, bench)

    return run


def _timed(host: EvaluatorHost, bench: Workbench) -> float:
    began = time.perf_counter()
    verdict = host.evaluate(bench.task.initial, run_id=bench.run_id, attempt_id="bench")
    seconds = time.perf_counter() - began
    _metrics(verdict)
    return seconds


def _host(bench: Workbench, sandbox: DockerSandbox | Prestarted) -> EvaluatorHost:
    host = EvaluatorHost(sandbox, bench.task, SPLIT, bench.store)
    host.prepare(run_id=bench.run_id)
    return host


def _files(bench: Workbench) -> dict[str, bytes]:
    data = bench.store.load(bench.sandbox, bench.task, SPLIT, run_id=bench.run_id)
    return task_files(bench.task, data.files)


def _evaluator_request(bench: Workbench) -> SessionRequest:
    volume = bench.sandbox.import_volume(_files(bench), run_id=bench.run_id)
    mounts = {MountRole.TASK: volume}
    return task_request(bench.sandbox.policy, bench.task, Purpose.EVALUATOR, bench.run_id, "bench", mounts)


def _metrics(verdict: Verdict) -> Mapping[str, float]:
    if verdict.metrics is None:
        msg = f"the task's own initial program has no score: {verdict.failure}"
        raise EvaluatorError(msg)
    return verdict.metrics
