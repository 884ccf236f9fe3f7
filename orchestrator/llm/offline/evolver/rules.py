"""Rules of instructions as text: taken from where they stand, told apart by what they say, put into other instructions.

A rule is an item of a list: a line that begins with a bullet or a number, and the indented lines below it. What it says
is told by the answering engine's own reading of it (`offline.sql.conventions`), or else by its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.llm.offline.sql.conventions import CONVENTIONS
from orchestrator.llm.offline.sql.instructions import conventions_in

PREFACE = """\
# How to answer

Answer with one SQLite query. The section before this one describes the database: it is all that is known of it.

## Rules
"""
GUIDES: Mapping[str, str] = {
    "ddl": "The statements under DDL hold all tables and columns: use no others.",
    "keys_and_cardinalities": "Join along the references under Keys and cardinalities.",
    "enumerations": "Enumerations lists every stored value of the columns that have few: look there before filtering.",
    "columns_and_samples": "Samples under Columns and samples show what a column holds: choose columns by them.",
    "formats": "Formats tells how dates and codes are written: write literals in the same way.",
    "pitfalls": "Read Pitfalls before using a column that it mentions.",
    "semantic_hints": "Semantic hints tells units, flags and the meaning of codes.",
    "orphans": "Orphans tells where a join loses rows.",
}
"""What instructions say of a section of the analysis, where it is there."""
MAX_BASE_CHARACTERS = 60_000
MAX_RULES = 80
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+(?P<text>\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,})")
_RULE_CHARACTERS = 600
_RULES_HEADING = "## Rules"
_OPPOSITES = {convention.id: convention.opposite for convention in CONVENTIONS}
_SENTENCES = {convention.id: convention.sentence for convention in CONVENTIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One item, as it stands in its instructions."""

    text: str
    """One or several lines, the bullet included."""

    @property
    def conventions(self) -> frozenset[str]:
        """Ids of what the answering engine understands of it; empty: nothing."""
        return _conventions(self.text)

    @property
    def key(self) -> str:
        """Equal for rules that say the same."""
        found = sorted(self.conventions)
        return "+".join(found) if found else " ".join(re.findall(r"\w+", self.text.lower()))

    @property
    def opposites(self) -> frozenset[str]:
        """Ids of the conventions that it excludes."""
        return frozenset(_OPPOSITES.get(id_, "") for id_ in self.conventions) - {""}


def read_rules(instructions: str) -> list[Rule]:
    """The items of all lists outside of fenced blocks, in their order; of equal ones the first."""
    found: dict[str, Rule] = {}
    for lines in _items(instructions[:MAX_BASE_CHARACTERS].split("\n")):
        rule = Rule(text="\n".join(lines))
        if len(rule.text) <= _RULE_CHARACTERS and len(found) < MAX_RULES:
            found.setdefault(rule.key, rule)
    return list(found.values())


def convention_rule(identifier: str) -> Rule:
    """A convention as an item."""
    return Rule(text=f"- {_SENTENCES[identifier]}")


def guide(section: str) -> Rule | None:
    """What instructions say of a section; None: nothing."""
    return Rule(text=f"- {GUIDES[section]}") if section in GUIDES else None


def convention_ids() -> tuple[str, ...]:
    """All that the answering engine understands, in a fixed order."""
    return tuple(_SENTENCES)


def without_conflicts(rules: Sequence[Rule]) -> list[Rule]:
    """The rules but for those that an earlier one says already or excludes."""
    kept: list[Rule] = []
    said: set[str] = set()
    excluded: set[str] = set()
    for rule in rules:
        is_known = rule.key in {other.key for other in kept} or (rule.conventions and rule.conventions <= said)
        if is_known or rule.conventions & excluded:
            continue
        kept.append(rule)
        said |= rule.conventions
        excluded |= rule.opposites
    return kept


def put_together(base: str, dropped: Iterable[str], added: Iterable[str]) -> str:
    """Instructions with other rules.

    Args:
        base: Instructions to start from, kept word by word but for the dropped rules; empty: our own preface.
        dropped: Texts of rules that go.
        added: Texts of rules that come, at the end: of two that exclude each other the later one holds.
    """
    start = base if base.strip() and len(base) <= MAX_BASE_CHARACTERS else PREFACE
    gone = set(dropped)
    groups = _grouped(start.rstrip("\n").split("\n"))
    kept = [line for group, is_item in groups if not is_item or "\n".join(group) not in gone for line in group]
    there = {"\n".join(group) for group in _items(kept)}
    new = [text for text in dict.fromkeys(added) if text not in gone and text not in there]
    last_heading = next((line.strip() for line in reversed(kept) if line.startswith("#")), "")
    heading = [] if not new or last_heading == _RULES_HEADING else ["", _RULES_HEADING, ""]
    if not heading and new and kept and kept[-1].strip() == _RULES_HEADING:
        heading = [""]
    return "\n".join([*kept, *heading, *new]).rstrip("\n") + "\n"


@lru_cache(maxsize=4096)
def _conventions(text: str) -> frozenset[str]:
    """Every draw asks this of every rule of every package."""
    return conventions_in(text)


def _items(lines: Sequence[str]) -> Iterator[list[str]]:
    return (group for group, is_item in _grouped(lines) if is_item)


def _grouped(lines: Sequence[str]) -> Iterator[tuple[list[str], bool]]:
    """(lines, whether they are an item with the indented lines below it); all other lines come one by one."""
    item: list[str] = []
    fence = ""
    for line in lines:
        if item and not fence and line.startswith((" ", "\t")) and line.strip():
            item.append(line)
            continue
        if item:
            yield item, True
            item = []
        opening = _FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opening is not None:
            fence = opening[1]
        elif _ITEM.match(line):
            item = [line]
            continue
        yield [line], False
    if item:
        yield item, True
