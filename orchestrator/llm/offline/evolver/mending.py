"""From a trial that failed, or came near the token budget, to a tool that should do better."""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestrator.llm.offline.evolver.notebook import Notebook
from orchestrator.llm.offline.evolver.plans import ANALYSIS_SHARE, LEAST_BYTES, usual_bytes
from orchestrator.llm.offline.evolver.reports import Trial
from orchestrator.llm.offline.evolver.sections import (
    BASIC,
    Section,
    cut_sections,
    library,
    section_at,
    stitch,
    written_bytes,
)

MAX_MENDS = 4
_FAILED = re.compile(r"^Sections that failed: (?P<listed>.{1,4000})$", re.MULTILINE)
_LINE = re.compile(r"\bline (\d{1,6})\b")
COSTLY = ("orphans", "keys_and_cardinalities", "formats", "pitfalls", "semantic_hints", "enumerations", "ranges")
"""In the order in which they are dropped where time, memory or room runs out."""
_EXCESS = frozenset({"timeout", "memory", "output-limit", "disk", "over-budget"})


def mended(trial: Trial, notebook: Notebook, mends: int) -> str | None:
    """Another tool in place of the one that was tried.

    Args:
        trial: What came of it.
        notebook: For the token budget.
        mends: How many there were before; after the last one only what every tool has is left.

    Returns:
        None: it is good as it is, or there is nothing left to be mended.
    """
    sections, room = cut_sections(trial.tool), written_bytes(trial.tool) or usual_bytes(notebook)
    if trial.is_ok:
        broken = _failed_sections(trial.text, sections)
        if broken:
            return _stitched(_without(sections, broken), room, trial)
        return _shortened(sections, room, trial, notebook)
    if mends >= MAX_MENDS - 1 or not sections:
        basic = [library()[name] for name in (BASIC, "row_counts")]
        return _stitched({section.name: section for section in basic}, min(room, usual_bytes(notebook) // 4), trial)
    if trial.failure in _EXCESS:
        return _stitched(_cheaper(sections), max(LEAST_BYTES, room // 2), trial)
    lines = [*trial.finding_lines, *(int(line) for line in _LINE.findall(trial.detail))]
    blamed = sorted({name for line in lines if (name := section_at(trial.tool, line)) is not None})
    foreign = [name for name in sections if name not in library() or not _is_ours(sections[name])]
    return _stitched(_without(sections, blamed or foreign or [next(reversed(sections))]), room, trial)


def _failed_sections(text: str, sections: Mapping[str, Section]) -> list[str]:
    """Those that the tool itself reports."""
    found = _FAILED.search(text)
    named = [part.strip().partition(" ")[0] for part in found["listed"].split(",")] if found else []
    return [name for name in named if name in sections]


def _without(sections: Mapping[str, Section], names: list[str]) -> dict[str, Section]:
    """The sections but for some; one that differs from the library's is replaced by the library's."""
    kept: dict[str, Section] = {}
    for name, section in sections.items():
        own = library().get(name)
        if name not in names:
            kept[name] = section
        elif own is not None and not _is_ours(section):
            kept[name] = own
    return kept


def _is_ours(section: Section) -> bool:
    """Whether it is the library's, whatever its parameters."""
    own = library().get(section.name)
    return own is not None and own.varied(section.parameters).text == section.text


def _cheaper(sections: Mapping[str, Section]) -> dict[str, Section]:
    """Every parameter halved, the costliest section gone, and the schema's size heeded."""
    dropped = next((name for name in COSTLY if name in sections), "")
    halved = {
        name: section.varied({key: value // 2 for key, value in section.parameters.items()})
        for name, section in sections.items()
        if name != dropped
    }
    return {"size_adaptation": library()["size_adaptation"], **halved}


def _shortened(sections: Mapping[str, Section], room: int, trial: Trial, notebook: Notebook) -> str | None:
    """Less text, where an analysis takes more than its share of the token budget."""
    budget = notebook.token_budget
    if budget is None or not sections or trial.tokens <= ANALYSIS_SHARE * budget:
        return None
    size = max(LEAST_BYTES, int(min(room, usual_bytes(notebook)) * 0.8 * ANALYSIS_SHARE * budget / trial.tokens))
    return _stitched({"size_adaptation": library()["size_adaptation"], **sections}, size, trial)


def _stitched(sections: Mapping[str, Section], room: int, trial: Trial) -> str | None:
    """The tool; None: it is the one that was tried."""
    tool = stitch(list(sections.values()) or [library()[BASIC]], max_bytes=room)
    return None if tool == trial.tool else tool
