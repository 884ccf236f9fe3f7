"""The requests of one conversation: numbered, durable and added up, so that a later process can charge them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.errors import ContextTooLong
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.search.requests import ModelRequests, lost_spending

MIN_REPLY_TOKENS = 16
"""A conversation that leaves less room in the model's context is at its end."""


class NumberedRequests:
    """Asks the model of a context on one account, from request 1 on. Not thread-safe; one for each conversation."""

    def __init__(
        self,
        context: AnswerContext,
        key: str,
        *,
        role: str,
        seed: Callable[[int], int],
        tools: Sequence[ToolSpec] = (),
    ) -> None:
        """Nothing is asked yet.

        Args:
            context: Of the process.
            key: Of the conversation; the requests stand below it in the journal.
            role: Whose spending it is, in the ledger.
            seed: Of the n-th request.
            tools: Part of every request.
        """
        self._context = context
        self._key = key
        self._seed = seed
        self._tools = tuple(tools)
        self._requests = ModelRequests(
            model=context.model,
            steps=context.steps,
            ledger=context.ledger,
            account=_account(context, role),
            check=context.cancel.check,
            tools=tools,
            announces_free_calls=False,
        )
        self.made = 0
        """Requests answered so far."""
        self.usage = Usage()
        """Of all replies so far, as the ledger was charged."""

    def room(self, conversation: Conversation) -> int:
        """How many tokens a reply may have at most; below 0: the conversation is too long itself."""
        return self._context.model.context_tokens - self._requests.tokens(conversation)

    def tokens(self, conversation: Conversation) -> int:
        """Length of a conversation as the model counts it, tools included."""
        return self._requests.tokens(conversation)

    def ask(self, conversation: Conversation, temperature: float) -> Reply | None:
        """The model's next message; None: the conversation leaves no room for one, by our count or its provider's.

        Raises:
            BudgetExhausted: A ceiling does not cover its worst case.
            ModelError: No answer could be had.
            Cancelled: Somebody asked to stop.
            RunStateError: The journal holds a reply to another conversation.
        """
        room = self.room(conversation)
        if room < MIN_REPLY_TOKENS:
            return None
        number = self.made + 1
        sampling = Sampling(
            seed=self._seed(number),
            max_output_tokens=min(self._context.settings.max_output_tokens, room),
            temperature=temperature,
        )
        key = request_key(self._key, number)
        try:
            reply = self._requests.ask(key, conversation, sampling, before=self._context.before)
        except ContextTooLong:
            return None
        self.made = number
        self.usage += self._charged(reply, conversation, sampling)
        return reply

    def _charged(self, reply: Reply, conversation: Conversation, sampling: Sampling) -> Usage:
        """Its usage; where its price is unknown, at the price it was reserved at, as ledgers do."""
        if reply.usage.usd is not None:
            return reply.usage
        worst = self._context.model.worst_case(conversation, self._tools, sampling)
        return Spend(usage=reply.usage).priced_as(Spend(usage=worst)).usage


def request_key(key: str, number: int) -> str:
    """The journal key of a request of a conversation, for instance `answer/0123456789abcdef/17/request/0002`.

    Args:
        key: Of the conversation.
        number: From 1.
    """
    return f"{key}/request/{number:04d}"


def charge_recorded(context: AnswerContext, key: str, *, role: str, requests: int, usage: Usage) -> None:
    """Charge for a conversation of an earlier process, as its requests would if they were made again.

    Args:
        context: Of this process.
        key: Of the conversation.
        role: Whose spending it was.
        requests: How many were answered; those that were lost beside them are found in the journal.
        usage: Of all that were answered.

    Raises:
        InputError: Its price is unknown although there is a ceiling in US dollars.
        RunStateError: An announcement is damaged.
    """
    account = _account(context, role)
    for number in range(1, requests + 2):  # the last one may have found the conversation too long
        for payer, spend in lost_spending(context.steps, request_key(key, number), account):
            context.ledger.charge(spend, payer, lost=True)
    if requests:
        context.ledger.charge(Spend(requests=requests, usage=usage), account)


def _account(context: AnswerContext, role: str) -> Account:
    return Account(role=role, model=context.model.name)
