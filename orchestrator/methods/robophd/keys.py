"""Where a run's journal keeps analyses and answers: by the content of a package, so that nothing is paid for twice."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_PLAIN = re.compile(r"(?!x-)[A-Za-z0-9][A-Za-z0-9_./-]{0,63}")
_CONTENT_DIGITS = 16


def journal_name(identity: str) -> str:
    """An id as one part of a journal key; different ids have different names.

    Args:
        identity: Of a question, a database or a model, for instance `spider/17`.

    Returns:
        At most 64 letters, digits and `_.:-`, for instance `spider:17`; an id that has other characters, or is longer,
        is hashed.
    """
    if _PLAIN.fullmatch(identity):
        return identity.replace("/", ":")
    return f"x-{hashlib.sha256(identity.encode('utf-8', errors='surrogatepass')).hexdigest()[:32]}"


def content_name(digest: str) -> str:
    """A digest as one part of a journal key: its first 16 hex digits; records hold the whole of it.

    Args:
        digest: `sha256:` and 64 hex digits.
    """
    return digest.removeprefix("sha256:")[:_CONTENT_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKeys:
    """The keys of analyses and answers."""

    variant: str = ""
    """Name of the model, where it is another than the run's: its analyses and answers are kept apart."""

    def tool(self, package: str, database: str) -> str:
        """Of a tool's run on a database, which is the same for all models.

        Args:
            package: Digest.
            database: Id.
        """
        return f"tool/{content_name(package)}/{journal_name(database)}"

    def hybrid(self, package: str, database: str) -> str:
        """Of a model's analysis of a database; its requests and its tools' results stand below it.

        Args:
            package: Digest.
            database: Id.
        """
        return f"{self._varied('hybrid')}/{content_name(package)}/{journal_name(database)}"

    def answer(self, package: str, question: str) -> str:
        """Of an answer; its requests and its queries' results stand below it.

        Args:
            package: Digest.
            question: Id.
        """
        return f"{self._varied('answer')}/{content_name(package)}/{journal_name(question)}"

    def _varied(self, kind: str) -> str:
        return f"{kind}:{journal_name(self.variant)}" if self.variant else kind
