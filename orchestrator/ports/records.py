"""What is spent, and what is kept of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from orchestrator.domain.budgets import Account, Spend


class Reservation(AbstractContextManager["Reservation"], Protocol):
    """Spending set aside; leaving its block unsettled charges it in full and counts it as lost. Thread-safe."""

    def settle(self, actual: Spend) -> None:
        """Replace the reservation by what was really spent; what is over it is charged as well."""
        ...

    def release(self) -> None:
        """Give everything back: nothing was spent."""
        ...


class Ledger(Protocol):
    """What may be spent, what is set aside and what was spent. Thread-safe."""

    def reserve(self, amounts: Spend, account: Account) -> Reservation:
        """Set spending aside, at its worst case.

        Raises:
            BudgetExhausted: A ceiling does not cover it; nothing was set aside.
            InputError: Its price is unknown although there is a ceiling in US dollars.
        """
        ...

    def charge(self, amounts: Spend, account: Account, *, lost: bool = False) -> None:
        """Record what an earlier process spent, as its journal tells; ceilings do not stop it, since it is spent.

        Raises:
            InputError: Its price is unknown although there is a ceiling in US dollars.
        """
        ...


class Journal(Protocol):
    """A run's truth: records by key, in order, each written once. Thread-safe; durable when `put` returns."""

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The record of a key, or None."""
        ...

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """Write a record.

        Raises:
            RunStateError: The key has a record already, or the store cannot be written.
        """
        ...

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(key, record) of every key with this prefix, in the order of writing."""
        ...

    def put_blob(self, content: bytes) -> str:
        """Store content; returns its digest (`sha256:` and 64 hex digits). Idempotent."""
        ...

    def get_blob(self, digest: str) -> bytes:
        """Content by digest.

        Raises:
            RunStateError: Nothing has this digest.
        """
        ...
