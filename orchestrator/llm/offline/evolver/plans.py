"""What a package is to be made of: one line of its `reasoning.md`, and turned into its files from there.

The engine holds no state between its messages, and every message has draws of its own; so what was decided is written
where it will be read again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE
from orchestrator.llm.offline.evolver.messages import json_value, mapping, mappings, number, words
from orchestrator.llm.offline.evolver.notebook import TOOL_FILE, Notebook
from orchestrator.llm.offline.evolver.parents import package_sections
from orchestrator.llm.offline.evolver.rules import put_together
from orchestrator.llm.offline.evolver.sections import BASIC, Section, library, ordered, stitch

LIBRARY, DRAFT = ":library", ":draft"
"""Sources beside the ids of packages."""
USUAL_BYTES, LEAST_BYTES = 240_000, 4_000
BYTES_PER_TOKEN = 3
ANALYSIS_SHARE = 0.6
"""Of the token budget, for the analysis of the largest database."""
MANIFEST = json.dumps({"version": 1, "command": [TOOL_FILE], "output": "tool_output/analysis.md"}, indent=2) + "\n"
_SECTIONS_CHARACTERS = 60_000
"""Of all sections together: a tool is written in one call, which must fit into one reply."""
_MARK = "Plan: "
_MAX_ENTRIES = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionChoice:
    """A section by its name, where its text is, and its parameters."""

    name: str
    source: str
    parameters: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that makes a package."""

    sections: tuple[SectionChoice, ...]
    base: str
    """Whose instructions it starts from; empty: our own preface."""
    dropped: tuple[str, ...] = ()
    """Texts of rules that go."""
    rules: tuple[str, ...] = ()
    """Texts of rules that come."""
    new_sections: tuple[str, ...] = ()
    """Names of those that no parent in this package's making had, or with other parameters."""
    new_rules: tuple[str, ...] = ()
    """Texts of those that the base did not have and that are tried here."""
    max_bytes: int = USUAL_BYTES

    def line(self) -> str:
        """One line for `reasoning.md`."""
        document = {
            "sections": [
                {"name": choice.name, "from": choice.source, "parameters": dict(choice.parameters)}
                for choice in self.sections
            ],
            "base": self.base,
            "dropped": self.dropped,
            "rules": self.rules,
            "new_sections": self.new_sections,
            "new_rules": self.new_rules,
            "max_bytes": self.max_bytes,
        }
        return _MARK + json.dumps(document)


def read_plan(reasoning: str) -> Plan | None:
    """The last plan in an account; None: it has none that can be read."""
    lines = [line for line in reasoning.split("\n") if line.startswith(_MARK)]
    document = mapping(json_value(lines[-1].removeprefix(_MARK))) if lines else {}
    if not document:
        return None
    return Plan(
        sections=tuple(map(_choice, mappings(document.get("sections"))[:_MAX_ENTRIES])),
        base=words(document.get("base"), 200),
        dropped=_texts(document.get("dropped")),
        rules=_texts(document.get("rules")),
        new_sections=_texts(document.get("new_sections")),
        new_rules=_texts(document.get("new_rules")),
        max_bytes=max(LEAST_BYTES, int(number(document.get("max_bytes")) or USUAL_BYTES)),
    )


def default_plan(notebook: Notebook) -> Plan:
    """The library's sections as they are, for when nothing is known."""
    sections = tuple(
        SectionChoice(name=section.name, source=LIBRARY, parameters=section.parameters)
        for section in library().values()
    )
    return Plan(sections=sections, base="", max_bytes=usual_bytes(notebook))


def usual_bytes(notebook: Notebook) -> int:
    """How long an analysis may be, so that it leaves room for the rest of the token budget."""
    if notebook.token_budget is None:
        return USUAL_BYTES
    return max(LEAST_BYTES, min(USUAL_BYTES, int(ANALYSIS_SHARE * notebook.token_budget * BYTES_PER_TOKEN)))


def resolved(plan: Plan, notebook: Notebook) -> list[Section]:
    """The texts of a plan's sections; one that cannot be had is the library's, or left out. Never empty."""
    sources = {id_: package_sections(files) for id_, files in notebook.packages.items()}
    sources[DRAFT] = package_sections(notebook.draft)
    sources[LIBRARY] = dict(library())
    wanted: dict[str, Section] = {}
    for choice in plan.sections:
        section = sources.get(choice.source, {}).get(choice.name)
        if section is None or not section.is_sound():
            section = library().get(choice.name)
        if section is not None:
            wanted.setdefault(choice.name, section.varied(choice.parameters))
    return _together(ordered(wanted.values())) or [library()[BASIC]]


def tool_text(plan: Plan, notebook: Notebook) -> str:
    """The tool; every turn without a tool call so far halves it: a message that was too long may be the reason."""
    sections = resolved(plan, notebook)
    return stitch(sections[: max(1, len(sections) >> notebook.idle)], max_bytes=plan.max_bytes)


def instructions_text(plan: Plan, notebook: Notebook) -> str:
    """The instructions."""
    files = notebook.draft if plan.base == DRAFT else notebook.packages.get(plan.base, {})
    return put_together(files.get(INSTRUCTIONS_FILE, ""), plan.dropped, plan.rules)


def _together(sections: Sequence[Section]) -> list[Section]:
    """Those that fit into one tool, and in which no name has two meanings."""
    kept: list[Section] = []
    names: set[str] = set()
    room = _SECTIONS_CHARACTERS
    for section in sections:
        if len(section.text) <= room and names.isdisjoint(section.defined):
            kept.append(section)
            names |= section.defined
            room -= len(section.text)
    return kept


def _choice(entry: Mapping[str, Any]) -> SectionChoice:
    parameters = {
        name[:60]: int(value)
        for name, raw in mapping(entry.get("parameters")).items()
        if (value := number(raw)) is not None
    }
    return SectionChoice(name=words(entry.get("name"), 60), source=words(entry.get("from"), 200), parameters=parameters)


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(text for item in listed[:_MAX_ENTRIES] if (text := words(item)))
