"""One call of a language model: set aside, announced, made, recorded and settled, in this order.

Whatever ends the process between two of these, a later one finds in the journal what the call has cost. What is not
known then counts as lost, in full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolCall,
    Usage,
)
from orchestrator.domain.records import from_record, to_record
from orchestrator.errors import (
    BudgetExhausted,
    CancelledUnpaid,
    ContextTooLong,
    EvolvariumError,
    LostReply,
    ModelError,
    PrerequisiteError,
)
from orchestrator.ports import LanguageModel, Ledger, Reservation
from orchestrator.search.replay import Record, Steps

TOO_LONG = "context_too_long"
"""In the place of a reply: what the provider said when the conversation did not fit into the model's context."""
_MAX_SAID = 500
_UNPAID = (ModelError, CancelledUnpaid, BudgetExhausted, PrerequisiteError)
"""Of a call, apart from `LostReply`: what `LanguageModel.complete` raises where nothing was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked, under which key, of whom and on whose account."""

    key: str
    conversation: Conversation
    sampling: Sampling
    identity: Record
    model: LanguageModel
    account: Account
    announces: bool


class _Open(NamedTuple):
    """A request whose spending is set aside, and not settled yet."""

    request: Request
    worst: Usage
    reservation: Reservation


class Attempt:
    """One call, for one request or for several that differ in their seeds alone. Used once, by one thread."""

    def __init__(
        self, requests: Sequence[Request], *, steps: Steps, ledger: Ledger, check: Callable[[], object]
    ) -> None:
        """Nothing is set aside yet.

        Args:
            requests: At least one, all to one model, none of them recorded.
            steps: Of the run.
            ledger: Pays.
            check: Called right before the call; raises `Cancelled` where somebody asked to stop.
        """
        self._requests = tuple(requests)
        self._is_repeatable = requests[0].model.is_repeatable
        self._steps = steps
        self._ledger = ledger
        self._check = check
        self._open: list[_Open] = []

    def reserve(self, worst: Sequence[Usage]) -> None:
        """Set aside what each request may cost.

        Raises:
            BudgetExhausted: A ceiling does not cover them all; nothing is set aside.
        """
        try:
            for request, usage in zip(self._requests, worst, strict=True):
                reservation = self._ledger.reserve(Spend(requests=1, usage=usage), request.account)
                self._open.append(_Open(request, usage, reservation))
        except BaseException:
            self._release()
            raise

    def make(self, call: Callable[[], Sequence[Reply]]) -> None:
        """Announce it, make it and record what came of it, in the requests' order.

        A conversation that is too long is the outcome of all of them. Requests that the call left unanswered cost
        nothing and can be asked again.

        Args:
            call: Gives at most as many replies as there are requests.

        Raises:
            LostReply: It may have been paid for, so it is charged in full; it can be made again.
            ModelError: No answer could be had; nothing is charged.
            CancelledUnpaid: Nor was anything in flight when somebody asked to stop; likewise.
            EvolvariumError: What it has cost cannot be known, so it is charged in full.
        """
        with ExitStack() as stack:
            for one in self._open:
                stack.enter_context(one.reservation)  # one that is still open at the end is lost
            try:
                self._check()
            except BaseException:
                self._release()
                raise
            try:
                self._announce()
                self._record(self._outcomes(call))
            except BaseException:
                if self._is_repeatable:
                    self._release()
                raise
            self._retract()

    def _announce(self) -> None:
        for one in self._open:
            at_stake = Usage() if self._is_repeatable else one.worst
            self._steps.begin(one.request.key, announcement(one.request, at_stake))

    def _outcomes(self, call: Callable[[], Sequence[Reply]]) -> list[dict[str, Any]]:
        try:
            replies = call()
        except ContextTooLong as error:
            return [refusal(str(error))] * len(self._requests)
        except _UNPAID as error:  # of the call alone: what cannot be recorded afterwards was paid for
            if not isinstance(error, LostReply) and not self._is_repeatable:
                self._retract()
            raise
        if not replies:
            msg = f"{self._requests[0].model.name} gave no reply, and says nothing of why"
            raise LostReply(msg)
        return [
            {"reply": to_record(encodable(reply, one.worst))} for reply, one in zip(replies, self._open, strict=False)
        ]

    def _record(self, outcomes: Sequence[dict[str, Any]]) -> None:
        for outcome in outcomes[: len(self._requests)]:
            record_outcome(self._steps, self._open[0].request, outcome)
            reservation = self._open.pop(0).reservation
            if TOO_LONG in outcome:
                reservation.release()
            else:
                reservation.settle(Spend(requests=1, usage=from_record(Reply, outcome["reply"]).usage))

    def _retract(self) -> None:
        """Nothing was paid for what is still open; a process that ends on the way leaves it lost."""
        while self._open:
            request = self._open[0].request
            if request.announces and not self._is_repeatable:
                self._steps.retract(request.key)
            self._open.pop(0).reservation.release()

    def _release(self) -> None:
        while self._open:
            self._open.pop(0).reservation.release()


def announcement(request: Request, at_stake: Usage) -> dict[str, Any] | None:
    """What is recorded before a call; None: the request is not announced.

    Args:
        request: That is about to be made.
        at_stake: What it has cost if nobody learns its outcome.
    """
    if not request.announces:
        return None
    return {**request.identity, "reserved": to_record(at_stake), "account": to_record(request.account)}


def refusal(said: str) -> dict[str, Any]:
    """The outcome of a request whose conversation is too long, in the provider's words."""
    return {TOO_LONG: clean(said)[:_MAX_SAID]}


def record_outcome(steps: Steps, request: Request, outcome: dict[str, Any]) -> None:
    """Write what came of a request under its key, with the account that pays."""
    record = {**outcome, "account": to_record(request.account)}
    steps.once(request.key, partial(dict, record), identity=request.identity)


def encodable(reply: Reply, worst: Usage) -> Reply:
    """The same reply without what JSON escapes can bring in and no record or request can hold.

    That is lone surrogates, numbers that are not finite, and values nested too deep. They are replaced in texts; a
    call's arguments that hold one count as none. A native message must come back to its provider unchanged, so it is
    left out as a whole. A usage that cannot be recorded is none.

    Args:
        reply: As the model gave it.
        worst: What it has cost at most; taken for its usage where it has none.
    """
    message = reply.message
    native = message.native
    cleaned = replace(
        reply,
        served_by=clean(reply.served_by),
        message=AssistantMessage(
            text=clean(message.text),
            tool_calls=tuple(
                call
                if _can_be_recorded(AssistantMessage(text="", tool_calls=(call,)))
                else ToolCall(id=clean(call.id), name=clean(call.name), arguments=None)
                for call in message.tool_calls
            ),
            reasoning=clean(message.reasoning),
            native=native if _can_be_recorded(AssistantMessage(text="", native=native)) else None,
        ),
    )
    return cleaned if _is_the_same_when_read(cleaned) else replace(cleaned, usage=worst, is_estimate=True)


def _can_be_recorded(message: AssistantMessage) -> bool:
    """Whether it can be written and is the same when it is read again; within a reply, whose depth counts."""
    return _is_the_same_when_read(Reply(message=message, usage=Usage(), stop=StopReason.END))


def _is_the_same_when_read(reply: Reply) -> bool:
    try:
        return from_record(Reply, to_record(reply)) == reply
    except (ValueError, RecursionError, EvolvariumError):
        return False


def clean(text: str) -> str:
    """The same text without lone surrogates."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
