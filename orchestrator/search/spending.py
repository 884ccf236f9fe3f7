"""Who spent what on language models, from the records of any run: a pure reader that knows the requests of all methods.

A request's outcome stands under `.../request/NNNN`: its reply, or that its conversation was too long, which is free.
What announces that it is being asked stands under `.../sent` below it, and `.../void` says of an announcement that it
led to nothing (`search/requests.py`). Records name the account that pays; those of earlier versions did not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

from orchestrator.domain.budgets import Account
from orchestrator.domain.conversation import Usage
from orchestrator.domain.records import from_record
from orchestrator.errors import RunStateError
from orchestrator.search.replay import Record

T = TypeVar("T")
_OUTCOME = re.compile(r"(?:.*/)?request/\d+")
_MARK = re.compile(r"(?P<request>(?:.*/)?request/\d+)(?:/(?P<attempt>\d+))?/(?P<kind>sent|void)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What one account has spent."""

    account: Account
    requests: int = 0
    """Answered ones."""
    usage: Usage = field(default_factory=Usage)
    """Of them."""
    lost: int = 0
    """Calls that were announced and whose outcome nobody knows."""
    lost_usage: Usage = field(default_factory=Usage)
    """Of them, at their reservation."""
    in_flight: int = 0
    """Calls whose outcome a live process may still learn; one that an earlier process lost too, until it is made again.

    The records do not say which process announced a call.
    """
    in_flight_usage: Usage = field(default_factory=Usage)
    """Of them, at their reservation."""

    def __add__(self, other: Spending) -> Spending:
        """Sum, on the first one's account."""
        return Spending(
            account=self.account,
            requests=self.requests + other.requests,
            usage=self.usage + other.usage,
            lost=self.lost + other.lost,
            lost_usage=self.lost_usage + other.lost_usage,
            in_flight=self.in_flight + other.in_flight,
            in_flight_usage=self.in_flight_usage + other.in_flight_usage,
        )

    @property
    def whole(self) -> Usage:
        """Everything that counts against a budget."""
        return self.usage + self.lost_usage + self.in_flight_usage


AccountOf = Callable[[str, Account | None], Account]
"""The account that a request is shown under, by its key and the account its records name; None: they name none."""


def read_spending(
    records: Iterable[tuple[str, Record]], account_of: AccountOf, *, is_live: bool = False
) -> tuple[Spending, ...]:
    """The spending of every account, by role, model and island.

    Args:
        records: (key, record) of a journal, in the order of writing.
        account_of: Says whose a request is.
        is_live: Whether a process goes on with the run, so that what was announced last may still be answered.

    Raises:
        RunStateError: A record is damaged.
    """
    found: dict[Account, Spending] = {}
    answered: set[str] = set()
    announced: dict[str, dict[int, tuple[Account, Usage]]] = {}
    for key, record in records:
        if _OUTCOME.fullmatch(key):
            answered.add(key)
            if "reply" in record:
                reply = _part(key, record, "reply")
                account = account_of(key, _named(key, record))
                _add(found, Spending(account=account, requests=1, usage=_usage(key, reply, "usage")))
        elif (match := _MARK.fullmatch(key)) is not None:
            attempts = announced.setdefault(match["request"], {})
            attempt = int(match["attempt"] or 1)
            if match["kind"] == "sent":
                account = account_of(match["request"], _named(key, record))
                attempts[attempt] = (account, _usage(key, record, "reserved"))
            elif attempt in attempts:
                attempts[attempt] = (attempts[attempt][0], Usage())
    for account, usage, is_last in _unknown(announced, answered):
        if is_live and is_last:
            _add(found, Spending(account=account, in_flight=1, in_flight_usage=usage))
        else:
            _add(found, Spending(account=account, lost=1, lost_usage=usage))
    return tuple(sorted(found.values(), key=lambda one: _place(one.account)))


def read_answered(records: Iterable[tuple[str, Record]]) -> Iterator[tuple[str, Usage]]:
    """(key, usage) of every request that was answered, in the order in which they were recorded.

    Args:
        records: As `read_spending`.

    Raises:
        RunStateError: A record is damaged.
    """
    for key, record in records:
        if _OUTCOME.fullmatch(key) and "reply" in record:
            yield key, _usage(key, _part(key, record, "reply"), "usage")


def _unknown(
    announced: Mapping[str, Mapping[int, tuple[Account, Usage]]], answered: Set[str]
) -> Iterator[tuple[Account, Usage, bool]]:
    """Announcements that led to nothing one knows of; the last one of a request with an outcome led to that.

    Yields:
        Who pays, what was reserved, and whether it is the last one of its request.
    """
    for request, attempts in announced.items():
        last = max(attempts, default=0)
        for attempt, (account, usage) in attempts.items():
            is_last = attempt == last
            if not (is_last and request in answered) and usage != Usage():  # free: retracted, or nothing can be lost
                yield account, usage, is_last


def _add(found: dict[Account, Spending], more: Spending) -> None:
    before = found.get(more.account)
    found[more.account] = more if before is None else before + more


def _named(key: str, record: Record) -> Account | None:
    if "account" not in record:
        return None
    return _read(Account, key, _part(key, record, "account"))


def _usage(key: str, record: Mapping[str, Any], name: str) -> Usage:
    return _read(Usage, key, _part(key, record, name))


def _part(key: str, record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = record.get(name)
    if not isinstance(part, Mapping):
        msg = f"the record of {key!r} is damaged: its {name} is missing; restore the run from a copy, or remove it"
        raise RunStateError(msg)
    return part


def _read(kind: type[T], key: str, part: Mapping[str, Any]) -> T:
    try:
        return from_record(kind, part)
    except RunStateError as error:
        msg = f"the record of {key!r} is damaged ({error}); restore the run from a copy, or remove it"
        raise RunStateError(msg) from error


def _place(account: Account) -> tuple[str, str, int]:
    return account.role, account.model or "", -1 if account.island is None else account.island
