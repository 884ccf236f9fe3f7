"""The analyst: looks at a database with tools that only read, then writes what an answerer needs to know of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from orchestrator.domain.conversation import AssistantMessage, Conversation, ToolCall, ToolSpec, UserMessage
from orchestrator.llm.offline.sql.analysis import read_analysis
from orchestrator.llm.offline.sql.briefed.logbook import Logbook, read_logbook
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.sql.quoting import identifier, one_line, text_literal

TITLE = "# Analyse a database with read-only queries"
_TOOLS = frozenset(["list_tables", "describe_table", "query"])
_CALLS = 16
"""Of one message."""
_MESSAGES = 20
"""Where the request does not say how many there may be."""
_ALLOWED = re.compile(r"\byou have (\d{1,4}) messages\b", re.IGNORECASE)
_LAST = "last use of tools"
_MAX_TABLES = 120
_PAGE = 10
_PAGES = 4
_VALUE_CHARACTERS = 60
_CELL_CHARACTERS = 120
"""Texts of one cell of a page together, so that with the last one they stay below what is shown of a cell."""
_ANALYSIS_CHARACTERS = 90_000
_LISTED = 400
"""Values of one column that are written down."""


def is_analyst_request(conversation: Conversation) -> bool:
    """Whether the first user message asks for an analysis."""
    first = conversation.messages[0] if conversation.messages else None
    return isinstance(first, UserMessage) and first.text.partition("\n")[0].strip() == TITLE


def respond_analyst(conversation: Conversation, tools: Sequence[ToolSpec]) -> AssistantMessage:
    """The next tool calls, or the analysis where everything is known or no message is left for more.

    A pure function of its arguments. Tables are listed, then described; then texts are read page by page, and ranges.
    """
    book = read_logbook(conversation)
    calls = [] if _must_end(conversation, tools) else _next_calls(book)
    if not calls:
        return AssistantMessage(text=_analysis(book))
    position = len(conversation.messages)
    return AssistantMessage(
        text="",
        tool_calls=tuple(
            ToolCall(
                id=f"call-{position}-{number}", name=name, arguments=arguments, raw_arguments=json.dumps(arguments)
            )
            for number, (name, arguments) in enumerate(calls)
        ),
    )


def _must_end(conversation: Conversation, tools: Sequence[ToolSpec]) -> bool:
    said = sum(isinstance(message, AssistantMessage) for message in conversation.messages)
    first = conversation.messages[0]
    allowed = _ALLOWED.search(f"{conversation.system}\n{first.text if isinstance(first, UserMessage) else ''}")
    limit = int(allowed.group(1)) if allowed is not None else _MESSAGES
    last = conversation.messages[-1]
    is_told = not isinstance(last, AssistantMessage | UserMessage) and any(_LAST in r.text for r in last.results)
    return is_told or said >= limit - 1 or not _TOOLS.issubset(tool.name for tool in tools)


def _next_calls(book: Logbook) -> list[tuple[str, dict[str, str]]]:
    if not book.has_listed:
        return [("list_tables", {})]
    unknown = [name for name in list(book.tables)[:_MAX_TABLES] if name not in book.asked_tables]
    if unknown:
        return [("describe_table", {"table": name}) for name in unknown[:_CALLS]]
    wanted = [sql for sql in _queries(book) if sql not in book.results and sql not in book.failed]
    return [("query", {"sql": sql}) for sql in wanted[:_CALLS]]


def _queries(book: Logbook) -> list[str]:
    """All first pages and ranges, then second pages where the first ones were full, and so on."""
    wanted: list[str] = []
    columns = [column for columns in _schema(book).values() for column in columns]
    texts = [column for column in columns if not column.is_number]
    for table, own in _schema(book).items():
        numbers = [column for column in own if column.is_number]
        if numbers:
            wanted.append(_range_query(table, numbers))
    for page in range(_PAGES):
        wanted += [
            _page_query(c, page) for c in texts if page == 0 or len(book.rows(_page_query(c, page - 1))) >= _PAGE
        ]
    return wanted


def _schema(book: Logbook) -> dict[str, tuple[Field, ...]]:
    return dict(read_analysis("\n\n".join(book.described.values())).schema.tables)


def _page_query(column: Field, page: int) -> str:
    """Distinct short texts, as literals, several to a row."""
    name, table = identifier(column.name), identifier(column.table)
    texts = (
        f"SELECT DISTINCT {name} AS v FROM {table} WHERE {name} IS NOT NULL AND length({name}) <= {_VALUE_CHARACTERS}"  # noqa: S608 - it is run sealed
    )
    parts = f"SELECT v, sum(length(v) + 4) OVER (ORDER BY v ROWS UNBOUNDED PRECEDING) / {_CELL_CHARACTERS} AS part"
    pages = f"GROUP BY part ORDER BY part LIMIT {_PAGE} OFFSET {page * _PAGE}"
    return f"SELECT group_concat(quote(v), ', ') FROM ({parts} FROM ({texts})) {pages}"  # noqa: S608


def _range_query(table: str, columns: Sequence[Field]) -> str:
    parts = [f"min({identifier(column.name)}), max({identifier(column.name)})" for column in columns[:20]]
    return f"SELECT {', '.join(parts)} FROM {identifier(table)}"  # noqa: S608 - it is run sealed


def _analysis(book: Logbook) -> str:
    """Statements as they were described, then each table's values; over the bound the longest lists go first."""
    for listed in (_LISTED, 60, 12, 0):
        text = "\n\n".join([*book.described.values(), *(_section(book, table, listed) for table in _schema(book))])
        if len(text) <= _ANALYSIS_CHARACTERS:
            break
    return text[:_ANALYSIS_CHARACTERS].strip() or _names(book)


def _names(book: Logbook) -> str:
    if not book.tables:
        return "No table of this database is known."
    return "\n".join(f"## Table: {identifier(name)}" for name in book.tables)


def _section(book: Logbook, table: str, listed: int) -> str:
    columns = _schema(book)[table]
    rows = book.tables.get(table)
    lines = [f"## Table: {identifier(table)}" + (f" ({rows} rows)" if rows is not None else "")]
    numbers = [column for column in columns if column.is_number]
    found = book.rows(_range_query(table, numbers))[:1] if numbers else []
    for column, low, high in zip(numbers, *(found[0][at::2] for at in (0, 1)), strict=False) if found else []:
        if low is not None and high is not None:
            lines.append(f"- {identifier(column.name)}: min {_plain(low)}, max {_plain(high)}")
    for column in columns:
        values = [] if column.is_number else book.texts([_page_query(column, page) for page in range(_PAGES)])
        shown = [text_literal(value) for value in values[:listed] if value.isprintable()]
        if shown:
            lines.append(f"- {identifier(column.name)}: distinct values: {', '.join(shown)}")
    return "\n".join(lines)


def _plain(cell: object) -> str:
    return one_line(str(cell), 40) if isinstance(cell, int | float) else text_literal(one_line(str(cell), 40))
