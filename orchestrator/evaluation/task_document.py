"""A `task.yaml` as it was read: the spec, or everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

from pydantic import TypeAdapter, ValidationError

from orchestrator.evaluation.task_spec import PATTERNS, Inconsistent, TaskSpec, inconsistencies
from orchestrator.runtime.complaints import complaint

TASK_FILE = "task.yaml"


def examined(document: Any) -> tuple[Mapping[str, Any], list[str]]:  # noqa: ANN401 - any document of YAML
    """The fields that are well formed by themselves, and every problem, also between fields.

    Args:
        document: Of `load_yaml`.

    Returns:
        Fields of a `TaskSpec` by name, defaults included; all of them where there is no problem.
    """
    if not isinstance(document, Mapping):
        return {}, [f"{TASK_FILE}: must be a mapping of keys to values; `evolvarium task new` makes one to start from"]
    fields = dict(_well_formed(document))
    return fields, [f"{TASK_FILE}: {problem}" for problem in (*_complaints(document), *inconsistencies(fields))]


def _well_formed(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, field in TaskSpec.model_fields.items():
        if name not in document:
            if not field.is_required():
                yield name, field.get_default(call_default_factory=True)
            continue
        alone: Any = cast("Any", Annotated)[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        try:
            yield name, TypeAdapter(alone).validate_python(document[name])
        except ValidationError:
            continue  # told by `_complaints`


def _complaints(document: Mapping[str, Any]) -> Iterator[str]:
    try:
        TaskSpec.model_validate(document)
    except ValidationError as error:
        for detail in error.errors():
            if not isinstance(detail.get("ctx", {}).get("error"), Inconsistent):  # which need all fields; told apart
                yield complaint(detail, PATTERNS)
