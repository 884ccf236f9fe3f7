"""What is tried again, when, and for how long; and which error it is in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential

from orchestrator.domain.model_access import KeySource
from orchestrator.errors import ContextTooLong, LostInOutage, LostReply, ModelError, ModelUnavailable
from orchestrator.llm.providers.breaker import Breaker, asks_to_wait
from orchestrator.llm.providers.calls import nothing_in_flight
from orchestrator.llm.providers.durations import shown_duration
from orchestrator.llm.providers.keys import source_name
from orchestrator.llm.providers.wire import Failure, Fault, Gathered
from orchestrator.runtime.deadlines import Deadline
from orchestrator.runtime.workers import CancelToken

LEAST_SHARE = 0.1
"""Of the time for one reply that a call is begun with; with less it would most likely be paid for in vain."""
_NOT_FOUND = "HTTP 404"
"""Of a model, or of everything below a wrong base URL."""
_PASSING = frozenset({Fault.OUTAGE, Fault.RATE, Fault.BROKEN})


class TimeAllowed:
    """How long one reply may take with everything that is tried for it. Of one thread."""

    def __init__(self, seconds: float) -> None:
        """It begins now."""
        self.seconds = seconds
        self.deadline = Deadline.after(seconds)

    def extend(self, seconds: float) -> None:
        """Leave something out of account, for instance an outage that was waited out."""
        self.deadline = Deadline(self.deadline.at + seconds)

    @property
    def left_seconds(self) -> float:
        """For waiting, so that enough is left for a call."""
        return max(0.0, self.deadline.remaining_seconds - LEAST_SHARE * self.seconds)


def retried(
    attempt: Callable[[], Gathered | Failure], *, allowed: TimeAllowed, breaker: Breaker, token: CancelToken
) -> Gathered | Failure:
    """Try until there is a reply, or a failure that trying again does not mend, or may be paid for, or no time left.

    The waits grow exponentially with full jitter, and come on top of what a server asks for. While the breaker is open
    there are none: it says itself when somebody may call.

    Args:
        attempt: One call.
        allowed: The time.
        breaker: Of the server; its pace gives the first and the longest wait.
        token: Ends a wait.

    Raises:
        CancelledUnpaid: Somebody asked to stop during a wait; all calls so far were certainly not paid for.
        Cancelled: Somebody asked to stop during a call.
    """
    pace = breaker.pace
    jitter = wait_random_exponential(multiplier=pace.first_pause, max=pace.longest_pause)

    def pause(state: RetryCallState) -> float:
        if breaker.is_open:
            return 0.0
        asked = _outcome(state).retry_after or 0.0
        return asked + min(jitter(state), max(0.0, allowed.left_seconds - asked) / 4)

    def sleep(seconds: float) -> None:
        with nothing_in_flight():
            token.wait(seconds)

    def is_over(state: RetryCallState) -> bool:
        return state.upcoming_sleep >= allowed.left_seconds

    retrying = Retrying(
        sleep=sleep,
        retry=retry_if_result(_may_pass),
        wait=pause,
        stop=is_over,
        retry_error_callback=_outcome,
    )
    return retrying(attempt)


def error_of(
    failure: Failure, *, name: str, key: KeySource | None, allowed: TimeAllowed, breaker: Breaker
) -> ModelError:
    """The error that a last failure is.

    Args:
        failure: Of the last call.
        name: Of the model, for records.
        key: Where its key comes from.
        allowed: The time there was.
        breaker: Of the server.
    """
    said = failure.message
    if failure.may_be_paid:
        return _lost(f"{name}: {said}; the request may have been paid for, and its reply is lost", breaker)
    if failure.fault is Fault.CONTEXT:
        return ContextTooLong(f"{name}: {said}")
    if failure.fault is Fault.ACCESS:
        return ModelUnavailable(f"{name} does not serve us: {said}; {_remedy(key, said)}")
    if failure.fault in (Fault.PARAMETER, Fault.REQUEST):
        return ModelError(f"{name} refuses {_what(failure)}")
    if failure.retry_after and failure.retry_after >= allowed.left_seconds:
        return ModelUnavailable(f"{asks_to_wait(name, failure.retry_after)} ({said})")
    return ModelUnavailable(
        f"{name} gave no answer within {shown_duration(allowed.seconds)} (last: {said}); try again once "
        "the server is back"
    )


def _lost(said: str, breaker: Breaker) -> LostReply:
    if not breaker.is_open:
        return LostReply(said)
    return LostInOutage(f"{said}; {breaker.server} serves nobody, so try again once it is back")


def _remedy(key: KeySource | None, said: str) -> str:
    wants = (
        "if it wants a key now, name one (--key-env NAME beside --base-url, or `key` in a --models file)"
        if key is None
        else f"if the key is at fault, set {source_name(key)} again"
    )
    where = (
        "; if the base URL is (with or without /v1 at the end), mend it: --base-url, or `base_url` in a --models file"
        if said.startswith(_NOT_FOUND)
        else ""
    )
    return (
        f"{wants}; if credit is, top up the account; if the name is, define the model's new name in a models file"
        f"{where}"
    )


def _what(failure: Failure) -> str:
    if failure.parameter is None:
        return f"the request: {failure.message}"
    return (
        f"the parameter {failure.parameter!r}: {failure.message}; take it out of the `options` of the model "
        "in the --models file, or name it under `without` there"
    )


def _may_pass(outcome: Gathered | Failure) -> bool:
    return isinstance(outcome, Failure) and not outcome.may_be_paid and outcome.fault in _PASSING


def _outcome(state: RetryCallState) -> Failure:
    return cast("Failure", state.outcome.result() if state.outcome is not None else None)  # asked after failures only
