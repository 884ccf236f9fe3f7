"""What a text says of one column: `(TEXT, primary key): e.g. 'Joe', 'Ann'`, `min 3, max 90`, `-> singer.id`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.llm.offline.sql.analysis.notes import ColumnNote, Notes, TableNote

FACT_CHARACTERS = 60_000
"""Of one line; what is over it is not read."""
NAME = r"(?:\"[^\"\n]{1,120}\"|`[^`\n]{1,120}`|\[[^\]\n]{1,120}\]|[^\W\d][\w$]{0,119})"
_TYPE_WORDS = (
    "tinyint|smallint|mediumint|bigint|integer|int|unsigned|varchar|nvarchar|char|character|text|string|str|clob|real"
    "|float|double|numeric|number|decimal|boolean|bool|bit|datetime|timestamp|date|time|year|blob"
)
_TYPE = re.compile(rf"\b({_TYPE_WORDS})\b(?: ?\( ?\d+ ?(?:, ?\d+ ?)?\))?", re.IGNORECASE)
_TYPE_REACH = 40
_PRIMARY = re.compile(r"\bprimary key\b|\bPK\b|\bis_primary\b|🔑", re.IGNORECASE)
_NOT_PRIMARY = re.compile(r"\b(?:no|not (?:a |the )?|part of (?:the )?)primary key\b", re.IGNORECASE)
_TARGET = re.compile(
    r"(?:->|→|=>|⟶|\breferenc(?:es|ing)\b|\brefers to\b|\bFK(?: to)?:?|\bforeign key (?:to|into|for|of|on):?"
    r"|\bpoints? to\b|\bjoins? (?:with|to|on)\b|\blinks? to\b) *:? *"
    rf"(?P<table>{NAME}) ?(?:\. ?(?P<column>{NAME})|\( ?(?P<inner>{NAME}) ?\))",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?<![\w'])'((?:[^']|''|(?<=\w)'(?=\w))*)'(?![\w'])|(?<![\w\"])\"((?:[^\"\\]|\"\"|\\.)*)\"(?![\w\"])"
)
_FILLERS = r"(?: (?:values?|entries|rows?|are|is|include|of|\d+))*(?: ?\([^()\n]{0,40}\))?"
_MARKER = re.compile(
    r"(?:\be\.g\.|\beg\b|\bfor example|\bone of|\bsuch as|\bincluding) ?[:=]?"
    r"|(?:\bexamples?|\bsamples?|\bdistinct|\bunique|\bvalues?|\benum(?:eration)?s?|\bcategor(?:y|ies)|\btop|\bfrequent"
    rf"|\bmost (?:common|frequent)|\bincludes?|\bdomain|\ballowed|\boptions|\bin|∈){_FILLERS}"
    r"(?: ?[:=]| (?:are|is)\b|(?= ?['\"{\[]))",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(?:distinct|unique|top)\b[^:=]{0,40}[:=]? *[\d,]+(?= *(?:\Z|[;.|(]))", re.IGNORECASE)
_COUNT = re.compile(r"\s*(?:\((?:n ?= ?)?[\d,.%]+(?: rows| times)?\)|[x\u00d7:=] ?[\d,]+|\[[\d,]+\])\s*\Z")
_MORE = re.compile(r"\A(?:and |\+ ?)?\d* ?(?:more|others?|etc)\b.*|\A(?:…|\.\.\.).*", re.IGNORECASE)
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?|\d{4}-\d{2}-\d{2}(?:[ T][\d:]+)?"
_BOUNDS = re.compile(
    rf"\bmin(?:imum)?\b\W{{0,3}}['\"]?(?P<low>{_NUMBER})['\"]?.{{1,20}}?"
    rf"\bmax(?:imum)?\b\W{{0,3}}['\"]?(?P<high>{_NUMBER})"
    rf"|\b(?:range|between|from)\b\W{{0,4}}(?P<low2>{_NUMBER})['\"]?"
    rf" ?(?:\.\.\.?|to|and|-|\u2013|\u2014|,) ?['\"]?(?P<high2>{_NUMBER})",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"\bnot null\b|\bnullable\b|\bnulls?\b|\bprimary key\b|\bforeign key\b|\bpk\b|\bfk\b|\bunique\b|\bindex(?:ed)?\b"
    r"|\bauto ?increment\b|\brequired\b|\bcolumn\b|\bfield\b|\btype\b|\bdistinct\b|\bvalues?\b|\brows?\b|\bexamples?\b"
    r"|\bdefault\b.*|\d[\d,.%]*",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_][\w'-]*")
_IDLE = frozenset(["the", "a", "an", "with", "has", "have", "is", "of", "and", "to", "in", "for", "are", "no", "or"])
_TITLE_WORDS = 7
_LISTED_CHARACTERS = 300
"""Of a value without quotes."""


def bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1] if len(name) > 1 and name[0] in '"`[' else name


def begins_with_type(rest: str) -> bool:
    """Whether a type follows a name: `(TEXT, ...)`, `: INTEGER`, ` TEXT`."""
    return re.match(rf"[`\"*]* ?[:(\[,|\u2013\u2014-]* ?(?:{_TYPE_WORDS})\b", rest, re.IGNORECASE) is not None


def add_facts(text: str, table: TableNote, column: ColumnNote, notes: Notes, *, is_typed: bool = False) -> None:
    """Note what a text says of a column.

    Args:
        text: What follows the column's name; untrusted.
        table: The column's.
        column: Is changed.
        notes: Take keys and values.
        is_typed: Whether the type is known from elsewhere, so that no word of the text is one.
    """
    text = text[:FACT_CHARACTERS]
    said = _QUOTED.sub("''", text)
    if not is_typed and not column.type and (found := _TYPE.search(said[:_TYPE_REACH])) is not None:
        column.type = found.group(1).upper()
    if _PRIMARY.search(said) and not _NOT_PRIMARY.search(said):
        column.is_primary = True
    target = _TARGET.search(said)
    if target is not None:
        notes.add_key(
            table.name, (column.name,), bare(target["table"]), (bare(target["column"] or target["inner"] or ""),)
        )
    notes.add_values(column, values_in(text))
    bounds = _BOUNDS.search(text[:2_000])
    if bounds is not None and not column.bounds:
        column.bounds = tuple(
            number.replace(",", "") for number in bounds.group("low", "high", "low2", "high2") if number is not None
        )
    title = _title(said)
    column.title = column.title or title
    column.description = column.description or said.strip()[:600]


def values_in(text: str) -> Iterator[str]:
    """Values that a text lists: quoted ones, or else those behind a word that announces them."""
    marker = next((m for m in _MARKER.finditer(text) if _COUNTED.match(text, m.start()) is None), None)
    quoted = [found for found in _QUOTED.finditer(text) if marker is None or found.start() >= marker.end() - 1]
    if quoted:
        for found in quoted:
            single, double = found.groups()
            yield single.replace("''", "'") if single is not None else _unescaped(double or "")
        return
    if marker is None:
        return
    rest = text[marker.end() :].strip(" :=")
    opened = rest[:1]
    if opened in "[{(" and opened:
        rest = rest[1:].split({"[": "]", "{": "}", "(": ")"}[opened])[0]
    for part in re.split(r"\s*[,;|]\s+|,|;|\s\|\s", rest):
        value = _COUNT.sub("", part[:_LISTED_CHARACTERS].strip(" .")).strip()
        if _MORE.match(value) or value.count(" ") > 8:
            return
        if value:
            yield value


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace('""', '"')


def _title(said: str) -> str:
    """The few words that tell what a column holds; empty: the text says none, or is a whole explanation."""
    start = _MARKER.search(said)
    head = said[: start.start()] if start is not None else said
    head = _TARGET.sub(" ", head[:300]).split(". ")[0]
    head = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", head)
    head = _NOISE.sub(" ", _TYPE.sub(" ", head))
    words = _WORDS.findall(head)
    while words and words[-1].lower() in _IDLE:
        words.pop()
    while words and words[0].lower() in _IDLE:
        words.pop(0)
    return " ".join(words) if 0 < len(words) <= _TITLE_WORDS else ""
