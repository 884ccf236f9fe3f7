"""Sections of an analysis tool as text: cut out by their marks, varied in their parameters, stitched into one file.

A section begins with `# section: NAME (parameter=number, ...)`, ends with `# end of section` and defines
`section_NAME(connection, schema)`, which gives its facts as a list of texts; its parameters are constants
`NAME_PARAMETER = number` at its head. Whoever wrote a section, it is text here: matched line by line, never parsed,
compiled or run.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files

LIBRARY_ORDER = (
    "size_adaptation",
    "ddl",
    "row_counts",
    "columns_and_samples",
    "keys_and_cardinalities",
    "enumerations",
    "ranges",
    "formats",
    "semantic_hints",
    "orphans",
    "pitfalls",
)
"""The library's sections, in the order in which they run and are shown; others follow by name."""
BASIC = "ddl"
"""What a tool has at least."""
MAX_SECTION_CHARACTERS = 20_000
_MAX_TOOL_CHARACTERS = 1 << 18
_MAX_SECTIONS = 40
_MAX_PARAMETER = 1_000_000
_MARK = re.compile(r"# section: (?P<name>[a-z][a-z0-9_]{0,40})(?: \((?P<parameters>[a-z0-9_=, ]{0,400})\))?\s*")
_END = "# end of section"
_PARAMETER = re.compile(r"(?P<name>[a-z][a-z0-9_]{0,40})=(?P<value>\d{1,7})")
_TOP_LEVEL = re.compile(r"(?:def (?P<function>\w+)\(|(?P<constant>_?[A-Z][A-Z0-9_]*) = |[)\]}]|#|$)")
_FORBIDDEN = frozenset([
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "import", "input", "locals",
    "open", "setattr", "vars",
])  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section, with the text between its marks, both included."""

    name: str
    text: str
    parameters: Mapping[str, int] = field(default_factory=dict)

    def varied(self, changes: Mapping[str, int]) -> Section:
        """The same text with other numbers in the mark and in the constants; unknown parameters are left out."""
        wanted = {name: min(_MAX_PARAMETER, max(1, changes.get(name, old))) for name, old in self.parameters.items()}
        lines = self.text.split("\n")
        for name, old in self.parameters.items():
            constant = f"{self.name.upper()}_{name.upper()} = "
            places = [place for place, line in enumerate(lines) if line == f"{constant}{old}"]
            if len(places) != 1:
                wanted[name] = old  # nothing to change: the mark alone would promise what the code does not do
                continue
            lines[places[0]] = f"{constant}{wanted[name]}"
        lines[0] = _mark(self.name, wanted)
        return Section(name=self.name, text="\n".join(lines), parameters=wanted)

    def is_sound(self) -> bool:
        """Whether it can stand in a tool of ours: it defines itself, and nothing at its top level or of that kind.

        The sandbox's own screen comes later and decides; this keeps one section from spoiling the others.
        """
        if len(self.text) > MAX_SECTION_CHARACTERS or not _is_balanced(self.text):
            return False
        own = f"section_{self.name}"
        defined = list(_defined(self.text))
        prefixes = (f"_{self.name}_", f"{self.name.upper()}_", f"_{self.name.upper()}_")
        is_apart = all(name == own or name.startswith(prefixes) for name in defined)
        return defined.count(own) == 1 and is_apart and _shared_names().isdisjoint(defined)

    @property
    def defined(self) -> frozenset[str]:
        """Names that it gives a meaning to in the whole tool."""
        return frozenset(_defined(self.text))


def library() -> Mapping[str, Section]:
    """Our own sections by name, in their order."""
    return {name: _stored(name) for name in LIBRARY_ORDER}


def cut_sections(tool: str) -> dict[str, Section]:
    """The sections of a tool by name, as they stand in it.

    Args:
        tool: Text of a Python file, untrusted; of two sections with one name the first counts.

    Returns:
        Empty: the text has no marks.
    """
    found: dict[str, Section] = {}
    name, parameters, lines = "", {}, list[str]()
    for line in tool[:_MAX_TOOL_CHARACTERS].split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is not None:
            name, parameters, lines = mark["name"], _parameters(mark["parameters"] or ""), [line]
        elif name and line.rstrip() == _END:
            section = Section(name=name, text="\n".join([*lines, _END]), parameters=parameters)
            if len(found) < _MAX_SECTIONS:
                found.setdefault(name, section)
            name = ""
        elif name:
            lines.append(line)
    return found


def ordered(sections: Iterable[Section]) -> list[Section]:
    """As they stand in a tool: the library's order, then the others by name."""
    places = {name: place for place, name in enumerate(LIBRARY_ORDER)}
    return sorted(sections, key=lambda section: (places.get(section.name, len(places)), section.name))


