"""Placement rules as programs, and back.

Programs may come from other models: they are searched for lines of constants, bounded in size, and never parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from orchestrator.llm.offline.placement_rules import PlacementTask, Rule, Table

_MAX_CHARACTERS = 20_000
_CONSTANT = r"^{name} = (?P<value>\[.*?\]|\d+)\n(?=\n|[A-Z_]+ = )"
_CONDITION = re.compile(r"@(?P<all>[a-z+]+) ")


def render(rule: Rule, task: PlacementTask, origin: str) -> str:
    """The rule as a program."""
    conditions = {"fading" if rule.has_fading else "plain", *(["crowding"] if rule.crowding else [])}
    lines = []
    for line in files(__package__).joinpath("templates", "placement_program.py.txt").read_text("utf-8").splitlines():
        mark = _CONDITION.match(line)
        if mark is None or conditions.issuperset(mark["all"].split("+")):
            lines.append(line if mark is None else line[mark.end() :])
    constants = {name: _literal(value) for name, value in rule.as_json().items()}
    figures = {name: str(value) for name, value in task.as_json().items()}
    return Template("\n".join(lines) + "\n").substitute(figures | constants, function=task.function, origin=origin)


def read_rule(program: str, task: PlacementTask) -> Rule | None:
    """The rule of a program that `render` wrote; None: it was written by somebody else."""
    if len(program) > _MAX_CHARACTERS:
        return None
    document: dict[str, object] = {"shares": [1.0]}
    for name in ("shares", "rooms", "costs", "reach", "crowding_rooms", "crowding"):
        found = re.search(_CONSTANT.format(name=name.upper()), program, re.MULTILINE | re.DOTALL)
        if found is not None:
            try:
                document[name] = json.loads(re.sub(r",\s*\]", "]", found["value"]))
            except (ValueError, RecursionError):
                return None
    return Rule.from_json(document, task)


def _literal(value: int | Sequence[int] | Sequence[float] | Table) -> str:
    if isinstance(value, int):
        return str(value)
    if value and isinstance(value[0], tuple):
        return "[\n" + "".join(f"    {json.dumps(row)},\n" for row in value) + "]"
    return json.dumps(value)
