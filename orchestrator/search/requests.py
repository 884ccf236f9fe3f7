"""Requests to a language model: durable, paid for once, and the same again when a run is resumed.

`<key>/sent` is written before the call, `<key>` after it. A `sent` without its reply means that a process ended while
the call was in flight. Such a call is charged at its reservation and counted as lost, since nobody can know, and the
request is sent again under the same key; so is a call whose reply was lost on the way. A `<key>/void` says of a `sent`
that nothing was paid for it. A model that is repeatable loses nothing: it is simply asked again.

The record of a request holds its reply, or what the provider said to a conversation that is too long for the model.
Records name the account that pays; those of earlier versions did not, and are charged to the one that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.records import from_record, request_digest
from orchestrator.errors import BudgetExhausted, ContextTooLong, LostReply, RunStateError
from orchestrator.ports import Ensemble, LanguageModel, Ledger, ManySamples
from orchestrator.search.attempts import TOO_LONG, Attempt, Request, announcement, record_outcome, refusal
from orchestrator.search.replay import Record, Steps

REPEATS = 2
"""So many times a request whose reply was lost is made again by one process."""


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
            model: Who is asked; of an ensemble the member that a request's sampling names.
            steps: Of the run.
            ledger: Pays; holds nothing yet of what an earlier process spent here.
            account: Whose spending it is; that of an ensemble's member is on the member's name.
            check: Called right before the model is; raises `Cancelled` where somebody asked to stop.
            tools: Part of every request.
            announces_free_calls: Whether a repeatable model's calls are announced too, at no cost; nothing needs it,
                but a run that was begun so goes on so.
        """
        self._model = model
        self._ensemble = model if isinstance(model, Ensemble) else None
        self._steps = steps
        self._ledger = ledger
        self._account = account
        self._check = check
        self._tools = tuple(tools)
        self._announces_free_calls = announces_free_calls

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

        A request whose reply is lost is charged as lost and made again, up to `REPEATS` times.

        Args:
            key: Of the journal; it follows from the method's own logic.
            conversation: What the model is told.
            sampling: How it answers.
            before: Called before a request that has no reply yet is reserved; what it raises keeps it from being made.

        Raises:
            BudgetExhausted: A ceiling does not cover its worst case.
            ContextTooLong: The conversation is too long for the model; this is recorded, and raised every time.
            ModelError: No answer could be had; nothing was spent, but for lost replies. After the last of these it is
                `LostReply`, or `LostInOutage`, by which the run is paused, where the provider serves nobody by then.
            Cancelled: Somebody asked to stop; what was in flight then is lost.
            RunStateError: The journal holds a reply to another request under this key.
        """
        request = self._request(key, conversation, sampling)
        record = self._charged(request)
        if record is None:
            before()
            self._fill([request])
            record = self._recorded(request) or {}
        if (reply := reply_in(key, record)) is None:
            raise ContextTooLong(record[TOO_LONG])
        return reply

    def ask_samples(
        self,
        keys: Sequence[str],
        conversation: Conversation,
        samplings: Sequence[Sampling],
        *,
        before: Callable[[], object] = lambda: None,
    ) -> list[Reply | None]:
        """Several replies to one conversation, those that are recorded from the journal.

        The others are asked for in as few calls as the model offers, and singly where it offers no such call. A budget
        that does not cover them all covers as many of the first ones as it can.

        Args:
            keys: One for each reply.
            conversation: What the model is told.
            samplings: One for each reply, alike in all but their seeds.
            before: As `ask`; called once.

        Returns:
            A reply for each key; None: the conversation is too long for the model.

        Raises:
            EvolvariumError: As `ask`; what was answered before it is recorded.
        """
        requests = [self._request(k, conversation, one) for k, one in zip(keys, samplings, strict=True)]
        if None in [self._charged(request) for request in requests]:
            before()
        for model in {id(request.model): request.model for request in requests}.values():
            self._fill([request for request in requests if request.model is model])
        return [reply_in(request.key, self._recorded(request) or {}) for request in requests]

    def _request(self, key: str, conversation: Conversation, sampling: Sampling) -> Request:
        model, account = self._model, self._account
        if self._ensemble is not None:
            model = self._ensemble.member(sampling)
            account = replace(account, model=model.name)
        return Request(
            key=key,
            conversation=conversation,
            sampling=sampling,
            identity={"conversation": request_digest(conversation, self._tools, sampling)},
            model=model,
            account=account,
            # Where a call of another model was lost here, the record needs an announcement of its own.
            announces=self._announces_free_calls or not model.is_repeatable or bool(self._steps.lost(key)),
        )

    def _recorded(self, request: Request) -> Record | None:
        return self._steps.known(request.key, identity=request.identity)

    def _charged(self, request: Request) -> Record | None:
        """The record of a request, once what an earlier process spent on it is charged, lost calls included."""
        for account, spend in lost_spending(self._steps, request.key, request.account):
            self._ledger.charge(spend, account, lost=True)
        record = self._recorded(request)
        reply = None if record is None else reply_in(request.key, record)
        if record is not None and reply is not None:
            spend = Spend(requests=1, usage=reply.usage)
            if reply.usage.usd is None:
                spend = spend.priced_as(Spend(usage=self._reserved(request)))
            self._ledger.charge(spend, account_in(request.key, record, request.account))
        return record

    def _reserved(self, request: Request) -> Usage:
        """What was set aside for the call that led to a request's record."""
        announced = self._steps.announced(request.key)
        reserved = Usage() if announced is None else _reserved_in(request.key, announced)
        return reserved if reserved != Usage() else self._worst(request)

    def _worst(self, request: Request) -> Usage:
        return request.model.worst_case(request.conversation, self._tools, request.sampling)

    def _fill(self, requests: Sequence[Request]) -> None:
        """Ask until each of these requests, which differ in their seeds alone, has a record."""
        losses = 0
        while missing := [request for request in requests if self._recorded(request) is None]:
            found = [record for request in requests if (record := self._recorded(request)) is not None]
            said = next((record[TOO_LONG] for record in found if TOO_LONG in record), None)
            if said is not None:  # then it is too long for all of them
                for request in missing:
                    self._steps.begin(request.key, announcement(request, Usage()))
                    record_outcome(self._steps, request, refusal(said))
                return
            try:
                self._attempt(missing)
            except LostReply:
                losses += 1
                if losses > REPEATS:
                    raise
            else:
                losses = 0

    def _attempt(self, missing: Sequence[Request]) -> None:
        """One call, for as many of the requests as model and budget allow."""
        first = missing[0]
        model = first.model
        if len(missing) > 1 and isinstance(model, ManySamples):
            for size in range(min(model.samples_at_once, len(missing)), 1, -1):
                if self._attempted_together(model, missing[:size]):
                    return
        attempt = self._prepared([first])
        attempt.reserve([self._worst(first)])
        attempt.make(lambda: [model.complete(first.conversation, self._tools, first.sampling)])

    def _attempted_together(self, model: ManySamples, requests: Sequence[Request]) -> bool:
        """One call for all of these; False: the budget does not cover them, and nothing was done."""
        conversation, samplings = requests[0].conversation, [request.sampling for request in requests]
        attempt = self._prepared(requests)
        try:
            attempt.reserve(model.worst_case_of_samples(conversation, self._tools, samplings))
        except BudgetExhausted:
            return False
        attempt.make(lambda: model.complete_samples(conversation, self._tools, samplings))
        return True

    def _prepared(self, requests: Sequence[Request]) -> Attempt:
        return Attempt(requests, steps=self._steps, ledger=self._ledger, check=self._check)


