"""`docs/json.md`, written from the documents themselves: `python -m orchestrator.cli.json_reference > docs/json.md`."""

from __future__ import annotations

import builtins
import inspect
import sys
import typing
from decimal import Decimal
from types import NoneType
from typing import Any, get_args, get_origin

from orchestrator.cli import (
    batch_documents,
    compare_documents,
    documents,
    estimate_documents,
    evolution_documents,
    installation_documents,
    pruning_documents,
    release_documents,
    report_documents,
    sql_documents,
    sql_question_documents,
    sql_sweep_documents,
)
from orchestrator.cli.documents import Document
from orchestrator.cli.streams import print_page

_NAMES = {str: "string", int: "integer", float: "number", Decimal: "number", bool: "boolean", NoneType: "null"}
_PREAMBLE = """\
# JSON documents

Every command takes `--json` and then prints exactly one JSON object, on one line, to stdout; progress and notes go to
stderr. Where stdout is no terminal, `run`, `resume`, `evaluate`, `sql bench` and `sql sweep` print their object without
`--json`, too, and the tables for people on stderr; on a terminal they print the tables alone. When a command cannot do
what was asked, the object with `--json` is an *ErrorDocument*; on an error without `--json` stdout is empty, and stderr
alone says what is wrong. The exit code says why:

| exit code | meaning |
| --- | --- |
| 0 | done, or scored |
| 1 | the candidate failed or is below the threshold; the audit chain is broken; SQL: no answer, or a query is refused |
| 2 | wrong input |
| 3 | something is missing on this machine, or the home cannot be written; the message holds the remedy |
| 4 | the budget is spent; the run is kept |
| 5 | the sandbox, the evaluator or the model failed; nothing was scored |
| 6 | the result cannot be written to stdout (a full disk); what the command did stays done |
| 7 | the provider of a model serves nobody, or not you; the run is paused, and `resume` continues it |
| 130 | interrupted; the run is kept |

Fields are only ever added, so ignore those you do not know; a field whose meaning changes gets a new name. Strings that
come from a model or a program (descriptions, file texts) are untrusted: escape them before you show them. The text is
ASCII, and `##` never occurs in it, so that no CI system takes a part of it for a command.

This page is written by `python -m orchestrator.cli.json_reference`; a test holds it to the code.
"""


def reference() -> str:
    """The whole page."""
    return "\n".join([_PREAMBLE, *(_section(document) for document in _documents())])


def _documents() -> list[type[Document]]:
    """In the order of their module."""
    modules = (
        documents,
        batch_documents,
        compare_documents,
        estimate_documents,
        evolution_documents,
        installation_documents,
        pruning_documents,
        release_documents,
        report_documents,
        sql_documents,
        sql_question_documents,
        sql_sweep_documents,
    )
    found = [value for module in modules for value in vars(module).values()]
    kinds = [value for value in found if inspect.isclass(value) and issubclass(value, Document)]
    return [kind for kind in dict.fromkeys(kinds) if kind is not Document]


def _section(document: type[Document]) -> str:
    lines = [f"## {document.__name__}", "", inspect.getdoc(document) or "", "", "| field | type | meaning |"]
    lines.append("| --- | --- | --- |")
    for name, field in document.model_fields.items():
        meaning = " ".join((field.description or "").split())
        lines.append(f"| `{name}` | {_type(field.annotation)} | {meaning} |")
    return "\n".join(lines) + "\n"


def _type(annotation: Any) -> str:  # noqa: ANN401 - any annotation of a document's field
    if annotation in _NAMES:
        return _NAMES[annotation]
    if annotation is object or annotation is Any:
        return "any"
    if inspect.isclass(annotation) and issubclass(annotation, Document):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return _compound(get_origin(annotation), get_args(annotation))


def _compound(origin: object, arguments: tuple[Any, ...]) -> str:
    match origin:
        case typing.Literal:
            return " or ".join(f"`{value}`" for value in arguments)
        case builtins.list:
            return f"array of {_type(arguments[0])}"
        case builtins.tuple:
            return f"[{', '.join(map(_type, arguments))}]"
        case builtins.dict:
            return f"object of {_type(arguments[1])}"
        case typing.Annotated:
            return _type(arguments[0])
        case _:  # a union
            return " or ".join(map(_type, arguments))


if __name__ == "__main__":
    sys.exit(print_page(reference()))
