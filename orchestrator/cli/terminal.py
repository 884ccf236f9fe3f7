"""Where results (stdout) and notes (stderr) leave the program; all text is treated as untrusted."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from pydantic import BaseModel
from rich.console import Console

from orchestrator.cli.layout import fitting_table

_WORKFLOW_START = re.compile(r"^(\s*):(?=:)", re.MULTILINE)
_WORKFLOW_MARK = re.compile(r"##(?=[A-Za-z]*\[)")
_PIPE_COLUMNS = 160
_TITLE_CHARACTERS = 1000
"""Of a heading in a document, which breaks over lines; a table's cells are shorter."""


def visible(text: str) -> str:
    """Text in which control, format and surrogate characters are written as escapes; newline and tab stay."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def inert(text: str) -> str:
    """Text in which nothing is a command to a CI system (`::set-output`, `##[group]`, `##vso[...]`)."""
    return _WORKFLOW_MARK.sub("#\\#", _WORKFLOW_START.sub(r"\1\\:", text))


def one_line(text: str, characters: int) -> str:
    """The beginning of a text on one line, visible."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= characters else line[: characters - 1] + "…"


def json_line(document: BaseModel) -> str:
    """A document as one line of ASCII JSON that holds no command to a terminal or a CI system."""
    text = json.dumps(document.model_dump(mode="json"), allow_nan=False, separators=(", ", ": "))
    return text.replace("##", "#\\u0023")  # a '#' stands only inside strings


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table; cells are untrusted text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    cell_characters: int = 72
    """Longer texts are cut."""
    spare_columns: Sequence[str] = ()
    """Left out one after the other, the first first, where a terminal is too narrow; never from a document."""

    def markdown(self) -> str:
        """As a section of a page in GitHub-flavoured Markdown."""
        title = one_line(self.title, _TITLE_CHARACTERS)
        lines = [f"## {title}", "", _pipes(self.cells(self.columns)), _pipes(["---"] * len(self.columns))]
        lines += [_pipes(self.cells(row)) for row in self.rows]
        return "\n".join(lines) + "\n"

    def cells(self, row: Iterable[object]) -> list[str]:
        """A row as short visible texts: numbers to six significant digits, None as a dash."""
        return [_cell(value, self.cell_characters) for value in row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The two streams of a command.

    With `as_json`, a result is exactly one JSON object on stdout; otherwise tables and text.
    """

    as_json: bool = False

    def result(self, document: BaseModel, *parts: Rows | str) -> None:
        """Print a document, as JSON or as the tables and paragraphs that stand for it."""
        if self.as_json:
            _write(sys.stdout, json_line(document))
            return
        for part in parts:
            _write(sys.stdout, inert(visible(part)) if isinstance(part, str) else _rendered(part, sys.stdout))

    def final(self, document: BaseModel, *parts: Rows | str) -> None:
        """Print what a long command ends with: for a program that reads stdout the document, for people the tables.

        The document goes to stdout with `as_json` and wherever stdout is no terminal.
        """
        if self.as_json or sys.stdout.isatty():
            self.result(document, *parts)
            return
        self.note(*parts)
        _write(sys.stdout, json_line(document))

    def note(self, *parts: Rows | str) -> None:
        """Print something that is not the result."""
        for part in parts:
            _write(sys.stderr, inert(visible(part)) if isinstance(part, str) else _rendered(part, sys.stderr))


def _cell(value: object, characters: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value + 0.0:.6g}"  # no negative zero
    return one_line(str(value), characters)


def _pipes(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row) + " |"


def _rendered(part: Rows, stream: TextIO) -> str:
    """Lines of a table; rich sees only visible text and interprets no markup."""
    is_terminal = stream.isatty()
    width = Console().width if is_terminal else _PIPE_COLUMNS
    table = fitting_table(
        [visible(column) for column in part.columns],
        [part.cells(row) for row in part.rows],
        width=width,
        spare_columns=part.spare_columns,
    )
    buffer = io.StringIO()
    options: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    console = Console(file=buffer, force_terminal=is_terminal, width=max(width, table.width or 0), **options)
    console.print(visible(part.title), style="bold", soft_wrap=True)
    console.print(table)
    left_out = [column for column in part.columns if column not in {shown.header for shown in table.columns}]
    if left_out:
        text = f"(too narrow for: {', '.join(left_out)}; a wider terminal or --json shows all)"
        console.print(visible(text), style="dim", soft_wrap=True)
    return inert("\n".join(line.rstrip() for line in buffer.getvalue().splitlines()))


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, errors="replace").decode(encoding) + "\n")
    stream.flush()
