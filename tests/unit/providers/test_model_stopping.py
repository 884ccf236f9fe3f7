"""An operator's stop comes through whatever a server does; and the key is nowhere that anybody looks."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.spending import read_ledger
from orchestrator.domain.budgets import Account
from orchestrator.domain.model_access import Provider
from orchestrator.errors import Cancelled, CancelledUnpaid, EvolvariumError
from orchestrator.llm.providers.circuit import Pace
from orchestrator.runtime.workers import spawn
from orchestrator.search.spending import Spending
from orchestrator.storage.journal import SqliteJournal
from tests.model_lab import QUICK, ModelLab, model_lab
from tests.model_servers.base import KEY, Answer, Trouble, Turn
from tests.scripted_requests import Desk

both = pytest.mark.parametrize("provider", list(Provider), ids=str)
FINE = Turn(text="All is well.")
DOWN = Trouble(status=500)


@both
@pytest.mark.parametrize(
    ("script", "pace", "raised"),
    [
        pytest.param([Trouble(silent_seconds=30.0)], QUICK, Cancelled, id="never answers"),
        pytest.param([Trouble(stall_after=3, turn=FINE)], QUICK, Cancelled, id="stops in the middle"),
        pytest.param([DOWN, Trouble(silent_seconds=30.0)], QUICK, Cancelled, id="never answers once more"),
        pytest.param([Trouble(status=429, headers={"retry-after": "15"})], QUICK, CancelledUnpaid, id="asks to wait"),
        pytest.param([DOWN], Pace(failures=1, first_pause=15.0), CancelledUnpaid, id="is down"),
        pytest.param([DOWN], Pace(failures=99, first_pause=15.0), CancelledUnpaid, id="fails now and then"),
    ],
)
def test_cancelling_comes_through_at_once_and_says_whether_a_call_was_in_flight(
    provider: Provider, script: list[Answer], pace: Pace, raised: type[Cancelled]
) -> None:
    with model_lab(provider, script, pace=pace) as lab:
        worker = spawn("asker", lab.ask)
        while lab.calls < len(script):
            time.sleep(0.01)
        time.sleep(0.2)
        begun = time.monotonic()
        lab.token.cancel("an operator asked to stop")
        assert worker.join(5)
        assert time.monotonic() - begun < 1.4
        with pytest.raises(Cancelled, match="an operator asked to stop") as caught:
            worker.result()
        assert type(caught.value) is raised
        assert caught.value.exit_code == 130


@both
@pytest.mark.parametrize(
    ("script", "lost"),
    [
        pytest.param([DOWN], 0, id="waits after an error status"),
        pytest.param([Trouble(status=429, headers={"retry-after": "15"})], 0, id="was asked to wait"),
        pytest.param([Trouble(silent_seconds=30.0)], 1, id="waits for a reply"),
    ],
)
def test_only_a_call_in_flight_costs_a_run_that_is_stopped(
    provider: Provider, script: list[Answer], lost: int, tmp_path: Path
) -> None:
    pace = Pace(failures=99, first_pause=15.0)
    with model_lab(provider, script, pace=pace) as lab, SqliteJournal(tmp_path / "journal.sqlite") as journal:
        desk = Desk(journal, lab.model)
        worker = spawn("asker", desk.ask)
        while not lab.calls:
            time.sleep(0.01)
        time.sleep(0.2)
        lab.token.cancel()
        assert worker.join(5)
        with pytest.raises(Cancelled):
            worker.result()
        assert desk.bill.lost_count == desk.bill.spent.requests == lost
        (spent,) = read_ledger(journal) or [Spending(account=Account(role="none"))]
        assert spent.lost == lost


@both
def test_nothing_is_sent_once_somebody_has_asked_to_stop(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as lab:
        lab.token.cancel()
        with pytest.raises(CancelledUnpaid):
            lab.ask()
        assert lab.calls == 0


@both
def test_no_thread_is_left_behind(provider: Provider) -> None:
    with model_lab(provider, [FINE, Trouble(silent_seconds=30.0)], request_seconds=0.3) as lab:
        lab.ask()
        with pytest.raises(EvolvariumError):
            lab.ask()
        deadline = time.monotonic() + 2
        while any(thread.name.startswith("model ") for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def echo(status: int) -> Trouble:
    """A server that says the key aloud."""
    return Trouble(status=status, body=f"no good: Authorization: Bearer {KEY}, x-api-key: {KEY}")


ECHOES = [
    *(pytest.param(echo(status), id=str(status)) for status in (400, 401, 403, 404, 422, 429, 500, 503)),
    pytest.param(Trouble(raw=f"data: {{broken {KEY}\n\n".encode()), id="no JSON"),
    pytest.param(Trouble(raw=f'data: {{"error": {{"message": "{KEY}"}}}}\n\n'.encode()), id="in the stream"),
    pytest.param(Trouble(silent_seconds=30.0), id="nothing"),
]


def everything(error: BaseException) -> str:
    """What may be shown, logged or kept of an exception, all that hangs on it included."""
    texts = []
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            texts += [str(each), repr(each), repr(vars(each)), "".join(traceback.format_exception(each))]
            todo += [each.__cause__, each.__context__]
    return "\n".join(texts)


@both
@pytest.mark.parametrize("trouble", ECHOES)
def test_the_key_is_in_no_error_note_log_or_thread_name(
    provider: Provider, trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    pace = Pace(failures=2, first_pause=0.02)
    with model_lab(provider, [trouble], request_seconds=0.5, outage_seconds=0.2, pace=pace) as lab:
        with pytest.raises(EvolvariumError) as raised:
            lab.ask()
        lab.note_threads()
        found = [everything(raised.value), *lab.notes, *lab.thread_names, caplog.text, looks(lab)]
        assert not [text for text in found if KEY in text or KEY[-8:] in text]


def looks(lab: ModelLab) -> str:
    """How the model and all that it is made of look to somebody who prints them."""
    parts: list[Any] = [lab.model, *vars(lab.model).values()]
    return " ".join(f"{part!r} {part}" for part in parts)
