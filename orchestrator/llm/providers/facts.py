"""The check before any work: what a server says of a model, and what that means."""

from __future__ import annotations

from orchestrator.domain.model_access import PROVIDER_URLS, ModelEntry
from orchestrator.errors import PrerequisiteError
from orchestrator.llm.providers.calls import Reading, run_until
from orchestrator.llm.providers.durations import shown_duration
from orchestrator.llm.providers.keys import source_name
from orchestrator.llm.providers.wire import Connection, Failure, Fault, ModelFacts
from orchestrator.runtime.deadlines import Deadline
from orchestrator.runtime.workers import CancelToken

_UNREACHABLE = frozenset({Fault.OUTAGE, Fault.BROKEN})


def ask_facts(
    connection: Connection, entry: ModelEntry, *, reading: Reading, seconds: float, token: CancelToken
) -> ModelFacts | Failure | None:
    """Ask a server about a model, without any cost.

    Args:
        connection: To the server.
        entry: Which model.
        reading: Reads exceptions.
        seconds: For its answer.
        token: Ends the wait.

    Returns:
        What it says, why it says nothing, or None: nothing came in time.

    Raises:
        Cancelled: Somebody asked to stop.
    """

    def ask() -> ModelFacts | Failure:
        try:
            return connection.facts(entry.model, seconds=seconds)
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises; it may hold the key, so it goes no further
            return reading(error, False)

    worker = run_until(f"check {entry.model}", ask, deadline=Deadline.after(seconds), token=token)
    return None if worker.is_alive else worker.result()


def check_facts(answer: ModelFacts | Failure | None, *, name: str, entry: ModelEntry, seconds: float) -> ModelFacts:
    """What the server says of a model; nothing where it has no list of models, or is busy, which is no fault of it.

    Args:
        answer: Facts, why there are none, or None: nothing came in time.
        name: Of the model, for records.
        entry: Which model it is.
        seconds: How long was waited.

    Raises:
        PrerequisiteError: The server cannot be reached, refuses the key, has no such model, or serves elsewhere.
    """
    if answer is None:
        raise PrerequisiteError(_unreachable(name, entry, f"no answer within {shown_duration(seconds)}"))
    if isinstance(answer, Failure):
        if answer.fault in _UNREACHABLE:
            raise PrerequisiteError(_unreachable(name, entry, answer.message))
        if answer.fault is Fault.ACCESS:
            raise PrerequisiteError(_refused(name, entry, answer.message))
        return ModelFacts(is_known=None)
    if answer.served_below:
        msg = f"{name}: {entry.url} serves no models, but {entry.url}{answer.served_below} does; use that"
        raise PrerequisiteError(msg)
    if answer.is_known is False:
        raise PrerequisiteError(_unknown(name, entry, answer))
    return answer


def _unreachable(name: str, entry: ModelEntry, said: str) -> str:
    if entry.url == PROVIDER_URLS[entry.provider]:
        return f"{name}: {entry.url} does not serve: {said}; check the network"
    return (
        f"{name}: {entry.url} does not serve: {said}; check that the server runs there, or say where it is: --base-url "
        "for a model named openai/NAME, `base_url` for one of a --models file"
    )


def _refused(name: str, entry: ModelEntry, said: str) -> str:
    key = entry.key_source
    if key is None:
        return (
            f"{name}: {entry.url} wants a key: {said}; name the variable that holds it: --key-env NAME beside "
            "--base-url, or in a --models file the variable or file as `key`"
        )
    return f"{name}: {entry.url} refuses the key in {source_name(key)}: {said}; put a valid one there"


def _unknown(name: str, entry: ModelEntry, facts: ModelFacts) -> str:
    near = f"it has {', '.join(facts.close_names)}" if facts.close_names else "it names none like it"
    return f"{name}: {entry.url} has no model {entry.model!r}; {near}"
