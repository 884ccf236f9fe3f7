"""Ctrl-C and SIGTERM end a command cleanly, however often they come."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.errors import Cancelled, EvolvariumError
from orchestrator.runtime.signals import cancelled_by_signals
from orchestrator.runtime.workers import CancelToken

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stoppable() -> Iterator[CancelToken]:
    """A token that the first signal cancels; a second one ends the block, but not the removal of containers.

    Raises:
        Cancelled: A signal came; everything that had to end has ended.
        SandboxError: A signal came, and a container could not be removed.
    """
    token = CancelToken()
    # What `cancelled_by_signals` restores when it begins to wait for the token's callbacks: from then on a signal more
    # must not cut off the removal of containers, which has its own deadlines.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        with cancelled_by_signals(token):
            yield token
    except KeyboardInterrupt as error:
        msg = "stopped by the operator"
        raise Cancelled(msg) from error
    except ExceptionGroup as failures:
        ours = [failure for failure in failures.exceptions if isinstance(failure, EvolvariumError)]
        raise ours[0] if ours else failures from failures
    finally:
        if not token.is_cancelled:  # otherwise the command is at its end, which one signal more must not disturb
            for number, handler in before.items():
                signal.signal(number, handler)
