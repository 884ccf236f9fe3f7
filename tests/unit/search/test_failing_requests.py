"""A call that fails costs what its error says, in the ledger, in the journal and in every process after it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.budgets import Account, Budget
from orchestrator.domain.conversation import AssistantMessage, NativeMessage, Reply, StopReason, ToolCall, Usage
from orchestrator.domain.records import to_record
from orchestrator.errors import (
    BudgetExhausted,
    Cancelled,
    CancelledUnpaid,
    ContextTooLong,
    LostInOutage,
    LostReply,
    ModelError,
    ModelUnavailable,
    PrerequisiteError,
    RunStateError,
)
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.attempts import encodable
from orchestrator.search.replay import Mode
from orchestrator.search.requests import REPEATS
from orchestrator.storage.journal import SqliteJournal
from tests.memory_journal import Killed
from tests.scripted_requests import (
    ACTUAL,
    KEY,
    WORST,
    BurningJournal,
    Desk,
    OneByOne,
    Several,
    open_calls,
    written,
)

NOTHING = Ledger(Budget()).snapshot()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        yield journal


def refuse() -> None:
    raise Cancelled("an operator asked to stop")


@pytest.mark.parametrize(
    "error",
    [
        ModelError("no answer"),
        ModelUnavailable("an outage"),
        CancelledUnpaid("an operator asked to stop"),
        BudgetExhausted("a ceiling"),
        PrerequisiteError("no further thread"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_cost_nothing_is_retracted_and_charged_to_nobody(journal: SqliteJournal, error: Any) -> None:
    broken = Desk(journal, OneByOne([error]))
    with pytest.raises(type(error)):
        broken.ask()
    assert broken.bill == NOTHING
    assert written(journal) == [f"{KEY}/sent", f"{KEY}/void"]
    desk = Desk(journal)
    desk.ask()
    assert written(journal)[2:] == [f"{KEY}/2/sent", KEY]
    again = Desk(journal, mode=Mode.REPLAY)
    again.ask()
    assert desk.bill == again.bill
    assert (desk.bill.lost_count, desk.bill.spent.usage) == (0, ACTUAL)


def test_a_lost_reply_is_charged_in_full_and_asked_for_again(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostReply("the stream broke")]))
    assert desk.ask().message.text == "Ann 1"
    assert written(journal) == [f"{KEY}/sent", f"{KEY}/2/sent", KEY]
    again = Desk(journal)
    again.ask()
    assert desk.bill == again.bill
    assert (desk.bill.lost_count, desk.bill.lost.usage, desk.bill.spent.usage) == (1, WORST, WORST + ACTUAL)
    assert desk.bill.spent.requests == 2


def test_a_reply_that_is_lost_too_often_is_an_error_and_a_later_process_has_as_many_tries(
    journal: SqliteJournal,
) -> None:
    tries = REPEATS + 1
    for times in (1, 2):
        desk = Desk(journal, OneByOne([LostReply("the stream broke")] * tries))
        with pytest.raises(LostReply):
            desk.ask()
        assert desk.bill.lost_count == desk.bill.spent.requests == tries * times
    desk = Desk(journal)
    desk.ask()
    assert desk.bill.lost_count == 2 * tries
    assert desk.bill.spent.usage == sum([WORST] * (2 * tries), ACTUAL)


def test_lost_replies_of_a_provider_that_serves_nobody_pause_the_run_and_stay_lost(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostInOutage("the stream broke")] * (REPEATS + 2)))
    with pytest.raises(ModelUnavailable, match="the stream broke") as raised:
        desk.ask()
    assert raised.value.exit_code == ModelUnavailable.exit_code == 7
    assert len(desk.model.calls) == desk.bill.lost_count == REPEATS + 1  # type: ignore[attr-defined]
    assert not [key for key in written(journal) if key.endswith("void")]
    later = Desk(journal)
    later.ask()
    assert later.bill.lost_count == REPEATS + 1


def test_a_provider_that_is_back_in_time_is_not_paused_for(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostInOutage("the stream broke")] * REPEATS))
    assert desk.ask().message.text == "Ann 1"
    assert desk.bill.lost_count == REPEATS


def test_a_stop_after_a_lost_reply_retracts_its_own_call_alone(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostReply("broke"), CancelledUnpaid("stop")]))
    with pytest.raises(Cancelled):
        desk.ask()
    assert written(journal) == [f"{KEY}/sent", f"{KEY}/2/sent", f"{KEY}/2/void"]
    assert (desk.bill.lost_count, desk.bill.spent.usage) == (1, WORST)


def test_an_error_after_a_lost_reply_retracts_its_own_call_alone(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostReply("broke"), ModelError("no answer")]))
    with pytest.raises(ModelError, match="no answer"):
        desk.ask()
    assert written(journal) == [f"{KEY}/sent", f"{KEY}/2/sent", f"{KEY}/2/void"]
    assert desk.bill.lost_count == 1
    later = Desk(journal)
    later.ask()
    assert (later.bill.lost_count, later.bill.spent.usage) == (1, WORST + ACTUAL)


def test_a_lost_reply_uses_up_the_budget_for_the_next_try(journal: SqliteJournal) -> None:
    budget = Budget(usd=Decimal("0.20"))
    desk = Desk(journal, OneByOne([LostReply("broke")]), budget=budget)
    with pytest.raises(BudgetExhausted):
        desk.ask()
    assert len(desk.model.calls) == 1  # type: ignore[attr-defined]
    later = Desk(journal, budget=budget)
    with pytest.raises(BudgetExhausted):
        later.ask()
    assert desk.bill == later.bill
    assert (later.bill.lost_count, later.bill.reserved) == (1, NOTHING.reserved)


@pytest.mark.parametrize("error", [Cancelled("stop"), RuntimeError("a bug"), KeyboardInterrupt()])
def test_whatever_else_ends_a_call_leaves_it_lost(journal: SqliteJournal, error: BaseException) -> None:
    desk = Desk(journal, OneByOne([error]))
    with pytest.raises(type(error)):
        desk.ask()
    assert (desk.bill.lost_count, desk.bill.lost.usage) == (1, WORST)
    later = Desk(journal)
    later.ask()
    assert (later.bill.lost_count, later.bill.spent.usage) == (1, WORST + ACTUAL)


def test_a_stop_before_the_call_costs_nothing(journal: SqliteJournal) -> None:
    desk = Desk(journal, check=refuse)
    with pytest.raises(Cancelled):
        desk.ask()
    assert (desk.bill, written(journal)) == (NOTHING, [])


@pytest.mark.parametrize("announces", [True, False])
@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_conversation_that_is_too_long_is_an_outcome_that_costs_nothing(
    journal: SqliteJournal, announces: bool, is_repeatable: bool
) -> None:
    model = OneByOne([ContextTooLong("maximum context length is 1000 tokens \ud800")], is_repeatable=is_repeatable)
    desk = Desk(journal, model, announces=announces)
    said = "maximum context length is 1000 tokens ?"
    for process in (desk, Desk(journal), Desk(journal, mode=Mode.REPLAY)):
        with pytest.raises(ContextTooLong) as caught:
            process.ask()
        assert str(caught.value) == said
        assert process.bill == NOTHING
    assert (journal.get(KEY) or {})["context_too_long"] == said


def test_what_was_lost_before_a_conversation_proved_too_long_stays_lost(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostReply("broke"), ContextTooLong("too long")]))
    later = Desk(journal)
    for process in (desk, later):
        with pytest.raises(ContextTooLong):
            process.ask()
    assert desk.bill == later.bill
    assert (desk.bill.lost_count, desk.bill.spent.usage) == (1, WORST)


def test_a_lost_reply_of_a_repeatable_model_costs_nothing(journal: SqliteJournal) -> None:
    desk = Desk(journal, OneByOne([LostReply("broke")] * REPEATS, is_repeatable=True))
    desk.ask()
    later = Desk(journal, OneByOne(is_repeatable=True))
    later.ask()
    assert desk.bill == later.bill
    assert (desk.bill.lost_count, desk.bill.spent.usage) == (0, ACTUAL)


def test_what_one_model_lost_is_not_forgotten_when_another_answers(journal: SqliteJournal) -> None:
    with pytest.raises(RuntimeError):
        Desk(journal, OneByOne([RuntimeError()])).ask()
    other = OneByOne(name="fake/free", is_repeatable=True)
    desk, later = Desk(journal, other, announces=False), Desk(journal, other, announces=False)
    desk.ask()
    later.ask()
    assert desk.bill == later.bill
    assert desk.bill.by_model["fake/model"].usage == WORST
    assert desk.bill.by_model["fake/free"].usage == ACTUAL


EVENTS: dict[str, list[BaseException | None]] = {
    "answered": [],
    "an error, then answered": [ModelError("no answer")],
    "lost, then answered": [LostReply("broke")],
    "lost twice, then an error": [LostReply("broke"), LostReply("broke"), ModelError("no answer")],
    "lost for good": [LostReply("broke")] * 3,
    "too long": [ContextTooLong("too long")],
    "lost, then too long": [LostReply("broke"), ContextTooLong("too long")],
}


@pytest.mark.parametrize("script", EVENTS.values(), ids=EVENTS)
def test_killed_at_every_write_the_sums_are_those_of_the_journal_in_every_later_process(
    journal: SqliteJournal, script: list[BaseException | None]
) -> None:
    burning, touches, was_killed = BurningJournal(journal), 0, True
    while was_killed:
        model, thread = OneByOne(list(script)), f"k{touches:02d}/"
        burning.fuse.left = touches
        try:
            _outcome(Desk(burning, model, thread=thread))
            was_killed = False
        except Killed:
            pass
        burning.fuse.left = None
        outcome = _to_the_end(burning, model, thread)
        for desk in (Desk(burning, model, thread=thread), Desk(burning, mode=Mode.REPLAY, thread=thread)):
            assert _outcome(desk) == outcome
            lost = open_calls(burning, thread)
            answered = [ACTUAL] if outcome == "Ann 1" else []
            assert desk.bill.lost_count == lost
            assert desk.bill.spent.usage == sum([WORST] * lost + answered, Usage())
            assert desk.bill.spent.requests == lost + len(answered)
        truly_lost = sum(isinstance(event, LostReply) for event in script)
        assert truly_lost <= lost <= truly_lost + was_killed
        touches += 1
    assert touches >= 4


def _to_the_end(journal: BurningJournal, model: OneByOne, thread: str) -> str:
    while (outcome := _outcome(Desk(journal, model, thread=thread))) == "failed":
        pass
    return outcome


def _outcome(desk: Desk) -> str:
    try:
        return desk.ask().message.text
    except ContextTooLong:
        return "too long"
    except ModelError:
        return "failed"


def test_the_member_of_an_ensemble_that_answers_is_the_one_that_is_paid(journal: SqliteJournal) -> None:
    small = replace(WORST, usd=Decimal("0.03"))
    dear, cheap = OneByOne(name="fake/dear"), OneByOne([LostReply("broke")], name="fake/cheap", worst=small)
    desk, later = Desk(journal, Several([dear, cheap])), Desk(journal, Several([dear, cheap]))
    for process in (desk, later):
        process.ask(1)
        process.ask(2)
    assert (cheap.calls, dear.calls) == ([(1,), (1,)], [(2,)])
    assert desk.bill == later.bill
    assert {name: spend.usage for name, spend in desk.bill.by_model.items()} == {
        "fake/cheap": small + ACTUAL,
        "fake/dear": ACTUAL,
    }
    named = {key: record["account"]["model"] for key, record in journal.records()}
    assert named == {
        "a/request/0001/sent": "fake/cheap",
        "a/request/0001/2/sent": "fake/cheap",
        "a/request/0001": "fake/cheap",
        "a/request/0002/sent": "fake/dear",
        "a/request/0002": "fake/dear",
    }


def test_a_member_that_is_repeatable_loses_nothing_although_its_ensemble_may(journal: SqliteJournal) -> None:
    free = OneByOne([RuntimeError("a bug")], name="fake/free", is_repeatable=True)
    desk = Desk(journal, Several([free]))
    with pytest.raises(RuntimeError):
        desk.ask()
    assert desk.bill == NOTHING


def test_records_name_the_account_and_are_charged_to_it(journal: SqliteJournal) -> None:
    Desk(journal, OneByOne([LostReply("broke")])).ask()
    account = Account(role="agent", model="fake/model", island=2)
    assert [record["account"] for _, record in journal.records()] == [to_record(account)] * 3
    renamed = Desk(journal, OneByOne(name="fake/renamed"))
    renamed.ask()
    assert set(renamed.bill.by_model) == {"fake/model"}


def test_records_of_earlier_versions_are_charged_to_the_one_that_asks(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "new.sqlite") as new, SqliteJournal(tmp_path / "old.sqlite") as old:
        desk = Desk(new, OneByOne([LostReply("broke")]))
        desk.ask()
        for key, record in new.records():
            old.put(key, {name: value for name, value in record.items() if name != "account"})
        later = Desk(old)
        later.ask()
        assert later.bill == desk.bill


@pytest.mark.parametrize(
    ("key", "damage"),
    [(KEY, {"reply": None}), (KEY, {"account": 5}), (f"{KEY}/sent", {"reserved": None}), (KEY, {"account": {}})],
)
def test_a_damaged_record_is_named(tmp_path: Path, key: str, damage: dict[str, Any]) -> None:
    with SqliteJournal(tmp_path / "new.sqlite") as new, SqliteJournal(tmp_path / "old.sqlite") as old:
        Desk(new, OneByOne([LostReply("broke")])).ask()
        for name, record in new.records():
            old.put(name, {**record, **(damage if name == key else {})})
        with pytest.raises(RunStateError):
            Desk(old).ask()


def test_everything_of_a_reply_that_can_be_recorded_is_kept(journal: SqliteJournal) -> None:
    native = NativeMessage(protocol="anthropic", model="fake/model", body={"content": [{"signature": "x=="}]})
    message = AssistantMessage(text="Ann", reasoning="Who might it be?", native=native)
    desk = Desk(journal, OneByOne(message=lambda _: message))
    assert desk.ask().message == message == Desk(journal, mode=Mode.REPLAY).ask().message
    reply = Reply(message=message, usage=ACTUAL, stop=desk.ask().stop, served_by="fake-2026", is_estimate=True)
    assert encodable(reply, Usage()) == reply


def test_a_usage_that_cannot_be_read_again_is_taken_for_the_worst() -> None:
    message = AssistantMessage(text="Ann")
    reply = Reply(message=message, usage=Usage(input_tokens=10**5000), stop=StopReason.END)
    kept = encodable(reply, ACTUAL)
    assert (kept.message, kept.usage, kept.is_estimate) == (message, ACTUAL, True)


def _deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("body", [{"text": "a\ud800"}, {"logprob": math.nan}, _deep(199), _deep(900)])
def test_what_no_record_can_hold_is_cleaned_or_left_out(journal: SqliteJournal, body: dict[str, Any]) -> None:
    message = AssistantMessage(
        text="a\ud800b",
        tool_calls=(ToolCall(id="1\ud800", name="n", arguments=body), ToolCall(id="2", name="n", arguments={"x": 1})),
        reasoning="c\ud800",
        native=NativeMessage(protocol="openai", model="m", body=body),
    )
    kept = Desk(journal, OneByOne(message=lambda _: message)).ask().message
    assert (kept.text, kept.reasoning, kept.native) == ("a?b", "c?", None)
    assert kept.tool_calls == (ToolCall(id="1?", name="n", arguments=None), message.tool_calls[1])
    assert Desk(journal, mode=Mode.REPLAY).ask().message == kept
