"""HTML and SVG that are safe by construction: whatever is not made here is text, and is escaped."""

from __future__ import annotations

import html
import json
from typing import Any

from orchestrator.cli.terminal import visible

_VOID = frozenset({"meta", "br", "input"})
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class Markup(str):
    """Text that is markup already; only this module makes it."""

    __slots__ = ()


Child = object
"""Markup stays as it is; None and False are left out; anything else is shown as text."""


def text(value: object) -> Markup:
    """Untrusted text: markup is escaped, and control and format characters are visible."""
    return Markup(html.escape(visible(str(value)), quote=True))


def element(name: str, /, *children: Child, **attributes: object) -> Markup:
    """One element.

    Args:
        name: Of the tag; trusted.
        children: See `Child`.
        attributes: By name; `_` stands for `-`, and a `_` at the end is dropped. None and False leave one out, True is
            an attribute without a value.
    """
    written = "".join(
        f" {_name(key)}" if value is True else f' {_name(key)}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Elements and texts, one after the other."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else text(child)
            for child in children
            if child is not None and child is not False
        )
    )


def own_code(name: str, code: str, /, **attributes: object) -> Markup:
    """A `script` or `style` element of ours.

    Raises:
        ValueError: The code would end its element.
    """
    if f"</{name}" in code.lower() or "<!--" in code:
        msg = f"code of a {name} element must not hold '</{name}' or '<!--'"
        raise ValueError(msg)
    return Markup(element(name, **attributes).replace(f"></{name}>", f">{code}</{name}>"))


def inert_json(document: Any) -> str:  # noqa: ANN401 - any JSON
    """ASCII JSON without a character that means anything to HTML; U+2028 and U+2029 are escapes like all non-ASCII."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def number(value: object) -> str:
    """A value as people read it: six significant digits, thousands apart, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)  # no negative zero


def counted(count: int, noun: str) -> str:
    """`1 line`, `1,200 lines`: for nouns that take an `s`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
