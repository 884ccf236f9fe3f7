"""Access policies as YAML files: read strictly, refused with the file, the field, the value and the way out."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.domain.policies import Disclosure, Grant, Limits, Policy
from orchestrator.errors import PolicyError

MAX_FILE_BYTES = 256 << 10


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML without what makes a policy say something else than it seems to: repeated keys, anchors and merges."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as PyYAML has it
        """Refuse aliases; nested ones also grow without bound."""
        if self.check_event(yaml.events.AliasEvent):
            event = cast(Any, self).peek_event()
            msg = "aliases (`*name`) are not allowed; write the value out"
            raise yaml.constructor.ConstructorError(None, None, msg, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a key that occurs twice, of which YAML would silently keep the last."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                msg = f"key {name!r} occurs twice; keep one of them"
                raise yaml.constructor.ConstructorError(None, None, msg, key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def load_policy(path: Path) -> Policy:
    """The policy in a file.

    Raises:
        PolicyError: The file cannot be read, is not strict YAML, or is no policy; the message says where and why.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        msg = f"cannot read the policy {str(path)!r}: {error.strerror}; give the path of a YAML file"
        raise PolicyError(msg) from error
    if len(raw) > MAX_FILE_BYTES:
        msg = f"the policy {str(path)!r} has {len(raw)} bytes, at most {MAX_FILE_BYTES} are read"
        raise PolicyError(msg)
    return parse_policy(raw, str(path))


def parse_policy(raw: bytes, source: str) -> Policy:
    """The policy in YAML text.

    Args:
        raw: UTF-8.
        source: For messages.

    Raises:
        PolicyError: It is not strict YAML, or is no policy; the message says where and why.
    """
    try:
        document = yaml.load(raw.decode("utf-8"), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader, and stricter
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        msg = f"{source}: {_where(error)}"
        raise PolicyError(msg) from error
    if not isinstance(document, dict):
        msg = f"{source}: a policy is a mapping with 'version', 'name' and 'purposes', not {type(document).__name__}"
        raise PolicyError(msg)
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        msg = f"{source}: " + "; ".join(_complaint(detail) for detail in error.errors())
        raise PolicyError(msg) from error


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return f"not YAML in UTF-8 ({type(error).__name__})"
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None) or 'not YAML'}"


def _complaint(detail: ErrorDetails) -> str:
    """The field, the value and the way out."""
    location = [str(part) for part in detail["loc"] if part != "[key]"]
    field = ".".join(location) or "the policy"
    if detail["type"] == "extra_forbidden":
        known = _fields_beside(location)
        return f"{field} is not a field of a policy; allowed here: {', '.join(known)}"
    if detail["type"] == "missing":
        return f"{field} is missing; add it"
    value = repr(detail["input"])
    reason = detail["msg"].removeprefix("Value error, ")
    return f"{field} is {value if len(value) <= 80 else value[:77] + '...'}: {reason[:1].lower()}{reason[1:]}"


def _fields_beside(location: list[str]) -> list[str]:
    """Names of the fields that stand beside the one at `location`."""
    here: type[BaseModel] = Policy
    nested: dict[str, type[BaseModel]] = {"purposes": Grant, "limits": Limits, "disclosure": Disclosure}
    for part in location[:-1]:
        here = nested.get(part, here)
    return sorted(here.model_fields)
