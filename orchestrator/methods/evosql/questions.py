"""A question as the method sees it, and where the journal keeps what belongs to it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_PLAIN_ID = re.compile(r"(?!x-)[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """A question without its gold query."""

    id: str
    """Unique in the run."""
    text: str
    evidence: str = ""
    """What the data set adds to the question; empty: nothing."""

    @property
    def key(self) -> str:
        """Prefix of its journal keys, for instance `q/17`; an id that is no plain name is hashed."""
        if _PLAIN_ID.fullmatch(self.id):
            return f"q/{self.id}"
        return f"q/x-{hashlib.sha256(self.id.encode('utf-8', errors='surrogatepass')).hexdigest()[:32]}"
