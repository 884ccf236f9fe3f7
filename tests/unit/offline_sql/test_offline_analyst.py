"""The analyst looks at a database with tools, and what it writes is as good as what a tool would have written."""

from __future__ import annotations

import json
import sqlite3

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Sampling,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.llm.offline.model import OfflineModel
from orchestrator.llm.offline.sql.analysis import read_analysis
from orchestrator.sql.gate import check
from tests.unit.offline_sql.briefed import CREATE, database, query, rows_of, shown

TOOLS = tuple(ToolSpec(name=name, description="", parameters={}) for name in ("list_tables", "describe_table", "query"))
MANY = 260


def request(messages: int = 24) -> Conversation:
    text = "# Analyse a database with read-only queries\n\n## Tool failure\n```\nKeyError\n```"
    return Conversation(system=f"You have {messages} messages in all.", messages=(UserMessage(text=text),))


def perform(call: ToolCall, connection: sqlite3.Connection) -> str:
    """A tool of the database, as answering has it."""
    arguments = call.arguments or {}
    if call.name == "list_tables":
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return "\n".join(json.dumps({"table": name, "kind": "table", "rows": 3, "columns": 3}) for (name,) in listed)
    if call.name == "describe_table":
        found = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (arguments["table"],)).fetchone()
        return str(found[0]) + ";"
    check(str(arguments["sql"]))
    result = shown(str(arguments["sql"]), connection)
    for row in result["rows"]:
        row[:] = [cell if not isinstance(cell, str) or len(cell) <= 200 else cell[:199] + "…" for cell in row]
    return json.dumps(result)


def analysed(connection: sqlite3.Connection, messages: int = 24) -> tuple[str, int]:
    """The analysis, and how many messages it took."""
    model, conversation = OfflineModel(), request(messages)
    for number in range(1, messages + 1):
        message = model.complete(conversation, TOOLS, Sampling(seed=number)).message
        if not message.tool_calls:
            return message.text, number
        assert len(message.tool_calls) <= 16
        results = [ToolResult(call_id=call.id, text=perform(call, connection)) for call in message.tool_calls]
        conversation = conversation.plus(message, ToolMessage(results=tuple(results)))
    return "", messages


def test_its_text_tells_tables_keys_values_and_ranges() -> None:
    text, _ = analysed(database())
    schema = read_analysis(text).schema
    country = schema.field("observatory", "country")
    assert list(schema.tables) == ["observatory", "telescope"]
    assert len(schema.edges) == 1
    assert country is not None
    assert country.examples == ("Chile", "Norway", "Peru ")
    assert "price: min 9.0, max 80.0" in text


def test_questions_are_answered_from_its_text() -> None:
    text, _ = analysed(database())
    sql = query("Which telescope labels belong to observatories in norway?", text)
    assert set(rows_of(sql)) == {("Argus",), ("Ursa",)}


def test_long_lists_of_values_are_read_page_by_page() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE person (person_id INTEGER PRIMARY KEY, nick TEXT);")
    connection.executemany("INSERT INTO person (nick) VALUES (?)", [(f"O'Nick {n:03d}",) for n in range(MANY)])
    text, _ = analysed(connection)
    assert f"'O''Nick {MANY - 1:03d}'" in text
    assert text.count("O''Nick") == MANY


def test_it_ends_before_its_messages_are_spent() -> None:
    for messages in (2, 3, 4):
        text, used = analysed(database(), messages)
        assert text
        assert used <= messages


def test_it_ends_when_it_is_told_so() -> None:
    call = ToolCall(id="call-1-0", name="list_tables", arguments={})
    told = ToolResult(call_id=call.id, text='{"table": "a"}\n\n[That was the last use of tools: write the analysis.]')
    conversation = request().plus(AssistantMessage(text="", tool_calls=(call,)), ToolMessage(results=(told,)))
    message = OfflineModel().complete(conversation, TOOLS, Sampling(seed=1)).message
    assert not message.tool_calls
    assert "a" in message.text


def test_errors_of_tools_are_survived() -> None:
    model, conversation = OfflineModel(), request()
    for _ in range(8):
        message = model.complete(conversation, TOOLS, Sampling(seed=1)).message
        if not message.tool_calls:
            break
        refused = [ToolResult(call_id=call.id, text="no", is_error=True) for call in message.tool_calls]
        conversation = conversation.plus(message, ToolMessage(results=tuple(refused)))
    assert not message.tool_calls
    assert message.text


def test_without_tools_it_says_that_nothing_is_known() -> None:
    message = OfflineModel().complete(request(), (), Sampling(seed=1)).message
    assert message.text == "No table of this database is known."


def test_a_statement_alone_still_makes_an_analysis() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(CREATE)
    text, _ = analysed(connection)
    assert list(read_analysis(text).schema.tables) == ["observatory", "telescope"]
