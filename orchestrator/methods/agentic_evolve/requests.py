"""An island's requests to the model: durable, paid for, and seeded by their number.

`i1/request/0042/sent` is written before the call, `i1/request/0042` after it. A `sent` without its reply means that a
process ended while the call was in flight. Such a call is charged at its reservation and counted as lost, since nobody
can know, and the request is sent again under the same number and seed. A model that is repeatable loses nothing: it is
simply asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.domain.conversation import AssistantMessage, Conversation, Reply, Sampling, ToolCall, Usage
from orchestrator.domain.records import from_record, request_digest, to_record
from orchestrator.errors import BudgetExhausted
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import stop_key
from orchestrator.runtime.budgets import Account, Spend
from orchestrator.search.replay import Record
from orchestrator.search.streams import derive_seed


class Requests:
    """Asks the model for one island. Not thread-safe."""

    def __init__(self, context: RunContext, island: int) -> None:
        self._context = context
        self._island = island
        self._model = context.ports.model
        self._account = Account(role="agent", model=self._model.name, island=island)
        self.made = 0
        """Requests answered so far; lost calls do not count."""
        self.usage = Usage()
        """Of all replies so far."""

    @property
    def left(self) -> int:
        """How many more may be made."""
        return self._context.settings.requests_per_island - self.made

    def tokens(self, conversation: Conversation) -> int:
        """Length of a conversation as the model counts it, tools included."""
        return self._model.count_tokens(conversation, self._context.tools)

    def ask(self, conversation: Conversation) -> Reply:
        """The model's next message.

        Raises:
            BudgetExhausted: A ceiling does not cover its worst case, or did not in an earlier process.
            ModelError: No answer could be had.
            Cancelled: Somebody asked to stop.
            RunStateError: The journal holds a reply to another conversation.
        """
        number = self.made + 1
        key = f"i{self._island}/request/{number:04d}"
        sampling = self._sampling(number, conversation)
        identity = {"conversation": request_digest(conversation, self._context.tools, sampling)}
        if not self._model.is_repeatable:
            for announcement in self._context.steps.lost(key):
                self._charge(from_record(Usage, announcement["reserved"]), lost=True)
        worst = self._model.worst_case(conversation, self._context.tools, sampling)

        def once() -> Reply:
            record = self._context.steps.once(
                key,
                lambda: {"reply": to_record(self._complete(conversation, sampling))},
                identity=identity,
                announce=lambda: self._announcement(identity, worst),
            )
            return from_record(Reply, record["reply"])

        if self._context.steps.recorded(key) is None:
            self._stop_where_it_stopped()
            reply = self._paid(once, worst)
        else:
            reply = once()
            self._charge(Spend(usage=reply.usage).priced_as(Spend(usage=worst)).usage)
        self.made = number
        self.usage += reply.usage
        return reply

    def _sampling(self, number: int, conversation: Conversation) -> Sampling:
        settings = self._context.settings
        room = self._model.context_tokens - self.tokens(conversation)
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

    def _announcement(self, identity: Record, worst: Usage) -> Record:
        self._context.token.check()
        at_stake = Usage() if self._model.is_repeatable else worst
        return {**identity, "reserved": to_record(at_stake)}

    def _complete(self, conversation: Conversation, sampling: Sampling) -> Reply:
        return _encodable(self._model.complete(conversation, self._context.tools, sampling))

    def _paid(self, once: Callable[[], Reply], worst: Usage) -> Reply:
        with self._context.ports.ledger.reserve(Spend(requests=1, usage=worst), self._account) as reservation:
            try:
                reply = once()
            except BaseException:
                if self._model.is_repeatable:
                    reservation.release()
                raise  # otherwise the reservation counts as lost, which is what the announcement means to a resume
            reservation.settle(Spend(requests=1, usage=reply.usage))
        return reply

    def _charge(self, usage: Usage, *, lost: bool = False) -> None:
        self._context.ports.ledger.charge(Spend(requests=1, usage=usage), self._account, lost=lost)


def _encodable(reply: Reply) -> Reply:
    """The same reply without lone surrogates, which JSON escapes can bring in and no record or request can hold."""
    message = reply.message
    calls = tuple(
        call if _is_encodable(call) else ToolCall(id=_clean(call.id), name=_clean(call.name), arguments=None)
        for call in message.tool_calls
    )
    return replace(reply, message=AssistantMessage(text=_clean(message.text), tool_calls=calls))


def _is_encodable(call: ToolCall) -> bool:
    try:
        to_record(call)
    except ValueError:
        return False
    return True


def _clean(text: str) -> str:
    return text.encode("utf-8", errors="replace").decode("utf-8")
