"""What a request says of a database, and a digest of everything that requests are made of."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any

from orchestrator.domain.sql import Description
from orchestrator.methods import evosql
from orchestrator.methods.evosql import QuestionView
from orchestrator.ports import LanguageModel
from orchestrator.sql.datasets import Descriptions, describe_columns
from orchestrator.sql.schema_text import MIN_CHARACTERS, Style, render
from orchestrator.sql.values import ValueIndex

STYLE = Style.EXAMPLES
SCHEMA_CHARACTERS = 60_000
"""Of a schema's text at most; the largest of BIRD's databases needs less."""
MATCHES = 20
"""Stored texts that a question mentions, at most."""


class SchemaTexts:
    """The schema of one database as text, for one question after the other. Thread-safe."""

    def __init__(self, description: Description, descriptions: Descriptions, *, name: str, characters: int) -> None:
        """Prepare what all questions share.

        Args:
            description: Of the database, as generated SQL may see it.
            descriptions: What the data set says of its columns.
            name: Of the database.
            characters: Of a text, at most.
        """
        self._schema = describe_columns(description.schema, descriptions)
        self._index = ValueIndex(description.values)
        self._name = name
        self._characters = characters

    def of(self, question: QuestionView) -> str:
        """The text for one question, with the stored texts that it mentions."""
        matches = self._index.link(question.text, question.evidence, limit=MATCHES)
        return render(self._schema, STYLE, matches=matches, max_characters=self._characters, database=self._name)


def schema_characters(*models: LanguageModel) -> int:
    """How long a schema's text may be: about half of the shortest context, where that is not plenty."""
    shortest = min(model.context_tokens for model in models)
    return max(MIN_CHARACTERS, min(SCHEMA_CHARACTERS, 3 * shortest // 2))


def prompts_record(characters: int) -> dict[str, Any]:
    """What requests are made of, beside the questions and the databases.

    Args:
        characters: Of a schema's text, at most.
    """
    stored = sorted(files(evosql).joinpath("prompts").iterdir(), key=lambda entry: entry.name)
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in stored if entry.name.endswith(".txt")}
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
    return {"digest": f"sha256:{digest}", "schema": STYLE.value, "schema_characters": characters, "matches": MATCHES}
