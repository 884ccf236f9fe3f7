"""In which parts of a question its words stand: what is asked for, which rows, groups, order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.llm.offline.sql.cues import EACH, extreme_of
from orchestrator.llm.offline.sql.words import Token

_WHERE = frozenset([
    "whose", "who", "that", "where", "with", "without", "having", "from", "in", "at", "by", "when", "among",
    "within", "on", "containing", "have", "using", "use", "which", "through", "via", "owned", "called", "named",
    "during", "except", "excluding", "not", "never", "play", "produce", "belong",
])  # fmt: skip


_IMPERATIVES = frozenset(
    {"list", "show", "find", "give", "return", "tell", "count", "display", "what", "how", "which", "report"}
)


_DIRECTIONS = frozenset({"ascending", "descending", "alphabetical", "increasing", "decreasing", "alphabetically"})
_ORDERED = frozenset({"ordered", "sorted", "arranged", "ranked", "order", "sort"})
ORDER_WORDS = _DIRECTIONS | _ORDERED
"""What a wish for an order is made of."""
_ASKED = frozenset({"the", "number", "how", "average", "total", "count", "its", "their"})
_ORDERING = frozenset({"by", "in", "from", "alphabetically", "according", "descending", "ascending", "them"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A wish for an order, and where its columns begin."""

    first: int
    descending: bool | None
    """None: not said."""
    alphabetical: bool


def orders(tokens: Sequence[Token]) -> Iterator[Order]:
    """Wishes for an order."""
    for place, token in enumerate(tokens):
        del token
        if not _starts_order(tokens, place):
            continue
        yield _order(tokens, place)
        return
    for place, token in enumerate(tokens):
        if token.lower in {
            "ascending",
            "descending",
            "alphabetical",
            "alphabetically",
            "decreasing",
            "increasing",
            "lexicographical",
        }:
            yield _order(tokens, place)
            return


def _starts_order(tokens: Sequence[Token], place: int) -> bool:
    """Whether `ordered`, `sort` and their like ask for an order here, and are not what somebody did."""
    low = tokens[place].lower
    following = {token.lower for token in tokens[place + 1 : place + 2]}
    if low in {"ordered", "sorted", "arranged", "ranked", "ordering"}:
        return not following.isdisjoint(_ORDERING)
    if low in {"order", "sort", "arrange"}:
        begins = place == 0 or tokens[place - 1].lower in {"and", ",", ".", "then"}
        return begins or bool(following & {"by", "them"})
    return False


def _order(tokens: Sequence[Token], place: int) -> Order:
    lows = {token.lower for token in tokens}
    down = not lows.isdisjoint({"descending", "decreasing", "desc"}) or _goes_down(tokens)
    up = not lows.isdisjoint({"ascending", "increasing", "asc"})
    return Order(
        first=place,
        descending=True if down else False if up else None,
        alphabetical=not lows.isdisjoint({"alphabetical", "alphabetically", "lexicographical", "lexicographically"}),
    )


def _goes_down(tokens: Sequence[Token]) -> bool:
    """`from the oldest to the youngest`."""
    for place, token in enumerate(tokens[:-2]):
        if token.lower == "from":
            found = [way for t in tokens[place + 1 : place + 3] if (way := extreme_of(t.lower)) is not None]
            if found:
                return found[0]
    return False


def regions(tokens: Sequence[Token]) -> tuple[str, ...]:
    """For each token `head` (what is asked for), `where` (which rows), `group` or `order`."""
    labels: list[str] = []
    label = "head"
    starts = True
    for place, token in enumerate(tokens):
        low = token.lower
        following = tokens[place + 1].lower if place + 1 < len(tokens) else ""
        before = tokens[place - 1].lower if place else ""
        if token.kind == "mark":
            starts = starts or low in ".?!;"
            if starts or (low == "," and label == "group"):
                label = "head"
        else:
            label = _next_label(label, low, before, following, starts=starts)
            starts = False
        labels.append(label)
    return tuple(labels)


def _is_noun(word: str) -> bool:
    """Whether `by` after this word hardly names a doer: `number of shops by city`, but not `directed by`."""
    return (
        not word.endswith(("ed", "en", "wn", "ade", "ung", "ld", "ught", "one", "aid", "ent", "un", "ut"))
        and word.isalpha()
    )


def _next_label(label: str, low: str, before: str, following: str, *, starts: bool) -> str:
    """The region of a word, given that of the word before it."""
    asks_again = low in _IMPERATIVES and (before in {"and", ",", "also", "then"} or starts)
    if starts or (asks_again and label != "head"):
        return _first_label(low, following)
    if low in _DIRECTIONS or (following in _ORDERING and low in _ORDERED):
        return "order"
    if _begins_group(label, low, before, following):
        return "group"
    if label == "group" and low == "and" and following in _ASKED:
        return "head"
    if label == "order" or (label == "group" and low not in _WHERE):
        return label
    return "where" if low in _WHERE else label


def _first_label(low: str, following: str) -> str:
    """The region that a sentence begins with."""
    if low in {"sort", "order", "rank", "arrange"}:
        return "order"
    if low in {"in", "for", "from"} and following not in {"which", "what", "how"}:
        return "group" if following in EACH else "where"
    return "head"


def _begins_group(label: str, low: str, before: str, following: str) -> bool:
    """Whether groups are named from here on: `for each city`, `by city`."""
    if low == "by" and (before == "grouped" or (label == "head" and _is_noun(before))):
        return True
    return low in EACH or (low in {"for", "of", "in", "from", "by", "to", "at"} and following in EACH)
