"""A model whose equal requests are answered once: settings that are compared with each other often ask the same."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.records import request_digest
from orchestrator.ports import LanguageModel


class RememberingModel:
    """Implements `ports.LanguageModel` by one that is repeatable, so that remembering changes no reply and no cost.

    Thread-safe; an equal request of another thread may be answered a second time.
    """

    def __init__(self, model: LanguageModel) -> None:
        """Nothing is remembered yet.

        Args:
            model: Repeatable.
        """
        self._model = model
        self._lock = threading.Lock()  # guards _replies
        self._replies: dict[str, Reply] = {}

    @property
    def name(self) -> str:
        """Of the model."""
        return self._model.name

    @property
    def context_tokens(self) -> int:
        """Of the model."""
        return self._model.context_tokens

    @property
    def is_repeatable(self) -> bool:
        """As the model is."""
        return self._model.is_repeatable

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """As the model."""
        return self._model.count_tokens(conversation, tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """As the model."""
        return self._model.worst_case(conversation, tools, sampling)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """As the model; its reply to an equal request is kept as long as this object."""
        digest = request_digest(conversation, tools, sampling)
        with self._lock:
            known = self._replies.get(digest)
        if known is None:
            known = self._model.complete(conversation, tools, sampling)
            with self._lock:
                self._replies[digest] = known
        return known
