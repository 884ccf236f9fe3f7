"""What a dispatching rule may look at: the attributes of waiting operations, and figures derived from them.

Every figure is written once, as an expression. It is the same text in the programs and in the analysis script, so what
is fitted is what is committed. Times are measured in the mean processing time (OPERATION) or the mean total processing
time of a job (JOB), so that figures have similar spreads whatever the task's numbers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ATTRIBUTES = (
    "processing_time",
    "remaining_work",
    "remaining_operations",
    "due_date",
    "job_arrival",
    "queue_arrival",
    "next_time",
    "winq",
    "now",
    "queue_length",
)
"""Arguments of the evaluated function, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A figure per waiting operation."""

    inputs: tuple[str, ...]
    """Attributes, or features that stand before this one."""
    expression: str
    """NumPy, over the inputs."""
    stands_alone: bool = True
    """False: it is equal for all that wait, so it means something only in a product."""


def _feature(expression: str, *inputs: str, stands_alone: bool = True) -> Feature:
    return Feature(inputs=inputs, expression=expression, stands_alone=stands_alone)


FEATURES: Mapping[str, Feature] = {
    "length": _feature("processing_time / OPERATION", "processing_time"),
    "log_length": _feature("np.log(length)", "length"),
    "next_length": _feature("next_time / OPERATION", "next_time"),
    "rest": _feature("remaining_work / JOB", "remaining_work"),
    "steps": _feature("remaining_operations * OPERATION / JOB", "remaining_operations"),
    "part": _feature("processing_time / remaining_work", "processing_time", "remaining_work"),
    "allowance": _feature("(due_date - job_arrival) / JOB", "due_date", "job_arrival"),
    "age": _feature("(now - job_arrival) / JOB", "now", "job_arrival"),
    "waiting": _feature("(now - queue_arrival) / JOB", "now", "queue_arrival"),
    "ahead": _feature("winq / JOB", "winq"),
    "starving": _feature("1.0 * (winq == 0)", "winq"),
    "slack": _feature("(due_date - now - remaining_work) / JOB", "due_date", "now", "remaining_work"),
    "lateness": _feature("np.maximum(-slack, 0)", "slack"),
    "urgency": _feature("np.exp(-np.maximum(slack, 0))", "slack"),
    "sharp_urgency": _feature("urgency**4", "urgency"),
    "slack_per_step": _feature("slack / steps", "slack", "steps"),
    "critical_ratio": _feature(
        "np.clip((due_date - now) / remaining_work, -8, 8) / 8", "due_date", "now", "remaining_work"
    ),
    "crowd": _feature("np.log(queue_length)", "queue_length", stands_alone=False),
}
"""By name; whatever a feature needs stands before it."""

SHIFTING = ("age", "slack")
"""Features that change alike for all that wait as time passes: as a term of its own, each may be computed once."""


def needed(names: frozenset[str]) -> list[str]:
    """The features and all that they are computed from, in the order of computation."""
    wanted = set(names)
    for name in reversed(tuple(FEATURES)):
        if name in wanted:
            wanted.update(FEATURES[name].inputs)
    return [name for name in FEATURES if name in wanted]
