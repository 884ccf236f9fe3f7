"""Stands in for a model whose replies are all recorded: for walking through a run without a key or a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NoReturn

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec, Usage
from orchestrator.domain.model_access import Provider
from orchestrator.errors import ModelError
from orchestrator.llm.providers.estimates import request_tokens

_TOO_MUCH = Usage(input_tokens=10**15, usd=Decimal(10**12))


class UnaskedModel:
    """A `LanguageModel` under another one's name that never answers. Thread-safe."""

    def __init__(self, name: str, provider: Provider, context_tokens: int, *, is_priced: bool) -> None:
        """Stand in for a model.

        Args:
            name: Its own.
            provider: Its own, for conversations are counted as it wants them written.
            context_tokens: Its own, so that conversations are compacted where they were.
            is_priced: Whether its price is known, as it is under a ceiling in US dollars.
        """
        self._name = name
        self._provider = provider
        self._context_tokens = context_tokens
        self._is_priced = is_priced

    @property
    def name(self) -> str:
        """Of the model it stands in for."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """As given."""
        return self._context_tokens

    @property
    def is_repeatable(self) -> bool:
        """Never, as of a provider's model: calls that were lost have cost something."""
        return False

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """As a provider's model counts."""
        return request_tokens(conversation, tools, protocol=self._provider.value, account=self._name)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:  # noqa: ARG002 - the port's
        """More than any ceiling: where a budget ended the run, it ends there again."""
        return _TOO_MUCH if self._is_priced else replace(_TOO_MUCH, usd=None)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> NoReturn:  # noqa: ARG002 - the port's
        """Refuse.

        Raises:
            ModelError: Always.
        """
        msg = f"a reply of {self._name!r} is not in the journal, and nobody is asked for it here"
        raise ModelError(msg)
