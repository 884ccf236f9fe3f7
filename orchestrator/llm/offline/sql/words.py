"""English as far as questions of databases need it: tokens, stems, synonyms, and what names are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

MAX_QUESTION_CHARACTERS = 2_000
_MAX_TOKENS = 200
_TOKEN = re.compile(
    r"\"(?P<double>[^\"]{1,120})\"|(?<![\w])'(?P<single>[^']{1,120}?)'(?![\w])|(?P<number>\d[\d,]*(?:\.\d+)?(?![\w-]))"
    r"|(?P<word>[^\W_]+(?:[-_.@][^\W_]+)*)|(?P<mark>[.?!;:,()%/])"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
_IRREGULAR = {
    "people": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
    "movies": "movie",
    "cities": "city",
    "series": "series",
    "species": "species",
    "has": "have",
    "had": "have",
    "was": "be",
    "is": "be",
    "are": "be",
    "were": "be",
    "colour": "color",
    "colours": "color",
    "data": "data",
    "written": "write",
    "wrote": "write",
    "won": "win",
    "taught": "teach",
    "older": "old",
    "younger": "young",
    "taller": "tall",
    "heavier": "heavy",
    "weigh": "weight",
    "weighs": "weight",
}
_NOT_PLURAL = frozenset({"gas", "yes", "his", "its", "as", "does", "always", "perhaps", "lens"})
_ABBREVIATIONS = {
    "num": ("number",),
    "no": ("number",),
    "nbr": ("number",),
    "nr": ("number",),
    "fname": ("first", "name"),
    "lname": ("last", "name"),
    "mname": ("middle", "name"),
    "firstname": ("first", "name"),
    "lastname": ("last", "name"),
    "fullname": ("full", "name"),
    "username": ("user", "name"),
    "dob": ("birth", "date"),
    "birthdate": ("birth", "date"),
    "birthday": ("birth", "date"),
    "yr": ("year",),
    "qty": ("quantity",),
    "amt": ("amount",),
    "avg": ("average",),
    "addr": ("address",),
    "tel": ("phone",),
    "dept": ("department",),
    "desc": ("description",),
    "hs": ("high", "school"),
}
_SYNONYMS = (
    ("name", "title", "call", "named"),
    ("country", "nation", "nationality", "origin"),
    ("id", "identifier", "identification"),
    ("location", "place", "where"),
    ("salary", "earnings", "pay", "income", "wage"),
    ("price", "cost", "expensive", "cheap"),
    ("age", "old", "young"),
    ("sex", "gender"),
    ("type", "kind", "category", "sort"),
    ("length", "duration", "long"),
    ("height", "tall"),
    ("weight", "heavy", "weigh"),
    ("start", "begin", "from"),
    ("end", "finish"),
    ("shop", "store"),
    ("movie", "film"),
    ("company", "firm", "business"),
    ("job", "occupation", "profession"),
    ("person", "people", "individual"),
    ("teacher", "instructor"),
    ("employee", "worker", "staff"),
    ("amount", "quantity"),
    ("area", "region"),
    ("option", "choice"),
    ("award", "win", "prize"),
    ("date", "day", "when"),
    ("first", "given"),
    ("last", "family", "surname"),
    ("phone", "telephone"),
    ("source", "depart", "departing", "leave", "leaving", "departure", "originate"),
    ("destination", "arrive", "arriving", "land", "landing", "arrival", "into", "to"),
    ("begin", "start"),
    ("build", "built", "construct"),
    ("rank", "ranking"),
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, quoted text or mark of a question."""

    text: str
    """As written, without its quotes."""
    lower: str
    stem: str
    kind: str
    """`word`, `number`, `quoted` or `mark`."""

    @property
    def number(self) -> str | None:
        """The number it stands for, as a SQL literal; None: none."""
        if self.kind == "number":
            return self.text.replace(",", "")
        if self.lower in _NUMBER_WORDS:
            return str(_NUMBER_WORDS[self.lower])
        return None


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Lower case, singular; verbs lose nothing but a final s."""
    low = word.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if len(low) > 4 and low.endswith("ies"):
        return low[:-3] + "y"
    if len(low) > 4 and low.endswith(("sses", "xes", "zes", "ches", "shes", "oes", "uses")):
        return low[:-2]
    if len(low) >= 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")) and low not in _NOT_PLURAL:
        return low[:-1]
    return low


def tokenize(question: str) -> tuple[Token, ...]:
    """The first 200 tokens of a question, within its first 2,000 characters; possessive endings are dropped."""
    text = re.sub(r"[\u2018\u2019]", "'", question[:MAX_QUESTION_CHARACTERS])
    text = re.sub(r"[\u201c\u201d]", '"', text)
    text = re.sub(r"(?<=\w)n't\b", " not", text)
    text = re.sub(
        r"\bfirst and last (name)(?=s?\b)", r"first \1 and last \1", drop_possessives(text), flags=re.IGNORECASE
    )
    tokens = []
    for found in islice(_TOKEN.finditer(text), _MAX_TOKENS):
        kind = found.lastgroup or "mark"
        content = found.group(kind)
        kind = "quoted" if kind in {"double", "single"} else kind
        tokens.append(Token(content, content.lower(), stem(content), kind))
    return tuple(tokens)


def drop_possessives(text: str) -> str:
    """`shop's` becomes `shop`; an apostrophe that may close a quotation stays."""
    return re.sub(r"(?<=\w)'s\b|(?<=s)'(?=\s)(?![^']*'(?:\W|$))", "", text)


@lru_cache(maxsize=8192)
def name_words(name: str) -> tuple[str, ...]:
    """Stems of the words a name is made of, split at underscores and changes of case, abbreviations spelled out."""
    words: list[str] = []
    for chunk in re.split(r"[^0-9A-Za-z\u0080-\uffff]+", name[:120]):
        parts = [chunk] if chunk.lower() in _ABBREVIATIONS else _PART.findall(chunk)
        for part in parts:
            words.extend(_ABBREVIATIONS.get(part.lower(), (stem(part),)))
    return tuple(words)


@lru_cache(maxsize=65536)
def likeness(left: str, right: str) -> float:
    """How far two stems mean the same, 0 to 1: equal, synonyms, or one an abbreviation or a form of the other."""
    if left == right:
        return 1.0
    if any(_belongs(left, group) and _belongs(right, group) for group in _SYNONYMS):
        return 0.8
    return _form_likeness(*sorted((left, right), key=len))


def _form_likeness(short: str, long: str) -> float:
    """How far two words look like forms of one: a beginning, an end, a common stem, a slip of the pen."""
    common = 0
    while common < len(short) and short[common] == long[common]:
        common += 1
    if len(short) >= 4 and common == len(short):
        return 0.85
    if len(short) >= 4 and long.endswith(short):
        return 0.75
    if common >= 5 and common >= len(short) - 2 and common >= 0.55 * len(long):
        return 0.7
    if len(short) >= 5 and common >= 2 and abs(len(short) - len(long)) <= 1 and _is_one_edit(short, long):
        return 0.65
    return 0.0


def _belongs(word: str, group: Sequence[str]) -> bool:
    """Whether a word is one of a group, or an abbreviation of one."""
    return word in group or (len(word) >= 4 and any(member.startswith(word) for member in group))


def _is_one_edit(short: str, long: str) -> bool:
    """Whether a single letter differs, is missing, or two neighbours are swapped."""
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) == len(long):
        swapped = short[at + 1 : at + 2] + short[at : at + 1] + short[at + 2 :]
        return short[at + 1 :] == long[at + 1 :] or swapped == long[at:]
    return short[at:] == long[at + 1 :]
