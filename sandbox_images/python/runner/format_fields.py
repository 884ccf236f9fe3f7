"""The attributes that a format string reads, where the string stands in the source."""

from __future__ import annotations

import ast
import re
import string

_MAX_DEPTH = 2
"""A field may stand in a field's format, and no deeper."""
_ATTRIBUTE = re.compile(r"\.([^.\[\]]+)")


def attributes(node: ast.Call) -> frozenset[str]:
    """Names that `"...".format(...)`, `"...".format_map(...)` or `str.format("...", ...)` reads."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format" | "format_map")):
            return frozenset(_read(text, _MAX_DEPTH))
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="str"), attr="format" | "format_map"),
            args=[ast.Constant(value=str() as text), *_],
        ):
            return frozenset(_read(text, _MAX_DEPTH))
    return frozenset()


def _read(text: str, depth: int) -> set[str]:
    found: set[str] = set()
    try:
        for _, field, form, _ in string.Formatter().parse(text):
            found.update(_ATTRIBUTE.findall(field or ""))
            if form and depth > 1:
                found |= _read(form, depth - 1)
    except ValueError:  # no format string; it raises when the program runs
        return found
    return found
