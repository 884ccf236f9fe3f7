"""What a child gives up before it touches a database: descriptors, memory, time, files, and being looked into."""

from __future__ import annotations

import math
import os
import resource
import sys
from collections.abc import Collection

from limits import Limits
from prctl import be_undumpable, die_with_parent

SPARE_CPU_SECONDS = 2
"""Until the kernel ends a process by itself: for being forked and warmed, and for the runner to end it first."""
_HIGHEST = 1 << 16


def confine(keep: Collection[int], limits: Limits) -> None:
    """Confine this process; cannot be undone.

    Args:
        keep: Descriptors that stay open; 0, 1 and 2 become `/dev/null`, everything else is closed.
        limits: Of the query it will run.

    Raises:
        OSError: The kernel refuses.
    """
    die_with_parent()
    be_undumpable()
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    start = 3
    for descriptor in (*sorted(keep), _HIGHEST):
        os.closerange(start, descriptor)
        start = descriptor + 1
    seconds = math.ceil(limits.query_seconds) + SPARE_CPU_SECONDS
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_CPU, seconds, seconds + 1)  # the first one ends it with a signal of its own
    _lower(resource.RLIMIT_AS, limits.address_bytes)


def _lower(which: int, soft: int, hard: int | None = None) -> None:
    ceiling = resource.getrlimit(which)[1]
    highest = sys.maxsize if ceiling == resource.RLIM_INFINITY else ceiling
    resource.setrlimit(which, (min(soft, highest), min(soft if hard is None else hard, highest)))
