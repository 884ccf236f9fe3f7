"""`docs/policies.md`, written from the policy models by `python -m orchestrator.cli.policy_reference`."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from orchestrator.bootstrap.places import find_places
from orchestrator.cli.policy_page import EXAMPLE, GVISOR, POSTAMBLE, PREAMBLE
from orchestrator.cli.streams import print_page
from orchestrator.domain.data_access import DataRule
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.policies import (
    Disclosure,
    Grant,
    Limits,
    MountRole,
    Policy,
    ProvenLimit,
    Purpose,
    Runtime,
)
from orchestrator.domain.releases import Approver, ReleaseRules
from orchestrator.domain.sizes import size_words
from orchestrator.sandbox.policy_files import load_policy
from orchestrator.sandbox.settings import TARGETS

_NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false", NoneType: "null"}
_KINDS: dict[type, str] = {
    Grant: "[grant](#purposespurpose)",
    Limits: "[limits](#purposespurposelimits)",
    DataRule: "[rules](#data)",
    Disclosure: "[disclosure](#disclosure)",
    ReleaseRules: "[release](#release)",
    Approver: "[approvers](#releaseapprovers)",
    ModelRule: "[rules](#models)",
    ModelRole: "[roles](#roles-of-language-models)",
    Purpose: "[purpose](#purposes)",
    MountRole: "[roles](#mounts)",
    Runtime: "[runtime](#runtimes)",
    ProvenLimit: "[names](#limits-that-are-proved)",
}
_SECTIONS = (
    ("The file", "", Policy),
    ("`purposes.PURPOSE`", "What one purpose gets.", Grant),
    ("`purposes.PURPOSE.limits`", "Ceilings of one container.", Limits),
    (
        "`data`",
        """\
A list of rules. Patterns are names, in which `*` stands for any characters and `?` for one, without regard to case. A
rule only takes away: what it keeps back is not in the database that SQL and tools see.""",
        DataRule,
    ),
    (
        "`models`",
        """\
A list of rules. A model may be asked where one rule names it, its server and its role; patterns are texts in which `*`
stands for any characters and `?` for one, and case counts.""",
        ModelRule,
    ),
    ("`disclosure`", "What of a verdict may reach a model.", Disclosure),
    (
        "`release`",
        """\
Which exported packages may answer with `evolvarium answer`. An approval counts if `evolvarium approve` made it of this
very package with the key of an approver who is named here.""",
        ReleaseRules,
    ),
    ("`release.approvers`", "Somebody whose approval counts.", Approver),
)


def reference() -> str:
    """The whole page."""
    folder = find_places(None, None).project / "policies"
    policies = [load_policy(path) for path in sorted(folder.glob("*.yaml"))]
    shipped = "\n".join(f"| `{policy.name}` | {policy.description} |" for policy in policies)
    return "\n".join([
        PREAMBLE.format(shipped=shipped, example=EXAMPLE),
        *(_model_section(*section) for section in _SECTIONS),
        _table("## Purposes", ("purpose", "serves", "may mount"), _purposes()),
        _table("## Mounts", ("role", "what and where"), _members(MountRole)),
        _table("## Runtimes", ("runtime", "meaning"), _members(Runtime)),
        _table("## Roles of language models", ("role", "what it does"), _members(ModelRole)),
        _table("## Limits that are proved", ("name", "what a probe must see before a run"), _members(ProvenLimit)),
        GVISOR,
        POSTAMBLE,
    ])  # fmt: skip


def attribute_docs(kind: type) -> dict[str, str]:
    """The text below each attribute of a class, on one line; an attribute without one is missing."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found: dict[str, str] = {}
    body: Sequence[ast.stmt] = getattr(tree, "body", [])
    for statement, following in pairwise(body):
        target = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(statement, ast.Assign):
            target = statement.targets[0] if isinstance(statement.targets[0], ast.Name) else None
        if isinstance(target, ast.Name) and isinstance(following, ast.Expr):
            found[target.id] = " ".join(str(ast.literal_eval(following.value)).split())
    return found


def _model_section(title: str, introduction: str, model: type[BaseModel]) -> str:
    docs = attribute_docs(model)
    rows = [
        (f"`{name}`", _type(field.annotation), _default(name, field), _range(name, field), docs[name])
        for name, field in model.model_fields.items()
    ]
    heading = f"## {title}\n\n{introduction}".rstrip()
    return _table(heading, ("key", "type", "default", "range", "meaning"), rows)


def _table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, "", f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _members(kind: type[StrEnum]) -> list[tuple[str, str]]:
    docs = attribute_docs(kind)
    return [(f"`{member.value}`", docs[member.name]) for member in kind]


def _purposes() -> list[tuple[str, str, str]]:
    docs = attribute_docs(Purpose)
    return [
        (
            f"`{purpose.value}`",
            docs[purpose.name],
            ", ".join(f"`{role.value}` at `{TARGETS[role]}`" for role in MountRole if _may_mount(purpose, role)) or "-",
        )
        for purpose in Purpose
    ]


def _may_mount(purpose: Purpose, role: MountRole) -> bool:
    grant = Grant(image="base", mounts=frozenset({role}))
    try:
        Policy(version=1, name="p", purposes={purpose: grant})
    except ValidationError:
        return False
    return True


def _type(annotation: Any) -> str:  # noqa: ANN401 - any annotation of a field
    known = {**_NAMES, **_KINDS}
    if isinstance(annotation, type) and annotation in known:
        return known[annotation]
    origin, arguments = get_origin(annotation), [part for part in get_args(annotation) if part is not Ellipsis]
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is dict:
        return f"mapping from {_type(arguments[0])} to {_type(arguments[1])}"
    if origin in (tuple, frozenset):
        return f"list of {_type(arguments[0])}"
    parts = arguments[:1] if hasattr(annotation, "__metadata__") else arguments  # annotated, else a union
    return " or ".join(map(_type, parts))


def _default(name: str, field: FieldInfo) -> str:
    match field.default:
        case _ if field.is_required():
            text = "must be given"
        case BaseModel():
            text = "all its defaults"
        case StrEnum() as member:
            text = f"`{member.value}`"
        case frozenset() as every if every == frozenset(ModelRole):
            text = "all of them"
        case None | bool() | str() | tuple() | frozenset() as value:
            text = f"`{json.dumps(list(value) if isinstance(value, tuple | frozenset) else value)}`"
        case number:
            text = _number(name, number)
    return text


def _range(name: str, field: FieldInfo) -> str:
    bounds = {
        bound: getattr(part, bound)
        for part in field.metadata
        for bound in ("ge", "gt", "le", "min_length", "max_length", "pattern")
        if getattr(part, bound, None) is not None
    }
    if "pattern" in bounds:
        return f"`{bounds['pattern']}`"
    if "max_length" in bounds:
        return f"at most {bounds['max_length']} characters"
    if "min_length" in bounds:
        return f"at least {bounds['min_length']} of them"
    if "le" not in bounds:
        return "-"
    low = _number(name, bounds["ge"]) if "ge" in bounds else f"over {bounds['gt']:g}"
    return f"{low} to {_number(name, bounds['le'])}"


def _number(name: str, value: float) -> str:
    if not name.endswith("_bytes") or value < 1024:
        return f"{value:.12g}"
    return f"{value:.12g} ({size_words(int(value))})"


if __name__ == "__main__":
    sys.exit(print_page(reference()))
