"""Formal evaluation: one candidate container, one evaluator container, and this process between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Limits, MountRole, Purpose
from orchestrator.domain.verdicts import Assessment, Failure, Verdict
from orchestrator.errors import EvaluatorCutOff, EvaluatorError, InputError, SandboxError
from orchestrator.evaluation import claims
from orchestrator.evaluation.hidden import SplitStore, files_digest, task_files
from orchestrator.evaluation.relay import Relay, load
from orchestrator.evaluation.requests import finish_both, open_session, task_request
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import Sandbox, Session, SessionRequest

_WARM_RUN = "warm"
_OWN_SHARE = 0.5
"""A candidate that ran into its wall limit is only blamed if it was its turn for at least this part of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A split in its volume."""

    volume: str
    data_digest: str
    is_secret: bool
    files: Sequence[str]
    """The user's, that the data came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """The parts of a verdict that do not depend on what the candidate does."""

    split: str
    is_secret: bool
    fingerprint: dict[str, str]

    def verdict(self, result: dict[str, float] | Failure, outcome: Outcome) -> Verdict:
        """Metrics count only if the candidate's container ended well, and a failure only if nothing worse was seen."""
        claimed = result.ending if isinstance(result, Failure) else Ending.OK
        if outcome.ending is not claimed:
            result = Failure(ending=outcome.ending)
        return Verdict(
            split=self.split,
            metrics=None if isinstance(result, Failure) else result,
            failure=result if isinstance(result, Failure) else None,
            secret=self.is_secret,
            outcome=outcome,
            fingerprint=self.fingerprint,
        )


