"""Requests to a language model: durable, paid for once, and the same again when a run is resumed.

`<key>/sent` is written before the call, `<key>` after it. A `sent` without its reply means that a process ended while
the call was in flight. Such a call is charged at its reservation and counted as lost, since nobody can know, and the
request is sent again under the same key. A model that is repeatable loses nothing: it is simply asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    ToolCall,
    ToolSpec,
    Usage,
)
from orchestrator.domain.records import from_record, request_digest, to_record
from orchestrator.ports import LanguageModel, Ledger
from orchestrator.search.replay import Record, Steps


class ModelRequests:
    """Asks one model on one account. Thread-safe, as long as no two threads ask under the same key at once."""

    def __init__(
        self,
        *,
        model: LanguageModel,
        steps: Steps,
        ledger: Ledger,
        account: Account,
        check: Callable[[], object],
        tools: Sequence[ToolSpec] = (),
        announces_free_calls: bool = True,
    ) -> None:
        """Nothing is asked yet.

        Args:
            model: Who is asked.
            steps: Of the run.
            ledger: Pays; holds nothing yet of what an earlier process spent here.
            account: Whose spending it is.
            check: Called right before the model is; raises `Cancelled` where somebody asked to stop.
            tools: Part of every request.
            announces_free_calls: Whether a repeatable model's calls are announced too, at no cost; nothing needs it,
                but a run that was begun so goes on so.
        """
        self._model = model
        self._steps = steps
        self._ledger = ledger
        self._account = account
        self._check = check
        self._tools = tuple(tools)
        self._announces = announces_free_calls or not model.is_repeatable

    @property
    def context_tokens(self) -> int:
        """How long a conversation may grow."""
        return self._model.context_tokens

    def tokens(self, conversation: Conversation) -> int:
        """Length of a conversation as the model counts it, tools included."""
        return self._model.count_tokens(conversation, self._tools)

    def ask(
        self, key: str, conversation: Conversation, sampling: Sampling, *, before: Callable[[], object] = lambda: None
    ) -> Reply:
        """The model's next message, from the journal if it is there.

        Args:
            key: Of the journal; it follows from the method's own logic.
            conversation: What the model is told.
            sampling: How it answers.
            before: Called before a request that has no reply yet is reserved; what it raises keeps it from being made.

        Raises:
            BudgetExhausted: A ceiling does not cover its worst case.
            ModelError: No answer could be had.
            Cancelled: Somebody asked to stop.
            RunStateError: The journal holds a reply to another request under this key.
        """
        identity = {"conversation": request_digest(conversation, self._tools, sampling)}
        if not self._model.is_repeatable:
            for announcement in self._steps.lost(key):
                self._charge(from_record(Usage, announcement["reserved"]), lost=True)
        worst = self._model.worst_case(conversation, self._tools, sampling)

        def once() -> Reply:
            record = self._steps.once(
                key,
                lambda: {"reply": to_record(self._complete(conversation, sampling))},
                identity=identity,
                announce=(lambda: self._announcement(identity, worst)) if self._announces else None,
            )
            return from_record(Reply, record["reply"])

        if self._steps.recorded(key) is None:
            before()
            return self._paid(once, worst)
        reply = once()
        self._charge(Spend(usage=reply.usage).priced_as(Spend(usage=worst)).usage)
        return reply

    def _announcement(self, identity: Record, worst: Usage) -> Record:
        self._check()
        at_stake = Usage() if self._model.is_repeatable else worst
        return {**identity, "reserved": to_record(at_stake)}

    def _complete(self, conversation: Conversation, sampling: Sampling) -> Reply:
        if not self._announces:
            self._check()  # otherwise the announcement did
        return _encodable(self._model.complete(conversation, self._tools, sampling))

    def _paid(self, once: Callable[[], Reply], worst: Usage) -> Reply:
        with self._ledger.reserve(Spend(requests=1, usage=worst), self._account) as reservation:
            try:
                reply = once()
            except BaseException:
                if self._model.is_repeatable:
                    reservation.release()
                raise  # otherwise the reservation counts as lost, which is what the announcement means to a resume
            reservation.settle(Spend(requests=1, usage=reply.usage))
        return reply

    def _charge(self, usage: Usage, *, lost: bool = False) -> None:
        self._ledger.charge(Spend(requests=1, usage=usage), self._account, lost=lost)


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
