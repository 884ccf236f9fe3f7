"""The one way from results to a model.

A verdict leaves through `disclose`: metrics, or the ending of a failure with a built-in exception name, a line of the
program and a message from a fixed list. A candidate chooses among these; it cannot add to them. What a formal
evaluation printed does not leave at all. An analysis is the agent's own experiment on data it may see, so its output
leaves, bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Disclosure
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.claims import EXCEPTION_NAMES
from orchestrator.evaluation.excerpt import head_length
from orchestrator.evaluation.messages import OWN_MESSAGES
from orchestrator.evaluation.tasks import Task
from orchestrator.ports import AnalysisResult

MAX_LINE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosedFailure:
    """What a model learns of a failure; None: nothing to tell, or withheld."""

    ending: str
    exception: str | None
    file: str | None
    """A file of the task's initial program, or None, since any other name is the candidate's own text."""
    line: int | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a model learns of a verdict; exactly one of the two is set."""

    metrics: Mapping[str, float] | None
    failure: DisclosedFailure | None


def disclose(verdict: Verdict, disclosure: Disclosure, task: Task) -> Feedback:
    """What of a verdict may reach a model; whatever is not of an allowed form is left out, not passed on."""
    if verdict.metrics is not None:
        shown = {
            name: _rounded(verdict.metrics[name], disclosure.metric_digits)
            for name in task.spec.metrics
            if name in verdict.metrics and math.isfinite(verdict.metrics[name])
        }
        return Feedback(metrics=shown, failure=None)
    failure = verdict.failure or Failure(ending=Ending.NO_RESULT)
    return Feedback(metrics=None, failure=_disclosed(failure, disclosure, task))


def analysis_text(result: AnalysisResult, disclosure: Disclosure) -> str:
    """What an analysis printed, with a line on how much was cut out of its middle.

    Bytes that are not UTF-8 become replacement characters. Control characters stay: escaping them for a terminal is the
    business of whoever prints.
    """
    cut = head_length(len(result.output)) if result.omitted_bytes else len(result.output)
    head = result.output[:cut].decode(errors="replace")
    tail = result.output[cut:].decode(errors="replace")
    most_head, most_tail = disclosure.analysis_head_characters, disclosure.analysis_tail_characters
    if not result.omitted_bytes:
        if len(head) <= most_head + most_tail:
            return head
        head, tail = head[:most_head], head[most_head:]
    shown_head, shown_tail = head[:most_head], tail[max(0, len(tail) - most_tail) :]
    characters = len(head) + len(tail) - len(shown_head) - len(shown_tail)
    return f"{shown_head}\n[{_amount(characters, result.omitted_bytes)} cut here]\n{shown_tail}"


class TaskDisclosure:
    """Both ways out, for one task under one policy."""

    def __init__(self, disclosure: Disclosure, task: Task) -> None:
        self._disclosure = disclosure
        self._task = task

    def verdict(self, verdict: Verdict) -> Mapping[str, Any]:
        """`{"metrics": {name: number} or None, "failure": {ending, exception, file, line, message} or None}`."""
        return asdict(disclose(verdict, self._disclosure, self._task))

    def analysis(self, result: AnalysisResult) -> str:
        """As `analysis_text`."""
        return analysis_text(result, self._disclosure)


def _disclosed(failure: Failure, disclosure: Disclosure, task: Task) -> DisclosedFailure:
    file = failure.file if failure.file in task.initial else None
    has_line = file is not None and failure.line is not None and 1 <= failure.line <= MAX_LINE
    exception = failure.exception
    if exception is not None and exception not in EXCEPTION_NAMES:
        exception = "Exception"
    return DisclosedFailure(
        ending=failure.ending.value,
        exception=exception,
        file=file,
        line=failure.line if has_line and disclosure.failure_line else None,
        message=failure.message if _may_show(failure.message, disclosure, task) else None,
    )


def _may_show(message: str | None, disclosure: Disclosure, task: Task) -> bool:
    if message in OWN_MESSAGES:
        return True
    return disclosure.evaluator_messages and message in task.spec.messages.values()


def _rounded(value: float, digits: int | None) -> float:
    return float(value) if digits is None else float(f"{value:.{digits}g}")


def _amount(characters: int, omitted_bytes: int) -> str:
    parts = [f"{characters:,} characters"] if characters else []
    parts += [f"{omitted_bytes:,} bytes"] if omitted_bytes else []
    return " and ".join(parts)
