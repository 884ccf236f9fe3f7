"""Draws of what is added to a package: sections, rules and parameters, weighted by what errors and ranks show."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.llm.offline.evolver.parents import Parent, rule_effect, section_effect
from orchestrator.llm.offline.evolver.plans import LIBRARY, SectionChoice
from orchestrator.llm.offline.evolver.rules import Rule, convention_ids, convention_rule
from orchestrator.llm.offline.evolver.sections import library
from orchestrator.llm.offline.evolver.symptoms import Symptom, section_weight

_EXPLORATION = 0.03
"""Weight of what no error speaks for."""
_DISCOURAGED = 0.2
"""Factor for what packages did worse with than without."""
_SWAPPED = 0.4
"""Factor for a rule that takes the place of its opposite."""
_FIXED = frozenset({"share", "nulls"})
"""Parameters that are percentages: doubling them means nothing."""
_STEMS: Mapping[str, str] = {
    "size_adaptation": r"context|large schema|schema size|token",
    "ddl": r"\bddl\b|schema|create table",
    "row_counts": r"row count|table size|statistics",
    "columns_and_samples": r"sample|example value|representative",
    "keys_and_cardinalities": r"foreign key|primary key|join|cardinalit|schema link",
    "enumerations": r"enumerat|categorical|distinct value|value link|value match|cell value",
    "ranges": r"range|minimum|maximum|numeric",
    "formats": r"format|date|pattern|normali[sz]",
    "semantic_hints": r"semantic|meaning|description|unit",
    "orphans": r"orphan|referential|integrity|dangling",
    "pitfalls": r"null|missing value|dirty|noise|ambigu|type mismatch",
}
_COMMON = frozenset({"which", "when", "only", "with", "from", "that", "than", "where", "their", "column", "question"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What draws go by."""

    chance: random.Random
    parents: Sequence[Parent]
    counts: Counter[Symptom]
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Convention to the share of wrong answers that it could have changed (`cues.evidence`)."""
    papers: str = ""
    """In lower case; not empty: what it mentions is drawn by how often."""
    refused: frozenset[str] = frozenset()
    """Ids of conventions that are not to come: tried without gain, or just left out."""
    among: frozenset[str] | None = None
    """Names of sections and ids of conventions that may be drawn; None: all."""

    def new_sections(self, present: Sequence[SectionChoice], number: int) -> list[SectionChoice]:
        """At most so many sections of the library that are not there yet."""
        names = {choice.name for choice in present}
        left = [name for name in library() if name not in names and self._may_be(name)]
        drawn = self._drawn(left, self._section_weight, number)
        return [SectionChoice(name=n, source=LIBRARY, parameters=library()[n].parameters) for n in drawn]

    def new_rules(self, present: Sequence[Rule], number: int) -> list[Rule]:
        """At most so many conventions that nobody here states yet; no two of them exclude each other."""
        said = frozenset[str]().union(*(rule.conventions for rule in present))
        against = frozenset[str]().union(*(rule.opposites for rule in present))
        left = [id_ for id_ in convention_ids() if id_ not in said | self.refused and self._may_be(id_)]
        rules: list[Rule] = []
        while left and len(rules) < number:
            (drawn,) = self._drawn(left, lambda id_: self._rule_weight(id_, against), 1)
            rules.append(convention_rule(drawn))
            gone = {drawn, *rules[-1].opposites}
            left = [id_ for id_ in left if id_ not in gone]
        return rules

    def varied(self, present: Sequence[SectionChoice], *, shrinks: bool) -> SectionChoice | None:
        """One section with one parameter doubled or halved; None: none has any.

        Args:
            present: To choose from.
            shrinks: Whether it must become less.
        """
        free = {choice.name: choice for choice in present if set(choice.parameters) - _FIXED}
        for name in self._drawn(list(free), self._section_weight, 1):
            choice = free[name]
            parameter = self.chance.choice(sorted(set(choice.parameters) - _FIXED))
            speaks_for = section_weight(name, self.counts) > 0
            factor = 0.5 if shrinks else 2.0 if speaks_for else self.chance.choice((0.5, 2.0))
            value = max(1, int(choice.parameters[parameter] * factor))
            return SectionChoice(name=name, source=choice.source, parameters={**choice.parameters, parameter: value})
        return None

    def doubted(self, present: Sequence[Rule]) -> Rule | None:
        """One rule to do without, the likelier the more wrong answers its opposite could have changed; None: none."""
        weights = {
            rule: _EXPLORATION + max((self.evidence.get(id_, 0.0) for id_ in rule.opposites), default=0.0)
            for rule in present
            if rule.conventions
        }
        return self.chance.choices(list(weights), weights=list(weights.values()))[0] if weights else None

    def _may_be(self, name: str) -> bool:
        return self.among is None or name in self.among

    def _section_weight(self, name: str) -> float:
        if self.papers:
            return _EXPLORATION / 10 + len(re.findall(_STEMS.get(name, name), self.papers))
        weight = _EXPLORATION + 2 * section_weight(name, self.counts)
        return weight * (_DISCOURAGED if section_effect(self.parents, name) < 0 else 1.0)

    def _rule_weight(self, identifier: str, against: frozenset[str]) -> float:
        rule = convention_rule(identifier)
        if self.papers:
            stems = sorted({word[:8] for word in re.findall(r"[a-z]{4,}", rule.text.lower()) if word not in _COMMON})
            weight = _EXPLORATION / 10 + sum(self.papers.count(stem) for stem in stems) / max(1, len(stems))
        else:
            weight = _EXPLORATION + 2 * self.evidence.get(identifier, 0.0)
        known = rule_effect(self.parents, rule)
        weight *= _DISCOURAGED if known < 0 else 1.5 if known > 0 else 1.0
        return weight * (_SWAPPED if identifier in against else 1.0)

    def _drawn(self, names: Sequence[str], weight: Callable[[str], float], number: int) -> list[str]:
        """Different names, each drawn in proportion to its weight."""
        left, drawn = list(names), list[str]()
        while left and len(drawn) < number:
            (name,) = self.chance.choices(left, weights=[weight(each) for each in left])
            left.remove(name)
            drawn.append(name)
        return drawn
