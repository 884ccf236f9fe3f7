"""Help as people read it: whole sentences in lists of commands, and arguments without braces within brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
import typer.core

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

_SENTENCE = re.compile(r"(.+?)(?:[.;](?=\s|$)|$)", re.DOTALL)


def first_sentence(text: str) -> str:
    """What a help text begins with, up to a full stop or semicolon, on one line and with a full stop."""
    found = _SENTENCE.match(text.strip())
    return "" if found is None else " ".join(found[1].split()) + "."


def argument_name(piece: str) -> str:
    """`TASK`, `[ID]` or `RUN...` for an argument's part of a usage line, however many marks it has."""
    name = piece.strip("{}[].").upper()
    dots = "..." if piece.endswith("...") else ""
    return (f"[{name}]" if piece.startswith("[") else name) + dots


class PlainCommand(typer.core.TyperCommand):
    """A command whose usage line names its arguments plainly."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """As the base class, but for the marks."""
        pieces = [self.options_metavar] if self.options_metavar else []
        for parameter in self.get_params(ctx):
            pieces += map(argument_name, parameter.get_usage_pieces(ctx))
        return pieces

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """As the base class, with a section of its own for each panel that options name; those come last."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class PlainGroup(typer.core.TyperGroup):
    """A group that lists its commands with their whole first sentences."""

    order: Sequence[str] = ()
    """Names of commands that are listed first, in this order."""

    def list_commands(self, ctx: Context) -> list[str]:
        """As the base class has them, those of `order` first."""
        names = super().list_commands(ctx)
        return [*(name for name in self.order if name in names), *(name for name in names if name not in self.order)]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the list; long sentences wrap."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, first_sentence(command.short_help or command.help or ""))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def in_plain_words(app: typer.Typer, *, order: Sequence[str] = ()) -> None:
    """Let an app, its commands, and the apps in it write their help so.

    Args:
        app: The outermost.
        order: Names of its commands and groups, in the order in which it lists them; others follow.
    """
    app.info.cls = type("OrderedGroup", (PlainGroup,), {"order": tuple(order)})
    for command in app.registered_commands:
        if command.cls is None or not issubclass(command.cls, PlainCommand):
            command.cls = PlainCommand
    for group in app.registered_groups:
        group.cls = PlainGroup
        if group.typer_instance is not None:
            in_plain_words(group.typer_instance)
