"""What the engine does next: read, account, build, try, mend, hand in; after Deep Focus revise and hand in again."""

from __future__ import annotations

import random
from collections.abc import Mapping

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE, MANIFEST_FILE, REASONING_FILE
from orchestrator.llm.offline.evolver.accounts import account, continued, description
from orchestrator.llm.offline.evolver.mending import MAX_MENDS, mended
from orchestrator.llm.offline.evolver.notebook import TOOL_FILE, Notebook
from orchestrator.llm.offline.evolver.parents import contest_accuracy, ranked_ids
from orchestrator.llm.offline.evolver.planning import ERROR_FOCUSED, REFINEMENT, make_plan
from orchestrator.llm.offline.evolver.plans import (
    MANIFEST,
    Plan,
    default_plan,
    instructions_text,
    read_plan,
    tool_text,
)
from orchestrator.llm.offline.evolver.revision import revise
from orchestrator.llm.offline.families import Step, write

Call = tuple[str, Mapping[str, str]]
_MAX_FAILURES = 3
_READ_PACKAGES = 5
_READ_BYTES = 100_000
"""Of one file; longer ones are not read."""
_CONVERSATION_CHARACTERS = 500_000
"""From which on nothing more is read."""
_CALLS_PER_TURN = 2
"""Of `read_errors`: each answer may be long."""
_REPORTED_PAIRS = 8
_TRIED_DATABASES = 2
_HURRY = 4
"""Requests left, from which on the package is written in one turn."""


def next_step(notebook: Notebook, chance: random.Random) -> Step:
    """The next message; without calls it ends the turn."""
    if not {"write", "finish"} <= notebook.tools:
        return Step(text="I cannot write or hand in a package without the tools write and finish; I end my turn.")
    if notebook.is_finished:
        return Step(text="The package is handed in; I end my turn.")
    if notebook.failures >= _MAX_FAILURES or notebook.refused_finishes >= _MAX_FAILURES:
        return Step(text=f"My last calls were refused {_MAX_FAILURES} times in a row; I end my turn.")
    if notebook.focus and REASONING_FILE not in notebook.written:
        return _revised(notebook, chance)
    if REASONING_FILE not in notebook.draft:
        hurries = notebook.requests_left <= _HURRY
        return (None if hurries else _reading(notebook)) or _planned(notebook, chance, hurries=hurries)
    return _built(notebook)


def _reading(notebook: Notebook) -> Step | None:
    """Packages first, then errors; None: enough was read."""
    if notebook.characters > _CONVERSATION_CHARACTERS or notebook.idle:
        return None
    calls = [call for call in _package_calls(notebook) if _signature(call) not in notebook.asked]
    if calls and not any(name == "read_package" for name, *_ in notebook.asked):
        ids = ", ".join(dict.fromkeys(arguments["id"] for _, arguments in calls))
        return Step(text=f"First I read the packages: {ids}.", calls=tuple(calls))
    calls = [call for call in _error_calls(notebook) if _signature(call) not in notebook.asked][:_CALLS_PER_TURN]
    if calls:
        pairs = ", ".join(f"{arguments['id']} on {arguments['database']}" for _, arguments in calls)
        return Step(text=f"What went wrong: {pairs}.", calls=tuple(calls))
    return None


def _package_calls(notebook: Notebook) -> list[Call]:
    """The files of the competitors and, if there are fewer, of other good packages; of the best alone to refine it."""
    if "read_package" not in notebook.tools:
        return []
    competitors = ranked_ids(notebook, competitors_only=True)
    chosen = list(dict.fromkeys([*competitors, *ranked_ids(notebook)]))[:_READ_PACKAGES]
    if notebook.strategy == REFINEMENT:
        chosen = ranked_ids(notebook)[:1]
    files = {entry.id: entry.files for entry in notebook.pool}
    room = _CONVERSATION_CHARACTERS - notebook.characters
    calls: list[Call] = []
    for id_ in chosen:
        wanted = [name for name in files[id_] if name != REASONING_FILE and files[id_][name] <= _READ_BYTES]
        size = sum(files[id_][name] for name in wanted)
        if size <= room:
            room -= size
            calls += [("read_package", {"id": id_, "file": name}) for name in sorted(wanted)]
    return calls


