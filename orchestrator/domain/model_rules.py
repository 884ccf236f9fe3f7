"""Which language models may be asked, where, and for what: a policy's part about them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field

from orchestrator.domain.model_access import ModelRole, Provider
from orchestrator.domain.written_settings import WrittenSettings

Pattern = Annotated[str, Field(min_length=1, max_length=500)]
"""`*` for any characters, `?` for one; case counts. Brackets stand for themselves."""
_ADDRESS = re.compile(
    r"(?P<scheme>https?|\*)://(?P<host>\*|(?:\*\.)?[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:(?:\*|[0-9]+))?(?P<path>/.*)?"
)


def _is_address(pattern: str) -> str:
    """Accept a pattern in which no `*` reaches from a host into another, or from a host into a path."""
    if pattern != "*" and _ADDRESS.fullmatch(pattern) is None:
        msg = (
            "must be `*`, or SCHEME://HOST[:PORT][/PATH] with a host in full, `*.` before one for all hosts below it, "
            "or `*`, and a port or `*`; without a path it means every path there"
        )
        raise ValueError(msg)
    return pattern


AddressPattern = Annotated[Pattern, AfterValidator(_is_address)]
"""An address whose scheme, host, port and path are matched apart."""


def _is_model(pattern: str) -> str:
    """Accept a pattern that a model can have the name of; another would forbid what it seems to allow."""
    if not any(_can_mean(pattern, f"{provider}/") for provider in Provider):
        msg = (
            f"matches no PROVIDER/NAME, so it allows nothing; write the provider before it, for instance "
            f"{Provider.ANTHROPIC}/* or {Provider.OPENAI}/*, or begin with `*`"
        )
        raise ValueError(msg)
    return pattern


def _can_mean(pattern: str, beginning: str) -> bool:
    """Whether a pattern matches something that begins so and goes on."""
    for place, character in enumerate(beginning):
        at = pattern[place : place + 1]
        if at == "*":
            return True
        if at not in ("?", character):
            return False
    return len(pattern) > len(beginning)


ModelPattern = Annotated[Pattern, AfterValidator(_is_model)]
"""A model as `PROVIDER/NAME`."""


class ModelRule(WrittenSettings):
    """Models that may be asked; one that no rule names may not. The offline engine and replays need no rule."""

    models: Annotated[tuple[ModelPattern, ...], Field(min_length=1)]
    """As `PROVIDER/NAME`, whatever name of its own a run gives a model, for instance `anthropic/*`."""
    base_urls: Annotated[tuple[AddressPattern, ...], Field(min_length=1)]
    """Where they may be asked, for instance `https://api.anthropic.com`, `https://*.example.org/v1` or
    `http://127.0.0.1:*`; without a path, at every path there; without a port, at none but the scheme's own."""
    roles: Annotated[frozenset[ModelRole], Field(min_length=1)] = frozenset(ModelRole)
    """What for."""

    def allows(self, model: str, base_url: str, role: ModelRole) -> bool:
        """Whether it names this use of a model."""
        return (
            role in self.roles
            and _matches(model, self.models)
            and any(_is_at(base_url, pattern) for pattern in self.base_urls)
        )


def _is_at(base_url: str, pattern: str) -> bool:
    """Whether a base URL is one that a pattern means, part by part."""
    if pattern == "*":
        return True
    wanted, found = _ADDRESS.fullmatch(pattern), _ADDRESS.fullmatch(base_url)
    if wanted is None or found is None:
        return False
    host, port = wanted["host"].lower(), wanted["port"]
    return (
        wanted["scheme"] in ("*", found["scheme"])
        and (host == found["host"].lower() or (host.startswith("*") and fnmatchcase(found["host"].lower(), host)))
        and (port == ":*" or port == found["port"])
        and (wanted["path"] is None or _matches(found["path"] or "/", (wanted["path"],)))
    )


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern.replace("[", "[[]")) for pattern in patterns)
