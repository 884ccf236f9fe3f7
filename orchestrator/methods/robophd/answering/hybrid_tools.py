"""The tools of a model that analyses a database: they read, and what they return is bounded and recorded."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.domain.conversation import ToolCall, ToolResult, ToolSpec
from orchestrator.domain.sql import Schema, Table
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.ports import Database
from orchestrator.search.tool_calls import ToolError, checked_arguments, refusal, success
from orchestrator.sql.quoting import json_line, one_line
from orchestrator.sql.schema_text import Style, render
from orchestrator.sql.shown_results import shown_result

MAX_CALLS = 16
"""Of one message."""
_NAME_CHARACTERS = 200


def _tool(name: str, description: str, **arguments: str) -> ToolSpec:
    properties = {argument: {"type": "string", "description": text} for argument, text in arguments.items()}
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name=name, description=description, parameters=parameters)


TOOLS = (
    _tool("list_tables", "Return every table and view, with its number of rows and columns."),
    _tool(
        "describe_table",
        "Return the columns of one table, with types, keys, references and some values.",
        table="Name of the table or view.",
    ),
    _tool("query", "Run one SELECT statement, and return what it gives, as JSON.", sql="The statement."),
)


class ReadOnlyTools:
    """What the tools of one message do. Not thread-safe."""

    def __init__(self, context: AnswerContext, database: Database, *, key: str) -> None:
        """Nothing is done yet.

        Args:
            context: Of the process.
            database: In the predicted domain.
            key: Of the message; the results stand below it in the journal.
        """
        self._context = context
        self._database = database
        self._key = key

    def execute(self, number: int, call: ToolCall) -> ToolResult:
        """Do what a call asks for, or say what is wrong with it.

        Args:
            number: Of the call within its message, from 1.
            call: From the model.

        Raises:
            SandboxError: The sandbox failed.
            Cancelled: Somebody asked to stop.
            RunStateError: The journal holds the result of another call, or of another database.
        """
        if number > MAX_CALLS:
            return refusal(call, ToolError(f"only {MAX_CALLS} calls of one message are carried out"))
        try:
            arguments = checked_arguments(call, TOOLS)
            key = f"{self._key}-{number:02d}"
            record = self._context.steps.once(
                key,
                lambda: {"text": self._perform(call.name, arguments, key)},
                identity={"database": self._database.digest, "tool": call.name, "arguments": dict(arguments)},
            )
            return success(call, str(record["text"]))
        except ToolError as error:
            return refusal(call, error)

    def _perform(self, name: str, arguments: Mapping[str, str], key: str) -> str:
        self._context.cancel.check()
        match name:
            case "list_tables":
                return self._list_tables()
            case "describe_table":
                return self._describe_table(arguments["table"])
            case _:
                result = self._database.query(arguments["sql"], attempt_id=key)
                return json_line(shown_result(result, self._context.settings.shown_bounds))

    def _list_tables(self) -> str:
        """A JSON object on each line, as many as there is room for."""
        tables = self._database.description.schema.tables
        lines: list[str] = []
        room = self._context.settings.record_characters
        for table in tables:
            line = _listed(table)
            room -= len(line) + 1
            if lines and room < 0:
                break
            lines.append(line)
        if len(lines) < len(tables):
            lines.append(json_line({"omitted_tables": len(tables) - len(lines)}))
        return "\n".join(lines) if lines else "(There are no tables.)"

    def _describe_table(self, name: str) -> str:
        table = self._database.description.schema.table(name)
        if table is None:
            msg = f"there is no table {one_line(name, 80)!r}; list_tables names them all"
            raise ToolError(msg)
        bound = self._context.settings.record_characters
        return render(Schema(tables=(table,)), Style.EXAMPLES, max_characters=bound)


def _listed(table: Table) -> str:
    return json_line(
        {
            "table": table.name[:_NAME_CHARACTERS],
            "kind": table.kind,
            "rows": table.rows,
            "columns": len(table.columns),
        }
    )
