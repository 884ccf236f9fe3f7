"""Lines of prose and Markdown: headings of tables, lists of columns, sentences about `table.column`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.llm.offline.sql.analysis.facts import FACT_CHARACTERS, NAME, add_facts, bare, begins_with_type
from orchestrator.llm.offline.sql.analysis.grids import Grids
from orchestrator.llm.offline.sql.analysis.notes import ColumnNote, Firmness, Notes, TableNote
from orchestrator.llm.offline.sql.analysis.phrases import indent, introduces, is_sentence, listed_columns, tells

MAX_LINES = 60_000
_LEAD = r"[-*•+>#= \t]*(?:\d{1,3}[.)][ \t]+)?"
_TABLE = re.compile(
    rf"{_LEAD}(?:table|view|relation|entity)(?: name)? ?[:=\-\u2013\u2014]? ?(?P<name>{NAME})(?P<rest>.*)",
    re.IGNORECASE,
)
_HEADING = re.compile(
    rf"[ \t]*(?:#{{1,6}}[ \t]+(?:\d{{1,3}}[.)][ \t]+)?|=+[ \t]*|--+[ \t]+|\d{{1,3}}[.)][ \t]+)"
    rf"(?P<name>{NAME})(?P<rest>[^\w\n].*)?\Z",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"(?P<name>{NAME}) ?(?P<rest>\([^()]*\) ?)?:?[ \t]*\Z")
_OPENING = re.compile(rf"{_LEAD}(?:table|view)(?: name)? ?[:=-]? ?(?=\w)|#{{1,6}}[ \t]+", re.IGNORECASE)
_SIZE = re.compile(r"\(\D{0,10}\d[\d,]* (?:rows?|records?|entries|tuples|columns?)\b", re.IGNORECASE)
_INLINE = re.compile(rf"{_LEAD}(?P<name>{NAME}) ?(?:\(|: ?\[|, ?columns ?= ?\[|: )(?P<body>.+)", re.IGNORECASE)
_PATH = re.compile(rf"{_LEAD}(?P<table>{NAME})\.(?P<column>{NAME})(?P<rest>.*)")
_RELATION = re.compile(
    rf"(?P<table>{NAME}) ?(?:\. ?(?P<column>{NAME})|\( ?(?P<inner>{NAME}) ?\))[`\"*)]* ?"
    r"(?:->|-->|→|=>|⟶|==?|<->|↔|references|refers to|foreign key to|points to|joins?(?: with| to| on)?|links? to"
    r"|matches)"
    rf" ?[(`\"*]*(?P<table2>{NAME}) ?(?:\. ?(?P<column2>{NAME})|\( ?(?P<inner2>{NAME}) ?\))",
    re.IGNORECASE,
)
_PRIMARY = re.compile(rf"{_LEAD}primary keys? ?[:=(is ]*(?P<names>[^.]+)", re.IGNORECASE)
_FOREIGN = re.compile(
    rf"foreign key[: (]+(?P<column>{NAME})\)? (?:references|refers to|->|→|to) "
    rf"(?P<table2>{NAME}) ?(?:[.(] ?(?P<column2>{NAME}))?",
    re.IGNORECASE,
)
_COLUMN_WORD = re.compile(r"\A(?:column|field|attribute)s?\b[ :=]*", re.IGNORECASE)
_NO_NAMES = frozenset([
    "columns", "column", "rows", "row", "keys", "key", "primary", "foreign", "sample", "samples", "example",
    "examples", "schema", "database", "tables", "overview", "summary", "relationships", "notes", "note",
    "values", "value", "indexes", "index", "statistics", "description", "details", "fields", "the", "this",
    "a", "an", "each", "use", "type", "types", "data", "unique", "distinct", "range", "min", "max", "nulls",
    "count", "total", "top", "total_rows", "row_count", "contents", "analysis", "introduction", "joins",
    "join", "in", "when", "for", "if", "all", "some", "with", "and", "cardinality", "formats", "format",
    "patterns", "quality", "important", "warning", "conventions", "instructions",
])  # fmt: skip


@dataclass(slots=True)
class _Place:
    """Where in the text the reader is."""

    table: TableNote | None = None
    column: ColumnNote | None = None
    indent: int = 0


class LineReader:
    """Reads a text without its statements and documents, line by line."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._place = _Place()
        self._grids = Grids(notes)
        self._declared = any(table.firmness is Firmness.DECLARED for table in notes.tables.values())

    def enter(self, table: str) -> None:
        """What follows is about a table, if there is one of that name."""
        self._enter(self._notes.find(table))

    def line(self, line: str) -> None:
        """Note what one line says."""
        is_bold = line.startswith(("**", "__"))
        line = line[:FACT_CHARACTERS].replace("**", "")
        if not line.strip() or line.strip().startswith("```"):
            self._grids.end()
            return
        self._relations(line)
        if self._heading(line, is_bold=is_bold) or self._grids.line(line, self._place.table):
            return
        if self._path(line) or self._primary(line) or self._item(line) or self._more(line):
            return
        self._inline(line)

    def _enter(self, table: TableNote | None) -> None:
        self._place = _Place(table=table)
        self._grids.end()

    def _heading(self, line: str, *, is_bold: bool) -> bool:
        spaced = self._spaced(line)
        if spaced is not None:
            self._enter(spaced)
            return True
        found = _TABLE.fullmatch(line)
        if found is not None and self._named(found["name"], found["rest"], Firmness.NAMED):
            return True
        found = _HEADING.fullmatch(line) or _ALONE.fullmatch(line)
        if found is None:
            return False
        if self._notes.find(bare(found["name"])) is None and not self._may_head(line, found, is_bold=is_bold):
            return False
        return self._named(found["name"], found["rest"] or "", Firmness.GUESSED)

    def _may_head(self, line: str, found: re.Match[str], *, is_bold: bool) -> bool:
        """Whether a line with an unknown name may begin a table, rather than tell of a column."""
        if self._place.table is not None and line[:1].isspace():
            return False
        has_size = _SIZE.search(found["rest"] or "") is not None
        if line.lstrip()[0].isdigit() and not has_size:
            return False  # the first of a numbered list of columns
        return found.re is _HEADING or is_bold or line.rstrip().endswith(":") or has_size

    def _spaced(self, line: str) -> TableNote | None:
        """The known table of several words that a heading names without quotes."""
        found = _OPENING.match(line)
        low = line[found.end() :].lower() if found is not None else ""
        named = [table for name, table in self._notes.tables.items() if " " in name and low.startswith(name)]
        return max(named, key=lambda table: len(table.name), default=None)

    def _named(self, name: str, rest: str, firmness: Firmness) -> bool:
        plain = bare(name)
        known = self._notes.find(plain)
        if known is None and (plain.lower() in _NO_NAMES or is_sentence(rest)):
            return False
        if known is None and self._declared and firmness is Firmness.GUESSED:
            self._enter(None)
            return True
        table = known or self._notes.table(plain, firmness)
        self._enter(table)
        if table is not None and known is None and (listed := listed_columns(rest)):
            self._columns(table, listed)
        return True

    def _columns(self, table: TableNote, listed: list[tuple[str, str]]) -> None:
        for name, rest in listed:
            column = self._notes.column(table, name)
            if column is not None:
                add_facts(rest, table, column, self._notes)

    def _relations(self, line: str) -> None:
        for found in _RELATION.finditer(line[:20_000]) if "." in line or "(" in line else ():
            ends = (bare(found["column"] or found["inner"]),), (bare(found["column2"] or found["inner2"]),)
            self._notes.add_key(bare(found["table"]), ends[0], bare(found["table2"]), ends[1])
        table = self._place.table
        own = _FOREIGN.search(line[:2_000])
        if own is not None and table is not None:
            self._notes.add_key(table.name, (bare(own["column"]),), bare(own["table2"]), (bare(own["column2"] or ""),))

    def _path(self, line: str) -> bool:
        found = _PATH.fullmatch(line)
        if found is None:
            return False
        table = self._notes.find(bare(found["table"]))
        if table is None and not self._declared and tells(found["rest"]):
            table = self._notes.table(bare(found["table"]), Firmness.NAMED)
        if table is None:
            return False
        column = table.column(bare(found["column"]))
        if column is None and table.firmness is not Firmness.DECLARED:
            column = self._notes.column(table, bare(found["column"]))
        if column is not None:
            if _RELATION.search(line[:20_000]) is None:  # that is noted already, and tells nothing of the column
                add_facts(found["rest"], table, column, self._notes, is_typed=bool(column.type))
            if table is not self._place.table:
                self._enter(table)
            self._place.column, self._place.indent = column, indent(line)
        return column is not None

    def _primary(self, line: str) -> bool:
        found = _PRIMARY.fullmatch(line)
        table = self._place.table
        if found is None or table is None:
            return False
        named = [table.column(bare(name)) for name in re.findall(NAME, found["names"][:1_000])]
        for column in named:
            if column is not None:
                column.is_primary = True
        return any(column is not None for column in named)

    def _item(self, line: str) -> bool:
        """A line about a column of the table that is spoken of."""
        table = self._place.table
        if table is None:
            return False
        start = re.match(r"[ \t]*(?:[-*•+(]|\d{1,3}[.)])?[ \t]*", line)
        text = line[start.end() :] if start is not None else line
        text = _COLUMN_WORD.sub("", text) if len(text) > 8 else text
        known = self._known(table, text)
        if known is not None:
            column, rest = known
            add_facts(rest, table, column, self._notes, is_typed=bool(column.type))
        elif table.firmness is Firmness.DECLARED or not (
            line[:1].isspace() or line[:1] in "-*•+(" or line[:1].isdigit()
        ):
            return False
        else:
            made = self._new(table, line, text)
            if made is None:
                return False
            column = made
        self._place.column, self._place.indent = column, indent(line)
        return True

    def _known(self, table: TableNote, text: str) -> tuple[ColumnNote, str] | None:
        """The column whose name a text begins with, and what follows."""
        quoted = re.match(NAME, text)
        if quoted is not None and quoted.group()[0] in '"`[' and (found := table.column(bare(quoted.group()))):
            return found, text[quoted.end() :]
        low = text.lower()
        first = re.split(r"[^\w$./()%&-]", low, maxsplit=1)[0]
        for word in dict.fromkeys((first, first.rstrip(":.,;()-"), (re.match(r"\w+", low) or [""])[0])):
            for column in table.by_word.get(word, ()):
                after = low[len(column.name) : len(column.name) + 1]
                if low.startswith(column.name.lower()) and not (after.isalnum() or after in {"_", "."}):
                    return column, text[len(column.name) :]
        return None

    def _new(self, table: TableNote, line: str, text: str) -> ColumnNote | None:
        found = re.match(rf"(?P<name>{NAME})(?P<rest>.*)", text)
        if found is None or (bare(found["name"]).lower() in _NO_NAMES and not begins_with_type(found["rest"])):
            return None
        deeper = self._place.column is not None and indent(line) > self._place.indent
        if deeper or not introduces(found["rest"]):
            return None
        column = self._notes.column(table, bare(found["name"]))
        if column is not None:
            add_facts(found["rest"], table, column, self._notes)
        return column

    def _more(self, line: str) -> bool:
        """A line that stands deeper than its column's goes on about it."""
        table, column = self._place.table, self._place.column
        if table is None or column is None or indent(line) <= self._place.indent:
            return False
        add_facts(line, table, column, self._notes, is_typed=bool(column.type))
        return True

    def _inline(self, line: str) -> None:
        """`singer(id, name, country)` and its like."""
        found = _INLINE.fullmatch(line)
        if found is None or self._declared or bare(found["name"]).lower() in _NO_NAMES:
            return
        listed = listed_columns("(" + found["body"].rstrip(" .;)]") + ")")
        known = self._notes.find(bare(found["name"]))
        is_item = any(begins_with_type(f" {name}") or name.lower() in _NO_NAMES for name, _ in listed[:2])
        is_list = len(listed) >= 2 and not is_item and ("(" in line or "[" in line)
        if is_list and (known is None or not known.columns):
            table = self._notes.table(bare(found["name"]), Firmness.NAMED)
            if table is not None:
                self._columns(table, listed)
                self._enter(table)
