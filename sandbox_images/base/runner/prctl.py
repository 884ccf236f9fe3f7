"""What a process asks of the kernel about itself (prctl(2)). A kernel that refuses changes nothing that we rely on."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def be_undumpable() -> None:
    """Close this process's /proc files to others of the same user; forked processes inherit it."""
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Be the parent of every process below this one that loses its own."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
