"""What critics and selectors answer: their JSON, and the choice."""

from __future__ import annotations

from orchestrator.methods.evosql.strict_json import JsonError, load_object
from orchestrator.sql.answers import fenced_blocks


def extract_json(text: str) -> str:
    """The JSON in a critic's answer: the last block fenced as JSON or as nothing, otherwise the whole text."""
    bodies = [body for info, body in fenced_blocks(text) if info.lower() in {"json", ""}]
    return bodies[-1].strip() if bodies else text.strip()


def extract_choice(text: str, count: int) -> int | None:
    """Which of `count` candidates a selector chose, from 1; None: its answer cannot be read.

    Args:
        text: Untrusted.
        count: How many there were.
    """
    try:
        choice = load_object(extract_json(text)).get("choice")
    except JsonError:
        return None
    if isinstance(choice, int) and not isinstance(choice, bool) and 1 <= choice <= count:
        return choice
    return None
