"""What the questions of a bench say, kept in its journal as one blob: read only where a single question is shown.

Gold queries are not part of it: whoever knows the digest of a blob can read it, and methods know the record `run`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from orchestrator.domain.sql import Question
from orchestrator.errors import RunStateError
from orchestrator.ports import Journal


class QuestionText(BaseModel):
    """One question in words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    evidence: str
    difficulty: str


_TEXTS = TypeAdapter(dict[str, QuestionText])


def texts_bytes(questions: Sequence[Question]) -> bytes:
    """All texts by id, without gold queries."""
    texts = {
        question.id: QuestionText(text=question.text, evidence=question.evidence, difficulty=question.difficulty)
        for question in questions
    }
    return json.dumps({name: one.model_dump() for name, one in texts.items()}).encode("ascii")


def read_texts(journal: Journal, digest: str) -> Mapping[str, QuestionText]:
    """The inverse.

    Args:
        journal: Of the run.
        digest: Of the blob.

    Raises:
        RunStateError: It is missing or damaged.
    """
    try:
        return _TEXTS.validate_json(journal.get_blob(digest))
    except ValidationError as error:
        msg = "the texts of the run's questions are damaged; restore the run from a copy"
        raise RunStateError(msg) from error
