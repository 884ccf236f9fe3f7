"""The texts a model is given, filled in from `prompts/`.

A line that starts with `@analysis` belongs to the configuration with analyses only, one that starts with
`@analysis+data` only where the task also has public data; --no-analysis removes these lines and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from string import Template
from typing import Any

import yaml

from orchestrator.domain.candidates import FileTree
from orchestrator.domain.conversation import StopReason, ToolSpec
from orchestrator.domain.tasks import TaskView
from orchestrator.methods.agentic_evolve.settings import Settings
from orchestrator.methods.agentic_evolve.workspace import ANALYSIS_FILE, Workspace

_MARK = re.compile(r"@(?P<condition>analysis(?:\+data)?) ")
_CONTINUE = {StopReason.LENGTH: "cut_off", StopReason.THOUGHT: "only_thought", StopReason.REFUSAL: "refused"}
_LANGUAGES = {".py": "python", ".json": "json", ".sql": "sql"}


@cache
def _stored(name: str) -> str:
    return files(__package__).joinpath("prompts", name).read_text(encoding="utf-8")


def fixed_text(name: str) -> str:
    """A text of `prompts/` without fields, for instance `handoff`."""
    return _stored(f"{name}.txt").rstrip("\n")


def continue_text(stop: StopReason) -> str:
    """After a turn without a tool call: why there was none, as far as it shows, and that the search goes on."""
    return fixed_text(_CONTINUE.get(stop, "continue"))


def cut_off_notice(stop: StopReason) -> str | None:
    """To the answers to tool calls of a message that was cut off; None: it was not."""
    return fixed_text("cut_off_call") if stop is StopReason.LENGTH else None


def system_prompt(settings: Settings, task: TaskView) -> str:
    """What every island is told before anything else."""
    conditions = {"analysis": settings.analysis, "analysis+data": settings.analysis and task.has_public_data}
    lines = []
    for line in _stored("system.txt").splitlines():
        mark = _MARK.match(line)
        if mark is None or conditions[mark["condition"]]:
            lines.append(line if mark is None else line[mark.end() :])
    return Template("\n".join(lines)).substitute(
        description=task.description.strip(),
        fitness=task.fitness,
        features=", ".join(f'"{feature}"' for feature in task.features),
        bins=settings.bins,
        islands=settings.islands,
        files=", ".join(task.initial),
        module=PurePosixPath(task.entry).stem,
        several=_several(task),
        restore=f"write it to {task.entry}" if len(task.initial) == 1 else "write each of its files",
        analyses=settings.analyses_per_commit,
    )


def _several(task: TaskView) -> str:
    """How the files of a program belong together; nothing to say where there is one."""
    if len(task.initial) == 1:
        return ""
    return (
        f" The evaluator calls {task.entry}, which may import the others; you may change all of them, and add or "
        "remove none. A commit is the same as an earlier one only if every file is."
    )


def tool_names(*, analysis: bool) -> frozenset[str]:
    """The names of an island's tools, with those for analyses or without."""
    stored: dict[str, dict[str, Any]] = yaml.safe_load(_stored("tools.yaml"))
    return frozenset(name for name, tool in stored.items() if analysis or not tool.get("analysis", False))


def tool_specs(settings: Settings, task: TaskView) -> tuple[ToolSpec, ...]:
    """The tools of an island, in a fixed order."""
    names = [*task.initial, *([ANALYSIS_FILE] if settings.analysis else [])]
    stored: dict[str, dict[str, Any]] = yaml.safe_load(_stored("tools.yaml"))
    return tuple(
        ToolSpec(name=name, description=tool["description"], parameters=_schema(tool["arguments"], names))
        for name, tool in stored.items()
        if settings.analysis or not tool.get("analysis", False)
    )


def _schema(arguments: Mapping[str, str], names: list[str]) -> dict[str, Any]:
    properties: dict[str, dict[str, Any]] = {
        name: {"type": "string", "description": description} for name, description in arguments.items()
    }
    if "file" in properties:
        properties["file"]["enum"] = names
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def first_message(tree: FileTree, facts: Mapping[str, Any]) -> str:
    """How an island's conversation begins."""
    return Template(fixed_text("first")).substitute(program=_fenced_tree(tree), facts=as_json(facts))


def successor_message(handoff: str, workspace: Workspace, facts: Mapping[str, Any]) -> str:
    """How a conversation begins that continues another one."""
    script = workspace.script
    parts = [_fenced_tree(workspace.candidate)]
    if workspace.has_analysis:
        parts.append(f"{ANALYSIS_FILE} does not exist yet." if script is None else _fenced(ANALYSIS_FILE, script))
    return Template(fixed_text("successor")).substitute(
        handoff=handoff, program="\n\n".join(parts), facts=as_json(facts)
    )


def as_json(document: Mapping[str, Any]) -> str:
    """One line of strict JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def one_line(text: str, limit: int = 300) -> str:
    """`text` as the archive summary shows it: without line breaks, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def file_text(content: bytes) -> str:
    """A candidate's file as text."""
    return content.decode("utf-8", errors="replace")


def tree_text(tree: FileTree) -> str:
    """All files: the bare text if there is one file, otherwise each under its name."""
    if len(tree) == 1:
        return file_text(next(iter(tree.values())))
    return _fenced_tree(tree)


def _fenced_tree(tree: FileTree) -> str:
    return "\n\n".join(_fenced(path, content) for path, content in tree.items())


def _fenced(path: str, content: bytes) -> str:
    text = file_text(content)
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)  # longer than any in the text, so that the block ends where the file ends
    newline = "" if text.endswith("\n") or not text else "\n"
    return f"{path}:\n{fence}{_LANGUAGES.get(PurePosixPath(path).suffix, '')}\n{text}{newline}{fence}"