def _error_calls(notebook: Notebook) -> list[Call]:
    """Reports of the best competitors, those with the most errors first; of all of them if errors are the strategy."""
    if "read_errors" not in notebook.tools:
        return []
    accuracy = contest_accuracy(notebook)
    best = sorted(accuracy, key=lambda id_: (-accuracy[id_], id_))
    is_focused = notebook.strategy == ERROR_FOCUSED
    chosen = best if is_focused else best[:2]
    entries = [entry for entry in notebook.contest if entry.package in chosen and entry.errors]
    entries.sort(key=lambda entry: (-entry.errors, chosen.index(entry.package), entry.database))
    limit = 2 * _REPORTED_PAIRS if is_focused else _REPORTED_PAIRS
    return [("read_errors", {"id": entry.package, "database": entry.database}) for entry in entries[:limit]]


def _signature(call: Call) -> tuple[str, ...]:
    name, arguments = call
    return (name, *arguments.values())


def _planned(notebook: Notebook, chance: random.Random, *, hurries: bool) -> Step:
    """The account, before anything else; with few requests left, everything."""
    plan = make_plan(notebook, chance)
    calls: list[Call] = [write(REASONING_FILE, account(plan, notebook))]
    if hurries:
        calls += [*_all_files(plan, notebook), ("finish", {"description": description(plan)})]
    return Step(text="I write down what I found and what I am going to build.", calls=tuple(calls))


def _all_files(plan: Plan, notebook: Notebook) -> list[Call]:
    return [write(TOOL_FILE, tool_text(plan, notebook)), *_small_files(plan, notebook)]


def _small_files(plan: Plan, notebook: Notebook) -> list[Call]:
    return [write(INSTRUCTIONS_FILE, instructions_text(plan, notebook)), write(MANIFEST_FILE, MANIFEST)]


def _built(notebook: Notebook) -> Step:
    """The files that are missing, then trials, then the end."""
    plan = read_plan(notebook.draft[REASONING_FILE]) or default_plan(notebook)
    if notebook.requests_left <= _HURRY and not {TOOL_FILE, INSTRUCTIONS_FILE, MANIFEST_FILE} <= notebook.written:
        calls = (*_all_files(plan, notebook), ("finish", {"description": description(plan)}))
        return Step(text="Few requests are left; I write the package and hand it in.", calls=calls)
    if TOOL_FILE not in notebook.written or (notebook.refused_finishes and not notebook.trials):
        return Step(text="Now the tool.", calls=(write(TOOL_FILE, tool_text(plan, notebook)),))
    if not {INSTRUCTIONS_FILE, MANIFEST_FILE} <= notebook.written:
        return Step(text="Now the instructions and the manifest.", calls=tuple(_small_files(plan, notebook)))
    return _tried(notebook) or Step(
        text="The package is complete; I hand it in.", calls=(("finish", {"description": description(plan)}),)
    )


def _tried(notebook: Notebook) -> Step | None:
    """A trial, or a mended tool and its trial; None: it is tried enough."""
    if "try_tool" not in notebook.tools or not notebook.can_try or notebook.requests_left <= 2:
        return None
    trials = notebook.trials
    if not trials:
        databases = notebook.databases[:1]
        return _trial("I try it on the largest database", databases[0]) if databases else None
    last = trials[-1]
    mends = len({trial.tool for trial in trials}) - 1
    tool = mended(last, notebook, mends) if mends < MAX_MENDS else None
    if tool is not None:
        problem = last.failure if not last.is_ok else "too long, or a section of it failed"
        step = _trial(f"The tool is not good yet ({problem}); I mend it and try it again", last.database)
        return Step(text=step.text, calls=(write(TOOL_FILE, tool), *step.calls))
    tried = {trial.database for trial in trials if trial.tool == last.tool}
    left = [name for name in notebook.databases[:_TRIED_DATABASES] if name not in tried]
    if last.is_ok and left and not notebook.focus:
        return _trial("I try it on another one", left[0])
    return None


def _trial(reason: str, database: str) -> Step:
    return Step(text=f"{reason}: {database}.", calls=(("try_tool", {"database": database}),))


def _revised(notebook: Notebook, chance: random.Random) -> Step:
    """The account continued, or the draft as it is."""
    revision = revise(notebook, chance)
    if revision is None:
        plan = read_plan(notebook.draft.get(REASONING_FILE, "")) or default_plan(notebook)
        text = "Nobody did better, and there are no errors to go by; it stays as it is."
        return Step(text=text, calls=(("finish", {"description": description(plan)}),))
    before = notebook.draft.get(REASONING_FILE, "# Reasoning")
    text = continued(before, notebook.focus[-1], revision.plan, revision.reasons, len(notebook.focus))
    return Step(text="I write down what the test showed.", calls=(write(REASONING_FILE, text),))
