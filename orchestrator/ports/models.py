"""Language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage


class LanguageModel(Protocol):
    """Answers conversations. Thread-safe, and holds no state that a reply depends on."""

    @property
    def name(self) -> str:
        """For records, for instance `offline` or `anthropic/NAME`."""
        ...

    @property
    def context_tokens(self) -> int:
        """How long a conversation may grow."""
        ...

    @property
    def is_repeatable(self) -> bool:
        """Whether asking again gives the same reply at no cost, so that a call lost in a crash costs nothing."""
        ...

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """Length of the conversation in the model's tokens, or an estimate that is not lower."""
        ...

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """What one call of `complete` may cost at most; `usd` is None where the price is unknown."""
        ...

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """The model's next message. At most one call of the provider is paid for, whatever is tried on the way.

        Raises:
            ModelUnavailable: Its provider does not serve us, and has not for as long as we wait; nothing was spent.
            ContextTooLong: The provider says so; nothing was spent.
            LostReply: It may have been paid for; the caller may pay once more and ask again. It is `LostInOutage` where
                the provider serves nobody by now: a caller that does not ask again is paused by it.
            ModelError: No answer could be had; nothing was spent.
            CancelledUnpaid: An operator asked to stop while no call was in flight; nothing was spent.
            Cancelled: An operator asked to stop; whether it was paid for, nobody can know.
            BudgetExhausted: A ceiling of its own forbids the call; nothing was spent.
            PrerequisiteError: The machine does not let it ask, for instance by a thread more; nothing was spent.
        """
        ...


@runtime_checkable
class ManySamples(LanguageModel, Protocol):
    """A model that can answer a request several times over at once, for which its input is paid once."""

    @property
    def samples_at_once(self) -> int:
        """How many replies one call gives at most, from 1; may fall to 1 once a provider has refused more."""
        ...

    def worst_case_of_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Usage]:
        """What `complete_samples` may cost at most, in parts that add up to it: one for each sampling."""
        ...

    def complete_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Reply]:
        """Replies to one conversation, in one call; their usages add up to what was used.

        Args:
            conversation: What the model is told.
            tools: It may call.
            samplings: 2 to `samples_at_once`, alike in all but their seeds.

        Returns:
            As many replies as the provider gave, at least 1 and at most as many as there are samplings.

        Raises:
            ModelError: As `complete`.
            Cancelled: As `complete`.
        """
        ...


@runtime_checkable
class Ensemble(LanguageModel, Protocol):
    """Several models under one name; a request's seed says which of them answers it."""

    def member(self, sampling: Sampling) -> LanguageModel:
        """The model that answers a request with this sampling; its own name is on the account."""
        ...
