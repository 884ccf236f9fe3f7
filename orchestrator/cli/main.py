"""The `evolvarium` command: assembles the commands and turns errors into one line and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

import typer
import typer.main
from typer._click.exceptions import NoArgsIsHelpError

from orchestrator.cli.app import app
from orchestrator.cli.documents import ErrorDetail, ErrorDocument
from orchestrator.cli.streams import guard_streams
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import EvolvariumError, OutputError


def main() -> None:
    """Entry point of the console script."""
    guard_streams()
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code.

    Expected errors leave one line on stderr, never a traceback of ours, and below it their notes (a traceback of a
    task's own evaluator, for instance); with `--json` also an object on stdout.
    """
    as_json = "--json" in arguments
    try:
        command = typer.main.get_command(app)
        code = command.main(list(arguments), prog_name="evolvarium", standalone_mode=False)
    except EvolvariumError as error:
        return _failed(type(error).__name__, str(error), error.exit_code, as_json=as_json, notes=notes_of(error))
    except NoArgsIsHelpError as error:
        Terminal().note(error.format_message())
        return 2
    except typer.TyperException as error:
        return _failed("UsageError", _usage_message(error), 2, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _failed("Cancelled", "interrupted", 130, as_json=as_json)
    except Exception as error:  # noqa: BLE001 - the last line of defence: whatever it is, the user gets one line
        if "--debug" in arguments:
            traceback.print_exception(error)
        return _unexpected(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def notes_of(error: BaseException) -> list[str]:
    """Notes of an error of ours and of those it came from, the outermost first, each once."""
    notes: list[str] = []
    while isinstance(error, EvolvariumError):
        notes += [note.rstrip() for note in getattr(error, "__notes__", [])]
        if error.__cause__ is None:
            break
        error = error.__cause__
    return list(dict.fromkeys(notes))


def _failed(kind: str, message: str, exit_code: int, *, as_json: bool, notes: Sequence[str] = ()) -> int:
    terminal = Terminal(as_json=as_json)
    terminal.note(f"evolvarium: {' '.join(message.split())}", *notes)
    if as_json:
        detail = ErrorDetail(type=kind, message=message, exit_code=exit_code, notes=list(notes))
        with suppress(OutputError):  # of the two failures the first one counts
            terminal.result(ErrorDocument(error=detail))
    return exit_code


def _usage_message(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    return error.format_message().replace("Value error, ", "") + hint  # a word of pydantic's, and nobody's value


def _unexpected(error: Exception, *, as_json: bool) -> int:
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{place.name}, line {place.lineno}"
    message = f"unexpected {type(error).__name__} in {where}: {error}; `evolvarium --debug ...` shows the traceback"
    return _failed(type(error).__name__, message, 5, as_json=as_json)
