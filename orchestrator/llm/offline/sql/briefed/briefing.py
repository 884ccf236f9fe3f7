"""A conversation about one question, taken apart: analysis, instructions, question, and what was tried so far."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, UserMessage
from orchestrator.llm.offline.sql.request import sections_in
from orchestrator.sql.answers import fenced_blocks

TITLES: Mapping[str, str] = {
    "# Answer with a SQLite query": "answer",
    "# Verify the result of a SQLite query": "verify",
    "# Repair a SQLite query": "repair",
}
"""First line of a user message to what is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """What the last message wants, and all that is known for it; every text is untrusted."""

    task: str
    """A value of `TITLES`."""
    analysis: str
    instructions: str
    question: str
    evidence: str
    query: str = ""
    """That is to be verified or repaired."""
    execution: Mapping[str, Any]
    """Its result as it is shown; empty: there is none."""
    failure: str = ""
    tried: tuple[str, ...] = ()
    """Queries proposed before, in their order."""


def task_of(conversation: Conversation) -> str | None:
    """What the last user message wants; None: it has none of the titles, or the first one asks no question."""
    users = [message for message in conversation.messages if isinstance(message, UserMessage)]
    if not users or _title(users[0]) != "answer":
        return None
    return _title(users[-1])


def read_briefing(conversation: Conversation) -> Briefing | None:
    """The briefing in a conversation; None: see `task_of`."""
    task = task_of(conversation)
    if task is None:
        return None
    users = [message for message in conversation.messages if isinstance(message, UserMessage)]
    known, asked, last = (sections_in(text) for text in (conversation.system, users[0].text, users[-1].text))
    return Briefing(
        task=task,
        analysis=known.get("Database analysis", ""),
        instructions=known.get("Instructions", ""),
        question=asked.get("Question", "").strip(),
        evidence=asked.get("Evidence", "").strip(),
        query=last.get("Query", "").strip(),
        execution=_execution(last.get("Result", "")),
        failure=last.get("Failure", "").strip() or _unfenced(users[-1].text, "## Failure"),
        tried=tuple(_tried(conversation)),
    )


def _title(message: UserMessage) -> str | None:
    return TITLES.get(message.text.partition("\n")[0].strip())


def _execution(text: str) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _unfenced(text: str, heading: str) -> str:
    """The line below a heading, where no block follows it."""
    lines = text.split("\n")
    place = lines.index(heading) if heading in lines else len(lines)
    return next((line.strip() for line in lines[place + 1 : place + 4] if line.strip() and line[0] not in "`#"), "")


def _tried(conversation: Conversation) -> Iterator[str]:
    for message in conversation.messages:
        if isinstance(message, AssistantMessage):
            yield from (body.strip() for info, body in fenced_blocks(message.text) if info == "sql")
        elif isinstance(message, UserMessage):
            query = sections_in(message.text).get("Query", "").strip()
            if query:
                yield query
