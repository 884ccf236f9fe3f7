"""Domain values as JSON records for the journal, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec
from orchestrator.errors import RunStateError

T = TypeVar("T")
_BASE64 = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def to_record(value: object) -> dict[str, Any]:
    """A frozen dataclass of the domain as a JSON object; bytes become base64, decimals become strings."""
    record: dict[str, Any] = json.loads(_adapter(type(value)).dump_json(value))
    return record


def from_record(kind: type[T], record: Mapping[str, Any]) -> T:
    """The inverse of `to_record`.

    Raises:
        RunStateError: The record does not hold such a value.
    """
    try:
        value: T = _adapter(kind).validate_json(json.dumps(dict(record)))
    except ValidationError as error:
        msg = f"journal record is no {kind.__name__}: {error.errors()[0]['msg']}"
        raise RunStateError(msg) from error
    return value


def request_digest(conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> str:
    """`sha256:` and 64 hex digits over everything a model is given; equal requests have equal digests."""
    parts = [to_record(conversation), [to_record(tool) for tool in tools], to_record(sampling)]
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any dataclass of the domain
    return TypeAdapter(with_config(_BASE64)(kind))
