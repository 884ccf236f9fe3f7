"""Which language models may be asked, where, and for what: a policy's part about them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.written_settings import WrittenSettings

Pattern = Annotated[str, Field(min_length=1, max_length=500)]
"""`*` for any characters, `?` for one; case counts. Brackets stand for themselves."""


class ModelRule(WrittenSettings):
    """Models that may be asked; one that no rule names may not. The offline engine and replays need no rule."""

    models: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    """As `PROVIDER/NAME`, whatever name of its own a run gives a model, for instance `anthropic/*`."""
    base_urls: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    """Where they may be asked, for instance `https://api.anthropic.com` or `http://127.0.0.1:*`."""
    roles: Annotated[frozenset[ModelRole], Field(min_length=1)] = frozenset(ModelRole)
    """What for."""

    def allows(self, model: str, base_url: str, role: ModelRole) -> bool:
        """Whether it names this use of a model."""
        return role in self.roles and _matches(model, self.models) and _matches(base_url, self.base_urls)


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern.replace("[", "[[]")) for pattern in patterns)
