"""User ids for containers: no two live containers share one.

Limits per user (pending signals, pipe memory, inotify) are shared by all processes of a uid on the host, whichever
container they are in. Ids are drawn at random from a large range, so that orchestrators that share an engine do not
meet either.
"""

from __future__ import annotations

import random
import threading

WIDE = range(1 << 20, 1 << 30)
NARROW = range(10_000, 60_000)
"""For engines that map only 65,536 ids (user namespaces, rootless)."""


class UidPool:
    """Draws uids and takes them back. Thread-safe."""

    def __init__(self, candidates: range = WIDE, chance: random.Random | None = None) -> None:
        """Draw from a range.

        Args:
            candidates: Must not hold any uid of the host's users.
            chance: None: the operating system's.
        """
        self._candidates = candidates
        self._chance = chance or random.SystemRandom()
        self._lock = threading.Lock()  # guards _live
        self._live: set[int] = set()

    def draw(self) -> int:
        """A uid that no live container of this process has."""
        with self._lock:
            while True:
                uid = self._chance.choice(self._candidates)
                if uid not in self._live:
                    self._live.add(uid)
                    return uid

    def give_back(self, uid: int) -> None:
        """The container that had it is gone."""
        with self._lock:
            self._live.discard(uid)
