"""The packages that were read, as sources of sections and rules, and what their ranks say of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE
from orchestrator.llm.offline.evolver.notebook import Notebook
from orchestrator.llm.offline.evolver.rules import Rule, read_rules
from orchestrator.llm.offline.evolver.sections import Section, cut_sections, written_bytes

_CONTEST_WEIGHT = 400.0
"""Rating points for all questions of the last contest, on which competitors are compared directly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A package whose files were read."""

    id: str
    standing: float
    """Rating, corrected by how it did against the others in the last contest."""
    accuracy: float | None
    """Over all its questions; None: it has answered none."""
    sections: Mapping[str, Section]
    """Those that can be taken over."""
    unsound: tuple[str, ...]
    """Names of sections that cannot."""
    rules: tuple[Rule, ...]
    instructions: str
    is_marked: bool
    """Its tool has sections at all."""
    max_bytes: int | None
    """Of its analysis, where its tool is of our kind."""


def read_parents(notebook: Notebook) -> list[Parent]:
    """Best first; equals in the order of their ids."""
    standings = _standings(notebook)
    parents = [_parent(id_, files, notebook, standings) for id_, files in notebook.packages.items()]
    return sorted(parents, key=lambda parent: (-parent.standing, -(parent.accuracy or 0.0), parent.id))


def ranked_ids(notebook: Notebook, *, competitors_only: bool = False) -> list[str]:
    """Ids of the pool, best first."""
    standings = _standings(notebook)
    pool = [entry.id for entry in notebook.pool if entry.is_competitor or not competitors_only]
    return sorted(dict.fromkeys(pool), key=lambda id_: (-standings.get(id_, 0.0), id_))


def contest_accuracy(notebook: Notebook) -> dict[str, float]:
    """Share of right answers in the last contest, by competitor."""
    right: dict[str, float] = {}
    asked: dict[str, int] = {}
    for entry in notebook.contest:
        right[entry.package] = right.get(entry.package, 0.0) + entry.accuracy * entry.questions
        asked[entry.package] = asked.get(entry.package, 0) + entry.questions
    return {id_: right[id_] / asked[id_] for id_ in right if asked[id_]}


def effect(parents: Sequence[Parent], has: Callable[[Parent], bool]) -> float:
    """How much better the packages with something do than those without, in rating points, shrunk where few are known.

    Returns:
        0: all have it, or none.
    """
    having = [parent.standing for parent in parents if has(parent)]
    lacking = [parent.standing for parent in parents if not has(parent)]
    if not having or not lacking:
        return 0.0
    pairs = len(having) * len(lacking)
    return (fmean(having) - fmean(lacking)) * pairs / (pairs + len(parents))


def section_effect(parents: Sequence[Parent], name: str) -> float:
    """`effect` of a section."""
    return effect(parents, lambda parent: name in parent.sections)


def rule_effect(parents: Sequence[Parent], rule: Rule) -> float:
    """`effect` of a rule, whoever words it how."""
    said = rule.conventions

    def has(parent: Parent) -> bool:
        return any(rule.key == other.key or (said and said <= other.conventions) for other in parent.rules)

    return effect(parents, has)


def package_sections(files: Mapping[str, str]) -> dict[str, Section]:
    """All sections of a package's tools, sound or not."""
    found: dict[str, Section] = {}
    for name in sorted(files):
        if name.endswith(".py"):
            for section in cut_sections(files[name]).values():
                found.setdefault(section.name, section)
    return found


def _parent(id_: str, files: Mapping[str, str], notebook: Notebook, standings: Mapping[str, float]) -> Parent:
    found = package_sections(files)
    sound = {name: section for name, section in found.items() if section.is_sound()}
    instructions = files.get(INSTRUCTIONS_FILE, "")
    sizes = [
        size for name in sorted(files) if name.endswith(".py") and (size := written_bytes(files[name])) is not None
    ]
    return Parent(
        id=id_,
        standing=standings.get(id_, 0.0),
        accuracy=next((entry.accuracy for entry in notebook.ranking if entry.id == id_), None),
        sections=sound,
        unsound=tuple(sorted(set(found) - set(sound))),
        rules=tuple(read_rules(instructions)),
        instructions=instructions,
        is_marked=bool(found),
        max_bytes=sizes[0] if sizes else None,
    )


def _standings(notebook: Notebook) -> dict[str, float]:
    accuracy = contest_accuracy(notebook)
    mean = fmean(accuracy.values()) if accuracy else 0.0
    standings = {entry.id: entry.rating for entry in notebook.ranking}
    for id_, share in accuracy.items():
        standings[id_] = standings.get(id_, 0.0) + _CONTEST_WEIGHT * (share - mean)
    return standings
