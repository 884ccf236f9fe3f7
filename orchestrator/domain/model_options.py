"""Options of a language model, which go into every request as they are: JSON, and no place for a key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_DEPTH = 32
"""Of values within values."""
_LARGEST = 10**300
"""Servers read no larger whole numbers, and Python writes none of many thousand digits."""
_SECRETS = frozenset(
    {
        *("api_key", "apikey", "x_api_key", "authorization", "proxy_authorization", "headers", "extra_headers"),
        *("default_headers", "api_token", "access_token", "auth_token", "authorization_token", "bearer_token"),
        *("secret_key", "client_secret", "password"),
    }
)


class _Value(NamedTuple):
    path: str
    """In ASCII, for messages."""
    name: object
    """In its mapping; None: it is in a list."""
    value: object
    depth: int


def unsendable(options: Mapping[str, object]) -> str | None:
    """What keeps options from being a part of a request: where it is and of which kind, but not its value.

    Returns:
        For instance "top_p is no finite number"; None: they are JSON.
    """
    for one in _values(options):
        if one.depth > _DEPTH:
            return f"{one.path} is nested more than {_DEPTH} levels deep"
        if (kind := _fault(one)) is not None:
            return f"{one.path} {kind}"
    return None


def secret_options(options: Mapping[str, object]) -> list[str]:
    """Paths of all that is named as keys and passwords are, at any depth, for instance `metadata.authorization`."""
    return [
        one.path
        for one in _values(options)
        if isinstance(one.name, str) and one.name.lower().replace("-", "_") in _SECRETS
    ]


def _values(options: Mapping[str, object]) -> Iterator[_Value]:
    """Everything in them, at most one level deeper than is allowed."""
    todo = [_Value(_shown(name), name, value, 1) for name, value in reversed(list(options.items()))]
    while todo:
        one = todo.pop()
        yield one
        if one.depth > _DEPTH:
            continue
        below = one.depth + 1
        if isinstance(one.value, dict):
            named = reversed(one.value.items())
            todo += [_Value(f"{one.path}.{_shown(name)}", name, value, below) for name, value in named]
        elif isinstance(one.value, list | tuple):
            numbered = reversed(list(enumerate(one.value)))
            todo += [_Value(f"{one.path}[{number}]", None, value, below) for number, value in numbered]


def _fault(one: _Value) -> str | None:
    value = one.value
    if one.name is not None and not (isinstance(one.name, str) and _is_text(one.name)):
        return "has a name that is no text"
    if value is None or isinstance(value, bool | dict | list | tuple):
        return None
    if isinstance(value, str):
        return None if _is_text(value) else "holds half a character (a lone surrogate), which cannot be sent"
    if isinstance(value, int):
        return None if abs(value) < _LARGEST else "is larger than any number that servers read"
    if isinstance(value, float):
        return None if math.isfinite(value) else "is no finite number"
    return f"is of the kind {type(value).__name__!r}, which JSON does not have; write it as text"


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(name: object) -> str:
    return str(name).encode("ascii", "backslashreplace").decode("ascii")
