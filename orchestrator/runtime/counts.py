"""Counts in messages."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`: for nouns that take an `s`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def times(count: int) -> str:
    """`once`, `2 times`."""
    return "once" if count == 1 else f"{count} times"
