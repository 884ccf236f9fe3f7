"""An island's requests to the model: numbered, and seeded by their number; an ensemble's member goes by the seed.

How they are made durable and paid for is `search/requests.py`.
"""

from __future__ import annotations

from orchestrator.domain.budgets import Account
from orchestrator.domain.conversation import Conversation, Reply, Sampling, Usage
from orchestrator.errors import BudgetExhausted, ContextTooLong
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import stop_key
from orchestrator.search.requests import ModelRequests
from orchestrator.search.streams import derive_seed


class Requests:
    """Asks the model for one island. Not thread-safe."""

    def __init__(self, context: RunContext, island: int) -> None:
        model = context.ports.model
        self._context = context
        self._island = island
        self._requests = ModelRequests(
            model=model,
            steps=context.steps,
            ledger=context.ports.ledger,
            account=Account(role="agent", model=model.name, island=island),
            check=context.token.check,
            tools=context.tools,
        )
        self._numbered = 0  # requests that have an outcome, conversations that were too long included
        self.made = 0
        """Requests answered so far; lost calls and conversations that were too long do not count."""
        self.usage = Usage()
        """Of all replies so far."""

    @property
    def left(self) -> int:
        """How many more may be made."""
        return self._context.settings.requests_per_island - self.made

    def tokens(self, conversation: Conversation) -> int:
        """Length of a conversation as the model counts it, tools included."""
        return self._requests.tokens(conversation)

    def ask(self, conversation: Conversation) -> Reply:
        """The model's next message.

        Raises:
            BudgetExhausted: A ceiling does not cover its worst case, or did not in an earlier process.
            ContextTooLong: The conversation is too long for the model; the next request has another number.
            ModelError: No answer could be had.
            Cancelled: Somebody asked to stop.
            RunStateError: The journal holds a reply to another conversation.
        """
        number = self._numbered + 1
        key = f"i{self._island}/request/{number:04d}"
        sampling = self._sampling(number, conversation)
        try:
            reply = self._requests.ask(key, conversation, sampling, before=self._stop_where_it_stopped)
        except ContextTooLong:
            self._numbered = number
            raise
        self._numbered = number
        self.made += 1
        self.usage += reply.usage
        return reply

    def _sampling(self, number: int, conversation: Conversation) -> Sampling:
        settings = self._context.settings
        room = self._requests.context_tokens - self.tokens(conversation)
        return Sampling(
            seed=derive_seed(settings.seed, "request", self._island, number),
            max_output_tokens=max(1, min(settings.max_output_tokens, room)),
            temperature=settings.temperature,
        )

    def _stop_where_it_stopped(self) -> None:
        """A budget that has ended an island has ended it for good: others may have seen its last elites as such."""
        if self._context.steps.recorded(stop_key(self._island)) is not None:
            msg = f"island {self._island} has stopped at this request before"
            raise BudgetExhausted(msg)
