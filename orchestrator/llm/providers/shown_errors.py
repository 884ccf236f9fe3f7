"""What a server said, made fit to be shown, logged and recorded: one short line without keys and terminal escapes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from urllib.parse import quote

from orchestrator.llm.providers.wire import Secret

MAX_SHOWN = 300
"""Characters."""
_MAX_READ = 20_000
_PART = 8
"""Characters at either end of a key that tell it; servers like to show that many."""
_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)"  # titles and links
    r"|(\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b[ -/]*[0-~]"
)
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|key|pk|xai|gsk|AIza)-[A-Za-z0-9*._-]{12,}")
_HIDDEN = "***"


def shown_error(text: str, key: Secret | None) -> str:
    """One line of at most `MAX_SHOWN` characters, in which no part of a key that tells it is left.

    Args:
        text: Untrusted.
        key: That may be in it, also in part or in base64; None: only what looks like any key is hidden.
    """
    text = _SEQUENCES.sub("", text[:_MAX_READ])
    text = "".join(character if character.isprintable() else " " for character in text)
    text = _LOOKS_LIKE_A_KEY.sub(_HIDDEN, " ".join(_without(text, key).split()))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _without(text: str, key: Secret | None) -> str:
    if key is None or not key.reveal():
        return text
    value = key.reveal()
    text = without_forms(text, key)
    for form in _forms(value):
        text = _without_ends(text, form)
    return text


def without_forms(text: str, key: Secret) -> str:
    """The same text, in which no whole key is left, plain, encoded or in other letters; nothing else is touched.

    Args:
        text: Of any length.
        key: A short one is hidden only as it is: its encodings could be anything.
    """
    value = key.reveal()
    if len(value) < _PART:
        return text.replace(value, _HIDDEN) if value else text
    pattern = "|".join(re.escape(form) for form in sorted(_forms(value), key=len, reverse=True))
    return re.sub(pattern, _HIDDEN, text, flags=re.IGNORECASE)


def _forms(value: str) -> Iterator[str]:
    """A key and what encodings make of it, the longest first as far as one holds another."""
    yield value
    yield quote(value, safe="")
    raw = value.encode()
    yield raw.hex()
    for before in range(3):  # bytes before it in what was encoded, of which only the remainder by three matters
        encoded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        certain = encoded[(0, 2, 3)[before] : len(encoded) - (1 if (before + len(raw)) % 3 else 0)]
        if len(certain) >= _PART:
            yield certain
            yield certain.replace("+", "-").replace("/", "_")


def _without_ends(text: str, form: str) -> str:
    """Hide what begins as a key does, or ends so, as far as it is the key's."""
    if len(form) < _PART:
        return text
    form, folded = form.lower(), text.lower()
    if len(folded) != len(text):  # letters that fold into several: positions would not agree
        folded = text
    while (at := folded.find(form[:_PART])) >= 0:
        length = _PART
        while length < len(form) and folded.startswith(form[: length + 1], at):
            length += 1
        text = text[:at] + _HIDDEN + text[at + length :]
        folded = folded[:at] + _HIDDEN + folded[at + length :]
    while (at := folded.find(form[-_PART:])) >= 0:
        end = at + _PART
        length = _PART
        while length < len(form) and folded[:end].endswith(form[-length - 1 :]):
            length += 1
        text = text[: end - length] + _HIDDEN + text[end:]
        folded = folded[: end - length] + _HIDDEN + folded[end:]
    return text
