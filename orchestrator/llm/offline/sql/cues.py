"""What a question's function words ask for: comparisons, superlatives, aggregates, order, negation, and its regions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.llm.offline.sql.words import Token

AGGREGATES = {
    "average": "AVG",
    "mean": "AVG",
    "avg": "AVG",
    "maximum": "MAX",
    "max": "MAX",
    "minimum": "MIN",
    "min": "MIN",
    "total": "SUM",
    "sum": "SUM",
}
DISTINCT = frozenset({"distinct", "different", "unique"})
NEGATIONS = frozenset(
    {"not", "no", "never", "without", "except", "excluding", "neither", "nor", "cannot", "exclude", "other"}
)
"""`other` only before `than`."""
EACH = frozenset({"each", "every", "per"})
_COMPARATORS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("greater", "than", "or", "equal", "to"), ">="),
    (("more", "than", "or", "equal", "to"), ">="),
    (("larger", "than", "or", "equal", "to"), ">="),
    (("less", "than", "or", "equal", "to"), "<="),
    (("no", "less", "than"), ">="),
    (("not", "less", "than"), ">="),
    (("no", "fewer", "than"), ">="),
    (("no", "more", "than"), "<="),
    (("not", "more", "than"), "<="),
    (("at", "least"), ">="),
    (("minimum", "of"), ">="),
    (("at", "most"), "<="),
    (("equal", "to"), "="),
    (("on", "or", "after"), ">="),
    (("on", "or", "before"), "<="),
    (("over",), ">"),
    (("above",), ">"),
    (("exceeding",), ">"),
    (("exceed",), ">"),
    (("exceeds",), ">"),
    (("after",), ">"),
    (("since",), ">="),
    (("below",), "<"),
    (("under",), "<"),
    (("before",), "<"),
)
_MORE = {
    **dict.fromkeys(("more", "greater", "higher", "larger", "bigger", "better"), ""),
    "older": "age",
    "taller": "height",
    "heavier": "weight",
    "longer": "length",
    "later": "date",
    "richer": "money",
    "faster": "speed",
    "newer": "year",
    "stronger": "strength",
}
_LESS = {
    **dict.fromkeys(("less", "fewer", "lower", "smaller"), ""),
    "younger": "age",
    "shorter": "height",
    "lighter": "weight",
    "earlier": "date",
    "cheaper": "price",
    "slower": "speed",
}
_AFTERWARDS = {
    "more": ">=",
    "above": ">=",
    "after": ">=",
    "later": ">=",
    "over": ">=",
    "greater": ">=",
    "higher": ">=",
    "less": "<=",
    "fewer": "<=",
    "below": "<=",
    "before": "<=",
    "earlier": "<=",
    "lower": "<=",
}
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?(?: \d{2}:\d{2}(?::\d{2})?)?")
_TIME = (("date", True), ("year", True), ("time", True))
_TIME_BACK = (("date", False), ("year", False), ("time", False))
_SUPERLATIVES: dict[str, tuple[bool, tuple[tuple[str, bool], ...]]] = {
    **dict.fromkeys(
        ("highest", "largest", "biggest", "greatest", "most", "maximum", "max", "top", "highly"), (True, ())
    ),
    **dict.fromkeys(("lowest", "smallest", "least", "fewest", "minimum", "min", "lower"), (False, ())),
    "oldest": (True, (("age", True), ("birth", False), ("year", False))),
    "youngest": (False, (("age", False), ("birth", True))),
    "tallest": (True, (("height", True),)),
    "heaviest": (True, (("weight", True),)),
    "lightest": (False, (("weight", False),)),
    "longest": (True, (("length", True), ("duration", True), ("time", True))),
    "shortest": (False, (("height", False), ("length", False), ("duration", False))),
    "latest": (True, _TIME),
    "newest": (True, _TIME),
    "recent": (True, _TIME),
    "recently": (True, _TIME),
    "earliest": (False, _TIME_BACK),
    "first": (False, _TIME_BACK),
    "last": (True, _TIME),
    "cheapest": (False, (("price", False), ("cost", False))),
    "expensive": (True, (("price", True), ("cost", True))),
    "fastest": (True, (("speed", True), ("time", False))),
    "slowest": (False, (("speed", False), ("time", True))),
    "strongest": (True, (("strength", True),)),
    "best": (True, (("rating", True), ("score", True), ("rank", False))),
    "worst": (False, (("rating", False), ("score", False), ("rank", True))),
}
_COUNTED = frozenset({"common", "popular", "frequent", "frequently", "commonly", "often"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison with numbers, or with an average (`numbers` is empty)."""

    first: int
    last: int
    op: str
    """A comparison operator, or `BETWEEN`."""
    numbers: tuple[str, ...]
    concept: str = ""
    """What is compared, as far as the word says: `older` compares ages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Superlative:
    """The most or least of something."""

    first: int
    last: int
    descending: bool
    concepts: tuple[tuple[str, bool], ...]
    """(what it is about, descending in that) of words like `youngest`."""
    is_count: bool
    """The most common one."""
    limit: int | None
    """As a number says it; None: one, or as many as there are."""


def comparisons(tokens: Sequence[Token]) -> Iterator[Comparison]:
    """All comparisons, from left to right."""
    place = 0
    while place < len(tokens):
        found = _comparison(tokens, place)
        if found is None:
            place += 1
        else:
            yield found
            place = found.last


def _comparison(tokens: Sequence[Token], place: int) -> Comparison | None:
    lows = [token.lower for token in tokens[place : place + 6]]
    between = _between(tokens, place, lows)
    if between is not None:
        return between
    for words, op in _COMPARATORS:
        if tuple(lows[: len(words)]) == words:
            return _with_operand(tokens, place, place + len(words), op, "")
    if len(lows) > 1 and lows[1] == "than" and (lows[0] in _MORE or lows[0] in _LESS):
        op = ">" if lows[0] in _MORE else "<"
        concept = _MORE.get(lows[0], "") or _LESS.get(lows[0], "")
        return _with_operand(tokens, place, place + 2, op, concept)
    if (lows[0] in _MORE or lows[0] in _LESS) and "than" in lows[2:4]:
        after = place + lows.index("than") + 1
        return _with_operand(tokens, place, after, ">" if lows[0] in _MORE else "<", "")
    if tokens[place].number is not None and len(lows) > 2 and lows[1] in {"or", "and"} and lows[2] in _AFTERWARDS:
        number = tokens[place].number or ""
        return Comparison(first=place, last=place + 3, op=_AFTERWARDS[lows[2]], numbers=(number,))
    return None


def _between(tokens: Sequence[Token], place: int, lows: list[str]) -> Comparison | None:
    if lows[0] not in {"between", "from"} or len(lows) < 4 or lows[2] not in {"and", "to"}:
        return None
    low, high = tokens[place + 1].number, tokens[place + 3].number
    if low is None or high is None:
        return None
    return Comparison(first=place, last=place + 4, op="BETWEEN", numbers=(low, high))


def _with_operand(tokens: Sequence[Token], first: int, after: int, op: str, concept: str) -> Comparison | None:
    """The comparison whose number or average follows within four tokens."""
    for at in range(after, min(after + 4, len(tokens))):
        number = tokens[at].number
        literal = number or date_literal(tokens[at])
        if literal is not None:
            return Comparison(first=first, last=at + 1, op=op, numbers=(literal,), concept=concept)
        if tokens[at].lower in {"average", "mean"}:
            return Comparison(first=first, last=at + 1, op=op, numbers=(), concept=concept)
        if tokens[at].kind != "word":
            break
    return None


def date_literal(token: Token) -> str | None:
    """The literal of a date that is written as SQLite has it; None: the token is none."""
    if _DATE.fullmatch(token.text.strip()):
        return f"'{token.text.strip()}'"
    return None


def extreme_of(word: str) -> bool | None:
    """Whether a superlative is the greatest of its kind; None: the word is none."""
    found = _SUPERLATIVES.get(word)
    return None if found is None else found[0]


def superlatives(tokens: Sequence[Token]) -> Iterator[Superlative]:
    """All superlatives, from left to right; `most expensive` is one."""
    place = 0
    while place < len(tokens):
        found = _superlative(tokens, place)
        if found is None:
            place += 1
        else:
            yield found
            place = found.last


def _superlative(tokens: Sequence[Token], place: int) -> Superlative | None:
    low = tokens[place].lower
    if low not in _SUPERLATIVES or (place and tokens[place - 1].lower == "at") or low == "lower":
        return None
    descending, concepts = _SUPERLATIVES[low]
    following = tokens[place + 1].lower if place + 1 < len(tokens) else ""
    last = place + 1
    if low in {"first", "last"} and following in {"name", "names", "and"}:
        return None
    if low in {"most", "least"} and following in _COUNTED:
        return Superlative(first=place, last=last + 1, descending=low == "most", concepts=(), is_count=True, limit=None)
    if low in {"most", "least"} and following in _SUPERLATIVES:
        down, concepts = _SUPERLATIVES[following]
        descending = down if low == "most" else not down
        concepts = tuple((concept, way if low == "most" else not way) for concept, way in concepts)
        last += 1
    limit = None
    for beside in (last, place - 1):
        number = tokens[beside].number if 0 <= beside < len(tokens) else None
        if number is not None and "." not in number and 0 < int(number) <= 100:
            limit = int(number)
            last = max(last, beside + 1)
    if low == "top" and last < len(tokens) and tokens[last].lower in _SUPERLATIVES:
        descending, concepts = _SUPERLATIVES[tokens[last].lower]
        last += 1
    return Superlative(first=place, last=last, descending=descending, concepts=concepts, is_count=False, limit=limit)