def stitch(sections: Sequence[Section], *, max_bytes: int) -> str:
    """A tool that runs the sections one after the other, each guarded.

    Args:
        sections: With different names.
        max_bytes: Of the text that it writes; positive.
    """
    chosen = ordered(sections)
    head = _template("head.py.txt").replace("MAX_BYTES = 240000", f"MAX_BYTES = {max_bytes}", 1)
    listed = "".join(f'    ("{section.name}", section_{section.name}),\n' for section in chosen)
    own = [head.rstrip("\n"), _template("links.py.txt").rstrip("\n")]
    parts = [*own, *(section.text for section in chosen), f"SECTIONS = (\n{listed})"]
    return "\n\n\n".join([*parts, _template("tail.py.txt")])


def written_bytes(tool: str) -> int | None:
    """`max_bytes` of a stitched tool; None: it is none of ours."""
    found = re.search(r"^MAX_BYTES = (\d{1,9})\b", tool[:_MAX_TOOL_CHARACTERS], re.MULTILINE)
    return None if found is None else int(found[1])


def section_at(tool: str, line: int) -> str | None:
    """The section that a line of a tool stands in, by its number from 1; None: it stands in none."""
    name = None
    for text in tool.split("\n")[: max(0, line)]:
        mark = _MARK.fullmatch(text)
        if mark is not None:
            name = mark["name"]
        elif text.rstrip() == _END:
            name = None
    return name


def _mark(name: str, parameters: Mapping[str, int]) -> str:
    listed = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"# section: {name} ({listed})" if listed else f"# section: {name}"


def _parameters(text: str) -> dict[str, int]:
    return {
        found["name"]: int(found["value"]) for part in text.split(",") if (found := _PARAMETER.fullmatch(part.strip()))
    }


def _defined(text: str) -> Iterable[str]:
    """Names that lines at the left margin define; an empty name for a line that does something else."""
    inside = ""
    for line in text.split("\n"):
        quotes = line.count('"""')
        if inside or line.startswith((" ", "\t")):
            inside = "" if inside and quotes % 2 else inside or ('"""' if quotes % 2 else "")
            continue
        inside = '"""' if quotes % 2 else ""
        found = _TOP_LEVEL.match(line)
        if found is None:
            yield ""
        elif found["function"] or found["constant"]:
            yield found["function"] or found["constant"]


@lru_cache(maxsize=256)
def _is_balanced(text: str) -> bool:
    """Whether it can be tokenised, its brackets match, and no word in it reaches beyond the database."""
    brackets: list[str] = []
    before = ""
    pairs = {")": "(", "]": "[", "}": "{"}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.ERRORTOKEN or (before != "." and token.string in _FORBIDDEN):
                return False
            before = token.string
            if token.type == tokenize.OP and token.string in pairs.values():
                brackets.append(token.string)
            elif (
                token.type == tokenize.OP
                and token.string in pairs
                and (not brackets or brackets.pop() != pairs[token.string])
            ):
                return False
    except (tokenize.TokenError, SyntaxError):
        return False
    return not brackets


@cache
def _shared_names() -> frozenset[str]:
    """What all sections of a tool use, and none may define."""
    parts = map(_template, ("head.py.txt", "links.py.txt", "tail.py.txt"))
    return frozenset(name for part in parts for name in _defined(part)) | {"SECTIONS"} - {""}


@cache
def _stored(name: str) -> Section:
    return cut_sections(_template(f"sections/{name}.py.txt"))[name]


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath("templates", *name.split("/")).read_text("utf-8")
