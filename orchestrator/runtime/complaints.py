"""What pydantic finds wrong with a value, in words for people who write settings and know nothing of pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from orchestrator.runtime.strict_yaml import shown

_Words = Callable[[Mapping[str, Any]], str]
_NUMBER = "must be a number"
_WHOLE = "must be a whole number"
_TEXT = "must be text; quote it if it looks like something else"
_MAPPING = "must be a mapping of keys to values"
_WORDS: Mapping[str, _Words] = {
    "extra_forbidden": lambda _: "is not a key that is known here; correct or remove it",
    "missing": lambda _: "is missing; add it",
    "literal_error": lambda c: f"must be {c['expected']}",
    "enum": lambda c: f"must be {c['expected']}",
    "greater_than": lambda c: f"must be greater than {c['gt']:g}",
    "greater_than_equal": lambda c: f"must be at least {c['ge']:g}",
    "less_than": lambda c: f"must be less than {c['lt']:g}",
    "less_than_equal": lambda c: f"must be at most {c['le']:g}",
    "finite_number": lambda _: "must be a finite number",
    "int_type": lambda _: _WHOLE,
    "int_parsing": lambda _: _WHOLE,
    "int_from_float": lambda _: _WHOLE,
    "float_type": lambda _: _NUMBER,
    "float_parsing": lambda _: _NUMBER,
    "bool_type": lambda _: "must be true or false",
    "bool_parsing": lambda _: "must be true or false",
    "string_type": lambda _: _TEXT,
    "string_too_short": lambda c: f"must have at least {c['min_length']} characters",
    "string_too_long": lambda c: f"must have at most {c['max_length']} characters",
    "string_pattern_mismatch": lambda c: f"must match the pattern {c['pattern']}",
    "too_short": lambda c: f"must have at least {c['min_length']} entries, not {c['actual_length']}",
    "too_long": lambda c: f"must have at most {c['max_length']} entries",
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: _MAPPING,
    "model_type": lambda _: _MAPPING,
    "model_attributes_type": lambda _: _MAPPING,
    "union_tag_not_found": lambda c: f"needs the key {_plain(c['discriminator'])}",
    "union_tag_invalid": lambda c: f"{_plain(c['discriminator'])} is {c['tag']!r:.80}; it must be {c['expected_tags']}",
}


def reason(error: ErrorDetails, patterns: Mapping[str, str] = {}) -> str:
    """What is wrong with a value, to stand after its name and value.

    Args:
        error: Of `ValidationError.errors()`.
        patterns: Words for the regular expressions that text may have to match.
    """
    context: Mapping[str, Any] = error.get("ctx", {})
    if error["type"] in ("value_error", "assertion_error"):
        return str(context["error"])
    if context.get("pattern") in patterns:
        return patterns[context["pattern"]]
    if error["type"] in _WORDS:
        return _WORDS[error["type"]](context)
    return f"is not accepted: {error['msg'][:1].lower()}{error['msg'][1:]}"


def complaint(error: ErrorDetails, patterns: Mapping[str, str] = {}, below: str = "") -> str:
    """A sentence: the key, its value, and what is wrong; a key that is missing or unknown has no value to be shown.

    Args:
        error: As for `reason`.
        patterns: Likewise.
        below: The key that the value was found under.
    """
    parts = [*([below] if below else []), *(str(part) for part in error["loc"] if part != "[key]")]
    field = f"`{'.'.join(parts)}`"
    if error["type"] in ("missing", "extra_forbidden"):
        return f"{field} {reason(error, patterns)}"
    value = "" if isinstance(error["input"], Mapping) else f" is {shown(error['input'])}"
    return f"{field}{value}: {reason(error, patterns)}"


def _plain(discriminator: str) -> str:
    """`source` for pydantic's `'source'`."""
    return f"`{discriminator.strip(chr(39))}`"
