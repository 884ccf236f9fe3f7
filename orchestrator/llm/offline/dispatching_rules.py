"""Rules for dispatching, as data: a weighted sum of features and products of two; the lowest sum starts.

A rule is a member of a general family, not an answer: it begins as shortest processing time and is changed by operators
only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from orchestrator.llm.offline.dispatching_features import ATTRIBUTES, FEATURES

MAX_TERMS = 14
MAX_FACTORS = 2
_MAX_WEIGHT = 1e6
_DIGITS = 6
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS: Mapping[str, int] = {word: number for number, word in enumerate(_WORDS, 2)}
_FUNCTION = re.compile(r"^def (?P<name>[a-z]\w{0,40})\((?P<arguments>[^()]{1,1000})\)", re.MULTILINE)
_MACHINES = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_WORDS)})\s+machines\b", re.IGNORECASE)
_RANGE = r"\b{}[^.;|()]{{0,80}}?\b(?:from|between|on|in)\s+\[?(\d{{1,4}})(?:,|\s+to|\s+and)\s+(\d{{1,4}})\b"
_OPERATIONS = re.compile(_RANGE.format(r"number\s+of\s+operations"))
_TIMES = re.compile(_RANGE.format(r"processing\s+times"))
_SCENARIO = re.compile(r"\((0?\.\d{1,4}),\s*(\d{1,3}(?:\.\d{1,4})?)\)")
_WARM_UP = re.compile(r"\bjobs\s+1\s+to\s+(\d{1,5})\s+are\s+the\s+warm-up\b", re.IGNORECASE)
_COUNTED = re.compile(r"\bjobs\s+(\d{1,5})\s+to\s+(\d{1,5})\s+(?:count|are\s+counted)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchingTask:
    """The figures of a task, as its description gives them."""

    function: str
    machines: int
    operations: tuple[int, int]
    """Fewest and most of a job, uniform."""
    times: tuple[int, int]
    """Shortest and longest of an operation, uniform."""
    scenarios: tuple[tuple[float, float], ...]
    """(utilisation, allowance)"""
    warm_up: int
    """Jobs that do not count."""
    counted: int

    @classmethod
    def read(cls, description: str, program: str) -> Self | None:
        """Find the figures in a task's description and its initial program; None: it is another kind of task."""
        function = next((found["name"] for found in _FUNCTION.finditer(program) if _is_ours(found["arguments"])), None)
        machines, operations = _MACHINES.search(description), _OPERATIONS.search(description)
        times, warm_up = _TIMES.search(description), _WARM_UP.search(description)
        counted = next((found for found in _COUNTED.finditer(description) if int(found[1]) > 1), None)
        if function is None or machines is None or operations is None:
            return None
        if times is None or warm_up is None or counted is None:
            return None
        task = cls(
            function=function,
            machines=_NUMBERS.get(machines[1].lower()) or int(machines[1]),
            operations=(int(operations[1]), int(operations[2])),
            times=(int(times[1]), int(times[2])),
            scenarios=tuple(
                dict.fromkeys((float(pair[1]), float(pair[2])) for pair in _SCENARIO.finditer(description))
            ),
            warm_up=int(warm_up[1]),
            counted=int(counted[2]) - int(counted[1]) + 1,
        )
        return task if task.is_sensible else None

    @property
    def is_sensible(self) -> bool:
        """Whether a shop can be simulated with the figures, at a size that an analysis can handle."""
        ranges = 1 <= self.operations[0] <= self.operations[1] <= 50 and 1 <= self.times[0] <= self.times[1]
        scenarios = 1 <= len(self.scenarios) <= 12 and all(0 < load < 1 for load, _ in self.scenarios)
        jobs = 1 <= self.warm_up <= 5000 and 10 <= self.counted <= 10_000
        return ranges and scenarios and jobs and 2 <= self.machines <= 50

    @property
    def mean_time(self) -> float:
        """Of an operation."""
        return sum(self.times) / 2

    @property
    def mean_work(self) -> float:
        """Of a job."""
        return self.mean_time * sum(self.operations) / 2

    def as_json(self) -> dict[str, Any]:
        """For the analysis script."""
        return {
            "machines": self.machines,
            "operations": self.operations,
            "times": self.times,
            "scenarios": self.scenarios,
            "warm_up": self.warm_up,
            "counted": self.counted,
        }


