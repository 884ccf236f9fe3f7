"""What stands in a tool's source as a message may show it."""

from __future__ import annotations

_CHARACTERS = 80
_ESCAPED = 120
"""Escapes count: one character may take ten."""


def shown(text: str) -> str:
    """A text in quotes, in printable ASCII: at most 124 characters, so that two of them fit into one message."""
    escaped = ascii(text[:_CHARACTERS])
    if len(escaped) > _ESCAPED:
        return escaped[:_ESCAPED] + "...'"
    return escaped if len(text) <= _CHARACTERS else escaped[:-1] + "..." + escaped[-1]
