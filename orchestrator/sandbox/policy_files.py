"""Access policies as YAML files: read strictly, refused with the file, the field, the value and the way out."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.domain.data_access import DataRule
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.policies import Disclosure, Grant, Limits, Policy
from orchestrator.domain.releases import Approver, ReleaseRules
from orchestrator.errors import InputError, PolicyError
from orchestrator.runtime.strict_yaml import MAX_BYTES, load_yaml, shown
from orchestrator.runtime.user_files import read_file

REFERENCE = "docs/policies.md"
_SUFFIXES = (".yaml", ".yml")
_ALONE = "a policy stands alone: copy policies/default.yaml and change it"


def load_policy(path: Path) -> Policy:
    """The policy in a file.

    Raises:
        PolicyError: The file cannot be read, is not strict YAML, or is no policy; the message says where and why.
    """
    try:
        raw = read_file(path, MAX_BYTES)
    except OSError as error:
        msg = f"cannot read the policy {str(path)!r}: {error.strerror}; give the path of a YAML file"
        raise PolicyError(msg) from error
    try:
        return parse_policy(raw, str(path))
    except PolicyError as error:
        if path.suffix in _SUFFIXES:
            raise
        msg = f"{str(path)!r} is no policy, which is a YAML file ({REFERENCE} has an example): {error}"
        raise PolicyError(msg) from error


def parse_policy(raw: bytes, source: str) -> Policy:
    """The policy in YAML text.

    Args:
        raw: UTF-8.
        source: For messages.

    Raises:
        PolicyError: It is not strict YAML, or is no policy; the message says where and why.
    """
    try:
        document = load_yaml(raw, source)
    except InputError as error:
        raise PolicyError(str(error)) from error
    if not isinstance(document, dict):
        msg = f"{source}: a policy is a mapping with 'version', 'name' and 'purposes', not {type(document).__name__}"
        raise PolicyError(msg)
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        details = error.errors()
        is_part = any(detail["type"] == "missing" and len(detail["loc"]) == 1 for detail in details)
        complaints = [*map(_complaint, details), *([_ALONE] if is_part else [])]
        raise PolicyError(f"{source}: " + "; ".join(complaints)) from error


def _complaint(detail: ErrorDetails) -> str:
    """The field, the value and the way out."""
    location = [str(part) for part in detail["loc"] if part != "[key]"]
    field = ".".join(location) or "the policy"
    if detail["type"] == "extra_forbidden":
        known = _fields_beside(location)
        return f"{field} is not a field of a policy; allowed here: {', '.join(known)} (see {REFERENCE})"
    if detail["type"] == "missing":
        return f"{field} is missing; add it"
    reason = detail["msg"].removeprefix("Value error, ")
    return f"{field} is {shown(detail['input'])}: {reason[:1].lower()}{reason[1:]}"


def _fields_beside(location: list[str]) -> list[str]:
    """Names of the fields that stand beside the one at `location`."""
    here: type[BaseModel] = Policy
    nested: dict[str, type[BaseModel]] = {
        "purposes": Grant,
        "limits": Limits,
        "data": DataRule,
        "models": ModelRule,
        "disclosure": Disclosure,
        "release": ReleaseRules,
        "approvers": Approver,
    }
    for part in location[:-1]:
        here = nested.get(part, here)
    return sorted(here.model_fields)