def reply_in(key: str, record: Record) -> Reply | None:
    """The reply in a request's record; None: its conversation was too long for the model.

    Raises:
        RunStateError: The record is damaged.
    """
    reply = record.get("reply")
    if isinstance(reply, Mapping):
        return from_record(Reply, reply)
    if reply is None and isinstance(record.get(TOO_LONG), str):
        return None
    msg = f"the record of {key!r} is damaged: it holds no reply; restore the run from a copy, or remove it"
    raise RunStateError(msg)


def account_in(key: str, record: Record, otherwise: Account) -> Account:
    """Who pays for a request, by its record or announcement.

    Args:
        key: Of the record.
        record: Any of them.
        otherwise: For records of earlier versions, which name nobody.

    Raises:
        RunStateError: The record is damaged.
    """
    account = record.get("account")
    if account is None:
        return otherwise
    if isinstance(account, Mapping):
        return from_record(Account, account)
    msg = f"the record of {key!r} is damaged: its account is none; restore the run from a copy, or remove it"
    raise RunStateError(msg)


def lost_spending(steps: Steps, key: str, account: Account) -> Iterator[tuple[Account, Spend]]:
    """What was lost on a request: calls that were announced and whose outcome nobody knows.

    Args:
        steps: Of the run.
        key: Of the request.
        account: Who pays where a record does not say.

    Raises:
        RunStateError: An announcement is damaged.
    """
    for announced in steps.lost(key):
        reserved = _reserved_in(key, announced)
        if reserved != Usage():  # otherwise nothing could be lost
            yield account_in(key, announced, account), Spend(requests=1, usage=reserved)


def _reserved_in(key: str, announced: Record) -> Usage:
    reserved = announced.get("reserved")
    if isinstance(reserved, Mapping):
        return from_record(Usage, reserved)
    msg = f"an announcement of {key!r} is damaged: it reserves nothing; restore the run from a copy, or remove it"
    raise RunStateError(msg)
