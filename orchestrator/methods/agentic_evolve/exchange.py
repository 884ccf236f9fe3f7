"""Where islands meet: the elites they show each other, and waiting for them.

At its k-th migration an island sees its neighbours' elites as of *their* k-th, so that no timing can change what is
shown. An island publishes its own elites before it waits for others', and a stopped island has published its last, so
that nobody waits for ever: the k-th migration of a neighbour depends on nothing later than our k-th.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from orchestrator.errors import EvolvariumError
from orchestrator.methods.agentic_evolve.entries import Entry
from orchestrator.runtime.deadlines import Deadline
from orchestrator.runtime.workers import CancelToken

_SLICE_SECONDS = 1.0


class Exchange:
    """Snapshots of all islands' elites. Thread-safe."""

    def __init__(self, token: CancelToken, *, wait_seconds: float) -> None:
        """Nothing published yet.

        Args:
            token: Ends every waiting.
            wait_seconds: How long an island waits for its neighbours.
        """
        self._token = token
        self._wait_seconds = wait_seconds
        self._changed = threading.Condition()  # guards the three below
        self._snapshots: dict[tuple[int, int], tuple[Entry, ...]] = {}
        self._latest: dict[int, tuple[Entry, ...]] = {}
        self._stopped: set[int] = set()

    def publish(self, island: int, elites: Sequence[Entry], *, migration: int | None = None) -> None:
        """An island's elites now; `migration` says that they are those of its k-th migration, counted from 1."""
        with self._changed:
            self._latest[island] = tuple(elites)
            if migration is not None:
                self._snapshots[island, migration] = tuple(elites)
            self._changed.notify_all()

    def stop(self, island: int, elites: Sequence[Entry]) -> None:
        """An island's final elites; they stand for all migrations it did not reach."""
        with self._changed:
            self._latest[island] = tuple(elites)
            self._stopped.add(island)
            self._changed.notify_all()

    def now(self, islands: Sequence[int]) -> list[Entry]:
        """The latest elites of these islands together, whatever their progress."""
        with self._changed:
            return [entry for island in islands for entry in self._latest.get(island, ())]

    def at(self, islands: Sequence[int], migration: int) -> list[Entry]:
        """The elites of these islands together, as of their k-th migration or their final ones; waits for them.

        Raises:
            Cancelled: Somebody asked to stop.
            EvolvariumError: The deadline passed.
        """
        deadline = Deadline.after(self._wait_seconds)
        with self._token.on_cancel(self._wake), self._changed:
            while missing := [island for island in islands if not self._is_there(island, migration)]:
                self._token.check()
                if deadline.has_passed:
                    names = " and ".join(map(str, missing))
                    msg = (
                        f"migration {migration} waited {self._wait_seconds:g} s for island {names}; "
                        "the run is paused with everything kept, resume it to wait again"
                    )
                    raise EvolvariumError(msg)
                self._changed.wait(deadline.at_most(_SLICE_SECONDS))
            snapshots = [self._snapshots.get((island, migration), self._latest[island]) for island in islands]
        return [entry for snapshot in snapshots for entry in snapshot]

    def _is_there(self, island: int, migration: int) -> bool:
        return (island, migration) in self._snapshots or island in self._stopped

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
