"""What a conversation says, read anew from its messages for every reply: files, commits, analyses, budget.

The messages hold text of other models and output of programs: it is bounded, parsed as JSON or matched by line, and
never run or compiled.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)

ANALYSIS_FILE = "analysis.py"
HANDOFF_MARK = "Figures for the successor: "
_MAX_JSON_CHARACTERS = 1 << 20
_FENCED = re.compile(
    r"^(?P<file>[\w./-]{1,200}):\n(?P<fence>`{3,})\w*\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_ANALYSIS_END = re.compile(r"\[analysis \d+ of \d+ before the next commit: (?P<ending>[\w-]+)\]\s*\Z")
_DESCRIPTION = re.compile(r"^# Task\n(?P<text>.*?)^# Feedback$", re.MULTILINE | re.DOTALL)
_FITNESS = re.compile(r'the fitness, "(?P<name>\w{1,100})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One run of `analysis.py`."""

    script: str
    program: str
    """The program it ran beside."""
    output: str
    ending: str
    """As the framework names it; `ok` if the script ended by itself without an exception."""

    def result(self) -> dict[str, Any] | None:
        """The JSON object of the last line that starts with `result: `; None: there is none."""
        lines = [line for line in self.output.splitlines() if line.startswith("result: ")]
        return json_object(lines[-1].removeprefix("result: ")) if lines else None

    def setting(self, name: str) -> object:
        """A value of the script's line `SETTINGS = {...}`; None: it has none."""
        found = re.search(r"^SETTINGS = (\{.*\})$", self.script, re.MULTILINE)
        return None if found is None else (json_object(found[1]) or {}).get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One of this island's own commits in this conversation."""

    id: str
    program: str
    fitness: float | None
    """None: it failed."""


@dataclass(slots=True)
class Notebook:
    """State of the search as far as this conversation tells it."""

    task: str
    """The description of the task."""
    fitness: str
    """Name of the metric to be raised."""
    tools: frozenset[str]
    effort: float = 1.0
    """Share of the usual iterations that an analysis may spend."""
    island: int = 0
    islands: int = 1
    files: dict[str, str] = field(default_factory=dict)
    entry: str = "program.py"
    initial_program: str = ""
    initial_fitness: float | None = None
    commits: list[Commit] = field(default_factory=list)
    analyses: list[Analysis] = field(default_factory=list)
    """Since the last commit."""
    earlier_analyses: list[Analysis] = field(default_factory=list)
    programs: dict[str, str] = field(default_factory=dict)
    """Texts by commit id: own ones, and those that were read."""
    scores: dict[str, float] = field(default_factory=dict)
    """Fitness by commit id, of everything that was shown."""
    offered: list[str] = field(default_factory=list)
    """Ids of the migration candidates shown with the last commit."""
    reads: int = 0
    """Calls of `read_commit` since the last commit."""
    island_best: str | None = None
    commits_left: int | None = None
    analyses_left: int | None = None
    must_stop: bool = False
    """The last message asks to end the turn."""
    errors: int = 0
    """Tool messages in a row, up to the last one, in which a call failed."""
    handoff: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the predecessor; empty: this conversation is an island's first."""

    @property
    def can_analyse(self) -> bool:
        """Whether an experiment may be made now."""
        return "run_analysis" in self.tools and self.analyses_left != 0

    @property
    def program(self) -> str:
        """The candidate at hand."""
        return self.files.get(self.entry, "")

    @property
    def best(self) -> tuple[str, float] | None:
        """Text and fitness of the best program whose text is known; None: none was ever scored."""
        known = [(self.scores[id_], text) for id_, text in self.programs.items() if id_ in self.scores]
        if not known:
            return None
        score, text = max(known, key=lambda pair: pair[0])
        return text, score


def json_object(text: str) -> dict[str, Any] | None:
    """A bounded, strict JSON object; None: it is something else."""
    if len(text) > _MAX_JSON_CHARACTERS:
        return None
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def read_notebook(conversation: Conversation, tools: Sequence[ToolSpec], *, effort: float = 1.0) -> Notebook:
    """Read a conversation from its beginning."""
    description = _DESCRIPTION.search(conversation.system)
    fitness = _FITNESS.search(conversation.system)
    notebook = Notebook(
        task=conversation.system if description is None else description["text"],
        fitness="fitness" if fitness is None else fitness["name"],
        tools=frozenset(tool.name for tool in tools),
        effort=effort,
    )
    calls: tuple[ToolCall, ...] = ()
    for position, message in enumerate(conversation.messages):
        notebook.must_stop = False
        if isinstance(message, AssistantMessage):
            calls = message.tool_calls
        elif isinstance(message, ToolMessage):
            for call, result in zip(calls, message.results, strict=False):
                _take_result(notebook, call, result)
            failed = any(result.is_error for result in message.results)
            notebook.errors = notebook.errors + 1 if failed else 0
        elif isinstance(message, UserMessage) and position == 0:
            _take_opening(notebook, message.text)
    return notebook


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)


