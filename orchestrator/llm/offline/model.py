"""The engine behind the model port."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolSpec,
    Usage,
)
from orchestrator.errors import ModelError
from orchestrator.llm.offline.engine import respond
from orchestrator.llm.offline.evolver import is_evolver_request, respond_evolver
from orchestrator.llm.offline.sql import is_sql_request, respond_sql
from orchestrator.llm.offline.sql.briefed import (
    is_analyst_request,
    is_briefed_request,
    respond_analyst,
    respond_briefed,
)
from orchestrator.llm.tokens import conversation_tokens, first_tokens, message_tokens

DEFAULT_CONTEXT_TOKENS = 500_000


class OfflineModel:
    """A `LanguageModel` without a language model: every reply is a pure function of the request, and free."""

    def __init__(self, *, context_tokens: int = DEFAULT_CONTEXT_TOKENS, effort: float = 1.0) -> None:
        """Begin.

        Args:
            context_tokens: How long a conversation may grow before it is compacted; positive.
            effort: Share of the usual iterations that an analysis spends, over 0 and at most 1. Below 1 it also answers
                questions about databases like a weaker model: from that share of the readings of a question, word by
                word, without doubting results (`sql.briefed`).

        Raises:
            ValueError: An argument is out of its range.
        """
        if not 0 < effort <= 1:
            msg = f"effort must be over 0 and at most 1, got {effort}"
            raise ValueError(msg)
        if context_tokens < 1:
            msg = f"context_tokens must be positive, got {context_tokens}"
            raise ValueError(msg)
        self._context_tokens = context_tokens
        self._effort = effort

    @property
    def name(self) -> str:
        """For records; replies depend on nothing else but the request."""
        return "offline" if self._effort == 1 else f"offline/effort-{self._effort:g}"

    @property
    def context_tokens(self) -> int:
        """As given."""
        return self._context_tokens

    @property
    def is_repeatable(self) -> bool:
        """Always: equal requests have equal replies."""
        return True

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """See `tokens`."""
        return conversation_tokens(conversation, tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """Tokens at most; it costs nothing."""
        return Usage(
            input_tokens=self.count_tokens(conversation, tools),
            output_tokens=sampling.max_output_tokens,
            usd=Decimal(0),
        )

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """The next message; one that is over `max_output_tokens` loses its tool calls and the end of its text.

        Raises:
            ModelError: The conversation does not fit into the context.
        """
        size = self.count_tokens(conversation, tools)
        if size > self._context_tokens:
            msg = f"{size} tokens do not fit into the context of {self.name!r} ({self._context_tokens}); compact"
            raise ModelError(msg)
        if is_sql_request(conversation):
            message = AssistantMessage(text=respond_sql(conversation, sampling))
        elif is_briefed_request(conversation):
            message = AssistantMessage(text=respond_briefed(conversation, sampling, self._effort))
        elif is_analyst_request(conversation):
            message = respond_analyst(conversation, tools)
        elif is_evolver_request(conversation):
            message = respond_evolver(conversation, tools, sampling.seed)
        else:
            message = respond(conversation, tools, sampling.seed, effort=self._effort)
        stop = StopReason.TOOLS if message.tool_calls else StopReason.END
        if message_tokens(message) > sampling.max_output_tokens:
            message = AssistantMessage(text=first_tokens(message.text, sampling.max_output_tokens))
            stop = StopReason.LENGTH
        usage = Usage(input_tokens=size, output_tokens=message_tokens(message), usd=Decimal(0))
        return Reply(message=message, usage=usage, stop=stop)