@dataclass(frozen=True, slots=True)
class Term:
    """A weight times the product of one or two features."""

    weight: float
    factors: tuple[str, ...]
    """Names, in the order of the library."""

    @property
    def is_sound(self) -> bool:
        """Whether the weight is a moderate number and the product tells one waiting operation from another."""
        places = [_PLACES.get(name, -1) for name in self.factors]
        distinct = any(FEATURES[name].stands_alone for name in self.factors if name in FEATURES)
        ordered = 1 <= len(places) <= MAX_FACTORS and places == sorted(places) and places[0] >= 0
        return ordered and distinct and abs(self.weight) <= _MAX_WEIGHT


@dataclass(frozen=True, slots=True)
class Rule:
    """Cost of a waiting operation: the sum of some terms. The lowest starts."""

    terms: tuple[Term, ...]

    @classmethod
    def shortest(cls) -> Self:
        """Shortest processing time."""
        return cls((Term(1.0, ("length",)),))

    @classmethod
    def from_json(cls, document: object) -> Self | None:
        """The inverse of `as_json`; None: it is not a rule that could be simulated."""
        if not isinstance(document, list | tuple) or not 1 <= len(document) <= MAX_TERMS:
            return None
        terms = [term for entry in document if (term := _term(entry)) is not None]
        distinct = {term.factors for term in terms}
        return cls(tuple(terms)) if len(terms) == len(distinct) == len(document) else None

    def as_json(self) -> list[list[Any]]:
        """For the analysis script and the handoff."""
        return [[term.weight, *term.factors] for term in self.terms]

    def has(self, factors: tuple[str, ...]) -> bool:
        """Whether there is a term of these features."""
        return any(term.factors == factors for term in self.terms)

    def scaled(self) -> Rule:
        """The same choices with a largest weight of 1; terms whose weight rounds to nothing are left out."""
        largest = max(abs(term.weight) for term in self.terms)
        if not largest:
            return Rule.shortest()
        terms = [Term(round(term.weight / largest, 4), term.factors) for term in self.terms]
        return Rule(tuple(term for term in terms if term.weight))

    def mixed_with(self, other: Rule) -> Rule:
        """Halfway between two rules; of the other's terms, those come along that there is room for."""
        weights = {term.factors: term.weight / 2 for term in self.terms}
        for term in other.terms:
            if term.factors in weights or len(weights) < MAX_TERMS:
                weights[term.factors] = weights.get(term.factors, 0.0) + term.weight / 2
        return Rule(tuple(Term(weight, factors) for factors, weight in weights.items())).scaled()


_PLACES: Mapping[str, int] = {name: place for place, name in enumerate(FEATURES)}


def product(first: str, second: str) -> tuple[str, ...]:
    """Two features as the factors of a term."""
    return tuple(sorted((first, second), key=_PLACES.__getitem__))


def _is_ours(arguments: str) -> bool:
    names = tuple(part.partition(":")[0].strip() for part in arguments.split(","))
    return tuple(name for name in names if name) == ATTRIBUTES


def _term(entry: object) -> Term | None:
    if not isinstance(entry, list | tuple) or not 2 <= len(entry) <= 1 + MAX_FACTORS:
        return None
    weight, *factors = entry
    if type(weight) not in {int, float} or not all(isinstance(name, str) for name in factors):
        return None
    if not abs(weight) <= _MAX_WEIGHT:  # also for what no float can hold, and not a number
        return None
    term = Term(round(float(weight), _DIGITS), tuple(factors))
    return term if term.is_sound else None
