"""An agent's experiments, each in a fresh container."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Limits, MountRole, Purpose
from orchestrator.evaluation.excerpt import Excerpt
from orchestrator.evaluation.requests import open_session, task_request
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import AnalysisResult, Sandbox, Session, SessionRequest

SCRIPT = "analysis.py"


class SandboxAnalyst:
    """`ports.Analyst` on real containers, for one task."""

    def __init__(self, sandbox: Sandbox, task: Task) -> None:
        """Nothing runs before the first analysis."""
        self._sandbox = sandbox
        self._task = task
        self._lock = threading.Lock()  # guards _volume: many islands analyse at once, the data are imported once
        self._volume: str | None = None

    def prepare(self, *, run_id: str, warm: int = 0) -> None:
        """Import the task's public data now, and keep `warm` containers ready.

        Raises:
            EvolvariumError: As `analyse`.
        """
        request = self._request(run_id, "warm")
        if warm:
            self._sandbox.warm(request, warm)

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:
        """As `ports.Analyst`. What was printed is kept on every ending."""
        request = self._request(run_id, attempt_id)
        limits = request.limits or Limits()
        printed = Excerpt(limits.output_bytes)
        table, body = pack_blobs(files)
        with open_session(self._sandbox, request) as session:
            session.send(Frame({"type": "start", "blobs": table, "script": SCRIPT}, body))
            claim = _collect(session, printed, limits.output_kill_bytes)
            outcome = session.finish(claim)
        return AnalysisResult(output=printed.kept, omitted_bytes=printed.omitted_bytes, outcome=outcome)

    def _request(self, run_id: str, attempt_id: str) -> SessionRequest:
        mounts = {MountRole.PUBLIC: self._public(run_id)} if self._task.public else {}
        return task_request(self._sandbox.policy, self._task, Purpose.ANALYSIS, run_id, attempt_id, mounts)

    def _public(self, run_id: str) -> str:
        with self._lock:
            if self._volume is None:
                self._volume = self._sandbox.import_volume(self._task.public, run_id=run_id)
            return self._volume


def _collect(session: Session, printed: Excerpt, most_bytes: int) -> Ending:
    """Take what is printed until the script is done; what its frames say of its end."""
    while True:
        frame = session.receive()
        if frame is None:
            return Ending.NO_RESULT
        if frame.type == "output":
            printed.add(frame.body)
            if printed.total_bytes > most_bytes:
                return Ending.OUTPUT_LIMIT
        elif frame.type == "done":
            return _ending(frame.head)
        else:
            return Ending.INVALID_RESULT


def _ending(head: Mapping[str, Any]) -> Ending:
    if head.get("exit_code") == 0:
        return Ending.OK
    if head.get("disk_full") is True:
        return Ending.DISK
    return Ending.KILLED if head.get("signal") else Ending.ERROR
