"""What tools have returned so far in an analyst's conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, ToolCall, ToolMessage, ToolResult
from orchestrator.llm.offline.sql.scanner import scan

_WORD = re.compile(r"[^\W\d]\w*")
_CELL_CHARACTERS = 5_000


@dataclass(slots=True)
class Logbook:
    """By what was asked for."""

    has_listed: bool = False
    tables: dict[str, int | None] = field(default_factory=dict)
    """Names to numbers of rows; None: unknown."""
    asked_tables: set[str] = field(default_factory=set)
    described: dict[str, str] = field(default_factory=dict)
    results: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By query."""
    failed: set[str] = field(default_factory=set)
    """Queries that gave no result."""

    def rows(self, sql: str) -> list[list[Any]]:
        """Of a query; empty: none came, or it was not asked."""
        rows = self.results.get(sql, {}).get("rows")
        return [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []

    def texts(self, queries: Iterable[str]) -> list[str]:
        """The literals in the cells of some queries; one that was cut is left out."""
        found: list[str] = []
        for cell in (cell for sql in queries for row in self.rows(sql) for cell in row[:1]):
            if isinstance(cell, str):
                pieces = [piece for piece in scan(cell, _CELL_CHARACTERS) if piece.kind == "string"]
                found.extend(piece.text for piece in (pieces[:-1] if cell.endswith("…") else pieces))
        return found


def read_logbook(conversation: Conversation) -> Logbook:
    """Everything in a conversation; a result that is an error counts as asked, with nothing to show for it."""
    book = Logbook()
    calls: dict[str, ToolCall] = {}
    for message in conversation.messages:
        if isinstance(message, AssistantMessage):
            calls.update({call.id: call for call in message.tool_calls})
        elif isinstance(message, ToolMessage):
            for result in message.results:
                if result.call_id in calls:
                    _note(book, calls[result.call_id], result)
    return book


def _note(book: Logbook, call: ToolCall, result: ToolResult) -> None:
    arguments = call.arguments or {}
    if call.name == "list_tables":
        book.has_listed = True
        if not result.is_error:
            book.tables.update(_listed(result.text))
    elif call.name == "describe_table":
        table = str(arguments.get("table", ""))
        book.asked_tables.add(table)
        if not result.is_error:
            book.described[table] = result.text
    elif call.name == "query":
        sql = str(arguments.get("sql", ""))
        found = _json(result.text)
        if result.is_error or not isinstance(found, dict) or found.get("status", "ok") != "ok":
            book.failed.add(sql)
        else:
            book.results[sql] = found


def _listed(text: str) -> dict[str, int | None]:
    """Tables however they are listed: as one JSON document, one object to a line, or a name to a line."""
    document = _json(text)
    items = document if isinstance(document, list) else None
    if isinstance(document, dict):
        items = document.get("tables") if isinstance(document.get("tables"), list) else [document]
    tables: dict[str, int | None] = {}
    for item in items if items is not None else [_json(line, line) for line in text.split("\n")]:
        if isinstance(item, dict):
            name, rows = item.get("table", item.get("name")), item.get("rows", item.get("row_count"))
            if isinstance(name, str):
                tables[name] = rows if isinstance(rows, int) else None
        elif isinstance(item, str) and (found := _WORD.search(item)) and not item.lstrip().startswith(("(", "[")):
            tables[item.strip() if items is not None else found.group()] = None
    return tables


def _json(text: str, default: object = None) -> object:
    """A document, also where a remark follows it."""
    text = text.strip()
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return default
    return default if text[end:].lstrip().startswith("{") else document
