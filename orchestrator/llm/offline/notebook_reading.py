"""What a conversation says, read anew from its messages for every reply.

The messages hold text of other models and output of programs: it is bounded, parsed as JSON or matched by line, and
never run or compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
from orchestrator.llm.offline.notebook import ANALYSIS_FILE, HANDOFF_MARK, Analysis, Commit, Notebook, json_object

_FENCED = re.compile(
    r"^(?P<file>[\w./-]{1,200}):\n(?P<fence>`{3,})\w*\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_ANALYSIS_END = re.compile(r"\[analysis \d+ of \d+ before the next commit: (?P<ending>[\w-]+)\]\s*\Z")
_DESCRIPTION = re.compile(r"^# Task\n(?P<text>.*?)^# Feedback$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"The evaluator calls (?P<file>[\w./-]{1,200}), which may import the others")
_FITNESS = re.compile(r'the fitness, "(?P<name>\w{1,100})"')


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
    named = _ENTRY.search(conversation.system)
    entry = None if named is None else named["file"]
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
            _take_opening(notebook, message.text, entry)
    return notebook


def _take_opening(notebook: Notebook, text: str, entry: str | None) -> None:
    for found in _FENCED.finditer(text):
        notebook.files.setdefault(found["file"], found["text"])
    names = [name for name in notebook.tree if name.endswith(".py")]
    notebook.entry = entry if entry in notebook.files and entry is not None else (*names, notebook.entry)[0]
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
        _take_entry(notebook, {**initial, "id": initial.get("id", "initial")}, notebook.tree)
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
        for id_, text in programs.items():
            if isinstance(text, str):
                _take_tree(notebook, str(id_), {notebook.entry: text})
    trees = notebook.handoff.get("trees")
    for id_, tree in trees.items() if isinstance(trees, Mapping) else ():
        if isinstance(tree, Mapping) and all(isinstance(text, str) for text in tree.values()):
            _take_tree(notebook, str(id_), {str(name): text for name, text in tree.items()})
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
        _take_tree(notebook, str(arguments.get("id")), _tree_of(notebook, result.text))
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
            tree=notebook.tree,
            output=text if found is None else text[: found.start()],
            ending="ok" if found is None else found["ending"],
        )
    )
    if notebook.analyses_left is not None:
        notebook.analyses_left = max(0, notebook.analyses_left - 1)


def _take_commit(notebook: Notebook, facts: Mapping[str, Any]) -> None:
    id_ = str(facts.get("commit"))
    _take_entry(notebook, {"id": id_, "metrics": facts.get("metrics")}, notebook.tree)
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


def _take_entry(notebook: Notebook, entry: Mapping[str, Any], tree: Mapping[str, str] | None) -> None:
    id_, metrics = str(entry.get("id")), entry.get("metrics")
    score = metrics.get(notebook.fitness) if isinstance(metrics, Mapping) else None
    if isinstance(score, int | float) and math.isfinite(score):
        notebook.scores[id_] = float(score)
    if tree is not None:
        _take_tree(notebook, id_, tree)


def _take_tree(notebook: Notebook, id_: str, tree: Mapping[str, str]) -> None:
    notebook.trees[id_] = dict(tree)
    notebook.programs[id_] = tree.get(notebook.entry, "")


def _tree_of(notebook: Notebook, text: str) -> dict[str, str]:
    """The files that `read_commit` shows: a single one bare, several in fenced blocks."""
    if len(notebook.tree) <= 1:
        return {notebook.entry: text}
    return {found["file"]: found["text"] for found in _FENCED.finditer(text)}


def _entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _integer(value: object) -> int | None:
    return value if type(value) is int else None
