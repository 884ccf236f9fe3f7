"""JSON from a model, read strictly: one object, no repeated names, no numbers that are not finite, bounded."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MAX_CHARACTERS = 200_000


class JsonError(ValueError):
    """The text is no such JSON; the message says why, in our own words."""


def load_object(text: str) -> dict[str, Any]:
    """The object a text holds.

    Args:
        text: Untrusted.

    Raises:
        JsonError: It holds something else, or nothing that can be read.
    """
    if len(text) > MAX_CHARACTERS:
        msg = f"it is longer than {MAX_CHARACTERS} characters"
        raise JsonError(msg)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except JsonError:
        raise
    except (ValueError, RecursionError) as error:  # the decoder's message would quote the text
        msg = "it is not valid JSON"
        raise JsonError(msg) from error
    if not isinstance(value, dict):
        msg = "it is not a JSON object"
        raise JsonError(msg)
    return value


def clean_text(value: object, characters: int) -> str | None:
    """A text without lone surrogates and at most so long; None: it is no text."""
    if not isinstance(value, str):
        return None
    text = value.strip().encode("utf-8", errors="replace").decode("utf-8")
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "an object names a member twice"
        raise JsonError(msg)
    return found


def _refuse(_: str) -> NoReturn:
    msg = "it holds a number that is not finite"
    raise JsonError(msg)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)