def _take_opening(notebook: Notebook, text: str) -> None:
    for found in _FENCED.finditer(text):
        notebook.files.setdefault(found["file"], found["text"])
    names = [name for name in notebook.files if name != ANALYSIS_FILE and name.endswith(".py")]
    notebook.entry = names[0] if names else notebook.entry
    lines = text.splitlines()
    handoffs = [line.removeprefix(HANDOFF_MARK) for line in lines if line.startswith(HANDOFF_MARK)]
    notebook.handoff = (json_object(handoffs[-1]) or {}) if handoffs else {}
    objects = [line for line in lines if line.startswith("{")]
    facts = (json_object(objects[-1]) or {}) if objects else {}
    source = {**notebook.handoff, **facts}
    notebook.island = _integer(source.get("island")) or 0
    notebook.islands = _integer(source.get("islands")) or 1
    initial = facts.get("initial")
    if isinstance(initial, Mapping):
        notebook.initial_program = notebook.program
        _take_entry(notebook, {**initial, "id": initial.get("id", "initial")}, notebook.program)
        notebook.initial_fitness = notebook.scores.get(str(initial.get("id", "initial")))
    else:
        _take_predecessor(notebook)
        feedback = facts.get("latest_feedback")
        if isinstance(feedback, Mapping):
            facts = {"migration": feedback.get("migration"), **facts}
    _take_facts(notebook, facts)


def _take_predecessor(notebook: Notebook) -> None:
    score = notebook.handoff.get("initial_fitness")
    notebook.initial_fitness = float(score) if isinstance(score, int | float) else None
    program = notebook.handoff.get("initial_program")
    notebook.initial_program = program if isinstance(program, str) else notebook.program
    programs = notebook.handoff.get("programs")
    if isinstance(programs, Mapping):
        notebook.programs.update({str(key): text for key, text in programs.items() if isinstance(text, str)})
    scores = notebook.handoff.get("scores")
    for id_, value in scores.items() if isinstance(scores, Mapping) else ():
        _take_entry(notebook, {"id": id_, "metrics": {notebook.fitness: value}}, None)


def _take_result(notebook: Notebook, call: ToolCall, result: ToolResult) -> None:
    arguments = call.arguments or {}
    notebook.reads += call.name == "read_commit"
    if result.is_error:
        notebook.must_stop = notebook.must_stop or "[budget exhausted]" in result.text
        return
    if call.name == "write":
        notebook.files[str(arguments.get("file"))] = str(arguments.get("content"))
    elif call.name == "edit":
        file = str(arguments.get("file"))
        text = notebook.files.get(file, "")
        notebook.files[file] = text.replace(str(arguments.get("old")), str(arguments.get("new")), 1)
    elif call.name == "read":
        notebook.files[str(arguments.get("file"))] = result.text
    elif call.name == "read_commit":
        notebook.programs[str(arguments.get("id"))] = result.text
    elif call.name == "run_analysis":
        _take_analysis(notebook, result.text)
    elif call.name == "commit":
        _take_commit(notebook, json_object(result.text) or {})


def _take_analysis(notebook: Notebook, text: str) -> None:
    found = _ANALYSIS_END.search(text)
    notebook.analyses.append(
        Analysis(
            script=notebook.files.get(ANALYSIS_FILE, ""),
            program=notebook.program,
            output=text if found is None else text[: found.start()],
            ending="ok" if found is None else found["ending"],
        )
    )
    if notebook.analyses_left is not None:
        notebook.analyses_left = max(0, notebook.analyses_left - 1)


def _take_commit(notebook: Notebook, facts: Mapping[str, Any]) -> None:
    id_ = str(facts.get("commit"))
    _take_entry(notebook, {"id": id_, "metrics": facts.get("metrics")}, notebook.program)
    notebook.commits.append(Commit(id=id_, program=notebook.program, fitness=notebook.scores.get(id_)))
    notebook.earlier_analyses.extend(notebook.analyses)
    notebook.analyses = []
    _take_facts(notebook, facts)
    notebook.must_stop = bool(facts.get("notice"))


def _take_facts(notebook: Notebook, facts: Mapping[str, Any]) -> None:
    entries = [facts.get("island_best"), *_entries(facts.get("grid")), *_entries(facts.get("migration"))]
    for entry in entries:
        if isinstance(entry, Mapping):
            _take_entry(notebook, entry, None)
    shown = [entry for entry in _entries(facts.get("migration")) if isinstance(entry, Mapping)]
    notebook.offered = [str(entry.get("id")) for entry in shown]
    notebook.reads = 0
    best = facts.get("island_best")
    if isinstance(best, Mapping):
        notebook.island_best = str(best.get("id"))
    budget = facts.get("budget")
    if isinstance(budget, Mapping):
        notebook.commits_left = _integer(budget.get("commits_left"))
        notebook.analyses_left = _integer(budget.get("analyses_left"))


def _take_entry(notebook: Notebook, entry: Mapping[str, Any], program: str | None) -> None:
    id_, metrics = str(entry.get("id")), entry.get("metrics")
    score = metrics.get(notebook.fitness) if isinstance(metrics, Mapping) else None
    if isinstance(score, int | float) and math.isfinite(score):
        notebook.scores[id_] = float(score)
    if program is not None:
        notebook.programs[id_] = program


def _entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _integer(value: object) -> int | None:
    return value if type(value) is int else None
