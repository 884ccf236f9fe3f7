"""What the engine knows of a search: files, commits, analyses, budget."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ANALYSIS_FILE = "analysis.py"
HANDOFF_MARK = "Figures for the successor: "
_MAX_JSON_CHARACTERS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One run of `analysis.py`."""

    script: str
    program: str
    """The entry module of the program it ran beside."""
    output: str
    ending: str
    """As the framework names it; `ok` if the script ended by itself without an exception."""
    tree: Mapping[str, str] = field(default_factory=dict)
    """All files of that program."""

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
    """Texts of the entry module by commit id: own ones, and those that were read."""
    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    """All files of the same programs."""
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
        """The entry module of the candidate at hand."""
        return self.files.get(self.entry, "")

    @property
    def tree(self) -> dict[str, str]:
        """All files of the candidate at hand."""
        return {name: text for name, text in self.files.items() if name != ANALYSIS_FILE}

    @property
    def best(self) -> tuple[str, float] | None:
        """Entry module and fitness of the best program whose text is known; None: none was ever scored."""
        id_ = self.best_id
        return None if id_ is None else (self.programs[id_], self.scores[id_])

    @property
    def best_id(self) -> str | None:
        """Of the best program whose text is known; None: none was ever scored."""
        known = [id_ for id_ in self.programs if id_ in self.scores]
        return max(known, key=lambda id_: self.scores[id_]) if known else None


def json_object(text: str) -> dict[str, Any] | None:
    """A bounded, strict JSON object; None: it is something else."""
    if len(text) > _MAX_JSON_CHARACTERS:
        return None
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)