class EvaluatorHost:
    """`ports.Evaluator` on real containers, for one task and split.

    Within one `evaluate` the candidate's code is started at most once; what fails on our side before that is tried once
    more, what fails afterwards is raised.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        task: Task,
        split: str,
        store: SplitStore,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing runs before the first evaluation.

        Args:
            sandbox: Where containers come from; its policy sets the limits, the task may lower them.
            task: Well formed.
            split: One the task declares.
            store: Has or makes the split's data.
            clock: Seconds, monotonic.

        Raises:
            InputError: The task has no such split.
        """
        task.split(split)
        self._sandbox = sandbox
        self._task = task
        self._split = split
        self._store = store
        self._clock = clock
        self._evaluator_digest = files_digest(task.evaluator)
        self._policy_digest = sandbox.policy.digest()
        self._lock = threading.Lock()  # guards _ready: many islands evaluate at once, the data are made once
        self._ready: _Prepared | None = None

    def prepare(self, *, run_id: str, warm: int = 0) -> None:
        """Make the split's data and volume now, and keep `warm` containers of each kind ready.

        Raises:
            EvolvariumError: As `evaluate` and `SplitStore.load`.
        """
        self._prepared(run_id)
        if warm:
            self._sandbox.warm(self._request(Purpose.CANDIDATE, run_id, _WARM_RUN), warm)
            self._sandbox.warm(self._request(Purpose.EVALUATOR, run_id, _WARM_RUN), warm)

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:
        """As `ports.Evaluator`; also raises `PrerequisiteError` when the split's data cannot be had.

        Raises:
            InputError: The user's files are not what the task's code can read.
        """
        ready = self._prepared(run_id)
        request = self._request(Purpose.CANDIDATE, run_id, attempt_id)
        limits = request.limits or Limits()
        with open_session(self._sandbox, request) as candidate:
            sheet = self._sheet(ready, candidate)
            candidate.cap_cpu(limits.load_cpu_seconds)
            program = load(candidate, payload, self._task)
            if isinstance(program, Failure):
                return sheet.verdict(program, candidate.finish(program.ending))
            candidate.cap_cpu(limits.cpu_seconds)
            began = self._clock()
            with open_session(self._sandbox, self._request(Purpose.EVALUATOR, run_id, attempt_id)) as evaluator:
                start_seconds = self._clock() - began
                sheet.fingerprint["evaluator_image"] = evaluator.image_digest
                relay = Relay(self._task, evaluator, candidate, self._clock, files=ready.files)
                said = relay.until_verdict(self._start(program))
                result = said if isinstance(said, Failure) else self._result(said, payload)
                claim = result.ending if isinstance(result, Failure) else Ending.OK
                outcome, evaluators = finish_both(candidate, claim, evaluator)
                self._require_own_fault(outcome, limits, start_seconds, relay.evaluator_seconds)
                if isinstance(said, Frame):  # else it was waiting for a candidate that had failed
                    self._require_no_limit_met(evaluators)
                return sheet.verdict(result, outcome)

    def assess(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Assessment:
        """What the task's `assess` says of a candidate; a limit that it meets is no error.

        Raises:
            InputError: The task declares no assessment, or as `evaluate`.
            EvolvariumError: Otherwise as `evaluate`.
        """
        if not self._task.spec.assessment:
            msg = f"task {self._task.name!r} has no assessment: its task.yaml declares none under `assessment`"
            raise InputError(msg)
        ready = self._prepared(run_id)
        with open_session(self._sandbox, self._request(Purpose.CANDIDATE, run_id, attempt_id)) as candidate:
            program = load(candidate, payload, self._task)
            if isinstance(program, Failure):
                return Assessment(failure=_seen(program, candidate.finish(program.ending)))
            with open_session(self._sandbox, self._request(Purpose.EVALUATOR, run_id, attempt_id)) as evaluator:
                relay = Relay(self._task, evaluator, candidate, self._clock, files=ready.files)
                try:
                    said = relay.until_verdict(self._start(program, mode="assess"))
                except EvaluatorCutOff as cut:
                    return Assessment(cut_off=cut.ending)
                if isinstance(said, Failure):
                    return Assessment(failure=_seen(said, candidate.finish(said.ending)))
                if said.head.get("status") != "assessed":
                    return Assessment(failure=claims.failure(said.head, payload, self._task))
                values = claims.assessment(said.head, self._task)
                _, ended = finish_both(candidate, Ending.OK, evaluator)  # the candidate may have waited too long
                return Assessment(values=values) if ended.ending is Ending.OK else Assessment(cut_off=ended.ending)

    def _start(self, program: Mapping[str, int], mode: str = "evaluate") -> Frame:
        head = {"type": "start", "mode": mode, "split": self._split, "functions": self._task.functions()}
        return Frame({**head, "program": dict(program)})

    def _result(self, frame: Frame, payload: FileTree) -> dict[str, float] | Failure:
        if frame.head.get("status") == "scored":
            return claims.metrics(frame.head, self._task)
        return claims.failure(frame.head, payload, self._task)

    def _sheet(self, ready: _Prepared, candidate: Session) -> _Sheet:
        fingerprint = {
            "split": self._split,
            "evaluator": self._evaluator_digest,
            "data": ready.data_digest,
            "policy": self._policy_digest,
            "candidate_image": candidate.image_digest,
        }
        return _Sheet(split=self._split, is_secret=ready.is_secret, fingerprint=fingerprint)

    def _require_no_limit_met(self, outcome: Outcome) -> None:
        if outcome.ending is not Ending.OK:
            msg = f"the evaluator of {self._task.name!r} met a limit: {outcome.ending.value}, {outcome.detail}"
            raise EvaluatorError(msg)

    def _require_own_fault(
        self, outcome: Outcome, limits: Limits, start_seconds: float, evaluator_seconds: float
    ) -> None:
        """A candidate's wall limit also runs while it waits; if it mostly waited, somebody else was too slow.

        Raises:
            SandboxError: It waited longer for the evaluator's container to start than for what ran in it.
            EvaluatorError: It waited longer for the evaluator; either way the candidate stays unscored.
        """
        if outcome.ending is not Ending.TIMEOUT or outcome.wall_seconds < limits.wall_seconds:
            return
        if start_seconds + evaluator_seconds <= (1 - _OWN_SHARE) * outcome.wall_seconds:
            return
        of_its_time = f"of the candidate's {limits.wall_seconds:g} s (wall_seconds)"
        if start_seconds > evaluator_seconds:
            msg = f"starting the evaluator's container took {start_seconds:.1f} s {of_its_time}; repeat it"
            raise SandboxError(msg)
        msg = (
            f"the evaluator of {self._task.name!r} took {evaluator_seconds:.1f} s {of_its_time}; make it faster, or "
            "give the candidate more in the policy"
        )
        raise EvaluatorError(msg)

    def _prepared(self, run_id: str) -> _Prepared:
        with self._lock:
            if self._ready is None:
                data = self._store.load(self._sandbox, self._task, self._split, run_id=run_id)
                volume = self._sandbox.import_volume(task_files(self._task, data.files), run_id=run_id)
                self._ready = _Prepared(
                    volume=volume, data_digest=data.digest, is_secret=data.is_secret, files=data.places
                )
            return self._ready

    def _request(self, purpose: Purpose, run_id: str, attempt_id: str) -> SessionRequest:
        mounts = {MountRole.TASK: self._prepared(run_id).volume} if purpose is Purpose.EVALUATOR else {}
        return task_request(self._sandbox.policy, self._task, purpose, run_id, attempt_id, mounts)


def _seen(failure: Failure, outcome: Outcome) -> Failure:
    """A failure as it is claimed, unless the container ended in another way."""
    return failure if outcome.ending is failure.ending else Failure(ending=outcome.ending)
