"""A request of EvoSQL, taken apart: the title and the fenced sections (docs/architecture.md, "Prompts of EvoSQL")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

TITLES: Mapping[str, str] = {
    "# Write a SQLite query": "write",
    "# Improve a SQLite query": "improve",
    "# Improve a SQLite query without a critic": "evolve",
    "# Judge SQLite queries": "judge",
    "# Choose a SQLite query": "choose",
}
"""First line of the user message to what is wanted."""
_FENCE = re.compile(r"(`{3,})[^`]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is wanted, and the content of each section."""

    task: str
    sections: Mapping[str, str]

    def section(self, name: str) -> str:
        """Its content; empty if it is not there."""
        return self.sections.get(name, "")


def task_of(text: str) -> str | None:
    """What a user message wants of us; None: it is not one of EvoSQL's."""
    return TITLES.get(text.partition("\n")[0].strip())


def read_request(text: str) -> Request | None:
    """The request in a user message; None: its first line is no title of EvoSQL's.

    A heading counts only outside of fences, so that no content can add or end a section; of two sections with one name
    the first counts.
    """
    task = task_of(text)
    if task is None:
        return None
    return Request(task=task, sections=sections_in(text.partition("\n")[2]))


def sections_in(text: str) -> Mapping[str, str]:
    """The fenced content below each `## ` heading; see `read_request`."""
    sections: dict[str, str] = {}
    name: str | None = None
    fence: str | None = None
    content: list[str] = []
    for line in text.split("\n"):
        if fence is not None:
            if line.strip() == fence:
                if name is not None:
                    sections.setdefault(name, "\n".join(content))
                name, fence = None, None
            else:
                content.append(line)
            continue
        opening = _FENCE.match(line.rstrip())
        if opening is not None:
            fence, content = opening.group(1), []
        elif line.startswith("## "):
            name = line[3:].strip()
    return sections
