"""Domain values as JSON records for the journal, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec
from orchestrator.errors import RunStateError

T = TypeVar("T")
# Numbers that are not finite are written as such, so that `to_record` meets and refuses them instead of storing null.
_FORM = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")


def to_record(value: object) -> dict[str, Any]:
    """A frozen dataclass of the domain as a JSON object; bytes become base64, decimals become strings.

    Raises:
        ValueError: It holds a number that is not finite.
    """
    kind: Any = type(value)
    record: dict[str, Any] = json.loads(_adapter(kind).dump_json(value), parse_constant=_refuse)
    return record


def from_record(kind: type[T], record: Mapping[str, Any]) -> T:
    """The inverse of `to_record`.

    Raises:
        RunStateError: The record does not hold such a value.
    """
    adapter: TypeAdapter[T] = _adapter(cast("Any", kind))
    try:
        text = json.dumps(dict(record))
    except (TypeError, ValueError, RecursionError) as error:  # what another version or hand may have written
        msg = f"journal record is no {kind.__name__}: it is no JSON object, or nested too deep"
        raise RunStateError(msg) from error
    try:
        value = adapter.validate_json(text)
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
    return TypeAdapter(with_config(_FORM)(kind))


def _refuse(constant: str) -> NoReturn:
    msg = f"{constant} cannot be recorded; only finite numbers can"
    raise ValueError(msg)
