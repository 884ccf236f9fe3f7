"""Fields that the forms of all layouts share: texts and ids that later steps can write down as they are."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

MAX_CHARACTERS = 100_000
"""Of a question, its evidence or its gold query."""
MAX_ID_CHARACTERS = 200


def _without_nul(text: str) -> str:
    if "\0" in text:
        msg = "it holds a NUL"
        raise ValueError(msg)
    return text


def _as_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        msg = "it is neither a text nor a whole number"
        raise ValueError(msg)  # noqa: TRY004 - pydantic tells of this kind alone
    name = str(value)
    if len(name) > MAX_ID_CHARACTERS:
        msg = f"it is too long; {MAX_ID_CHARACTERS} characters are allowed"
        raise ValueError(msg)
    if not name or not name.isprintable():
        msg = "it is no text that can be shown on one line"
        raise ValueError(msg)
    return name


Text = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(_without_nul)]
"""Without a NUL, which no query can hold, and without halves of surrogate pairs, which pydantic refuses by itself."""
Id = Annotated[str, BeforeValidator(_as_id)]
"""Written as a text or a whole number; both are the same id."""
