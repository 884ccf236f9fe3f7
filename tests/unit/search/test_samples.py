"""Several replies to one conversation in few calls: each has a key, a part of the cost, and an end of its own."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import Usage
from orchestrator.domain.records import from_record
from orchestrator.errors import BudgetExhausted, Cancelled, ContextTooLong, LostReply, ModelError
from orchestrator.ports import LanguageModel, ManySamples
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.replay import Mode
from orchestrator.storage.journal import SqliteJournal
from tests.memory_journal import Killed, MemoryJournal
from tests.scripted_requests import (
    ACTUAL,
    OUTPUT,
    SAID,
    WORST,
    Desk,
    ManyAtOnce,
    OneByOne,
    Several,
    open_calls,
    texts,
    written,
)

NOTHING = Ledger(Budget()).snapshot()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        yield journal


def ann(count: int) -> list[str]:
    return [f"Ann {number}" for number in range(1, count + 1)]


def test_the_models_of_these_tests_are_what_the_ports_ask_for() -> None:
    assert isinstance(ManyAtOnce(), ManySamples)
    assert not isinstance(OneByOne(), ManySamples)
    model: LanguageModel = OneByOne()
    assert model.name


def test_as_many_as_the_model_offers_come_in_one_call_and_a_last_one_singly(journal: SqliteJournal) -> None:
    model = ManyAtOnce()
    desk, later = Desk(journal, model), Desk(journal, mode=Mode.REPLAY)
    assert texts(desk.ask_many(9)) == texts(later.ask_many(9)) == ann(9)
    assert model.calls == [(1, 2, 3, 4), (5, 6, 7, 8), (9,)]
    assert desk.bill == later.bill
    assert desk.bill.spent.usage == sum([ACTUAL, SAID, SAID, SAID] * 2, ACTUAL)
    assert (desk.bill.spent.requests, desk.bill.lost_count) == (9, 0)
    reserved = [from_record(Usage, r["reserved"]) for key, r in journal.records() if key.endswith("/sent")]
    assert reserved == [WORST, OUTPUT, OUTPUT, OUTPUT] * 2 + [WORST]


def test_those_that_are_recorded_are_not_asked_for_again(journal: SqliteJournal) -> None:
    Desk(journal).ask(2)
    Desk(journal).ask(5)
    model = ManyAtOnce()
    assert texts(Desk(journal, model).ask_many(6)) == ann(6)
    assert model.calls == [(1, 3, 4, 6)]


def test_a_model_without_such_a_call_is_asked_one_by_one(journal: SqliteJournal) -> None:
    model = OneByOne()
    assert texts(Desk(journal, model).ask_many(3)) == ann(3)
    assert model.calls == [(1,), (2,), (3,)]


def test_where_fewer_came_the_others_cost_nothing_and_are_asked_for_again(journal: SqliteJournal) -> None:
    model = ManyAtOnce(gives=[3, 1])
    desk, later = Desk(journal, model), Desk(journal)
    assert texts(desk.ask_many(5)) == texts(later.ask_many(5)) == ann(5)
    assert model.calls == [(1, 2, 3, 4), (4, 5), (5,)]
    assert [key for key in written(journal) if key.endswith("/void")] == ["a/request/0004/void", "a/request/0005/void"]
    assert desk.bill == later.bill
    assert (desk.bill.lost_count, desk.bill.spent.requests) == (0, 5)


def test_where_the_model_turns_out_to_give_one_the_rest_is_asked_for_singly(journal: SqliteJournal) -> None:
    model = ManyAtOnce(falls_to_one=True)
    assert texts(Desk(journal, model).ask_many(3)) == ann(3)
    assert model.calls == [(1, 2, 3), (2,), (3,)]


def test_a_call_without_any_reply_is_lost_and_not_made_for_ever(journal: SqliteJournal) -> None:
    model = ManyAtOnce(gives=[0, 0, 0])
    desk = Desk(journal, model)
    with pytest.raises(LostReply, match="gave no reply"):
        desk.ask_many(2)
    assert (len(model.calls), desk.bill.lost_count) == (3, 6)


@pytest.mark.parametrize(("usd", "covered"), [("0.26", 3), ("0.20", 2), ("0.15", 1), ("0.14", 0)])
def test_a_budget_covers_as_many_of_the_first_as_it_can_like_one_by_one(
    journal: SqliteJournal, usd: str, covered: int
) -> None:
    budget = Budget(usd=Decimal(usd))
    desk, later = Desk(journal, ManyAtOnce(), budget=budget), Desk(journal, ManyAtOnce(), budget=budget)
    desk_calls = desk.model.calls  # type: ignore[attr-defined]
    for process in (desk, later):
        with pytest.raises(BudgetExhausted):
            process.ask_many(5)
    assert desk_calls == ([tuple(range(1, covered + 1))] if covered else [])
    assert desk.bill == later.bill
    assert desk.bill.reserved == NOTHING.reserved
    assert desk.bill.spent.requests == covered


def test_a_lost_call_is_lost_as_a_whole_and_made_again(journal: SqliteJournal) -> None:
    model = ManyAtOnce([LostReply("broke")])
    desk, later = Desk(journal, model), Desk(journal)
    assert texts(desk.ask_many(3)) == texts(later.ask_many(3)) == ann(3)
    assert desk.bill == later.bill
    assert (desk.bill.lost_count, desk.bill.lost.usage) == (3, WORST + OUTPUT + OUTPUT)


def test_an_error_that_cost_nothing_is_retracted_for_all(journal: SqliteJournal) -> None:
    desk = Desk(journal, ManyAtOnce([None, ModelError("no answer")], samples_at_once=2))
    with pytest.raises(ModelError):
        desk.ask_many(4)
    assert open_calls(journal) == 0
    later = Desk(journal)
    assert texts(later.ask_many(4)) == ann(4)
    assert later.bill.lost_count == 0
    assert desk.bill.spent.usage == ACTUAL + SAID


def test_a_conversation_that_is_too_long_is_so_for_all_of_them(journal: SqliteJournal) -> None:
    model = ManyAtOnce([LostReply("broke"), ContextTooLong("too long")], samples_at_once=2)
    desk = Desk(journal, model)
    assert desk.ask_many(5) == [None] * 5
    assert model.calls == [(1, 2), (1, 2)]
    for later in (Desk(journal), Desk(journal, mode=Mode.REPLAY)):
        assert later.ask_many(5) == [None] * 5
        assert later.bill == desk.bill
    assert (desk.bill.lost_count, desk.bill.spent.usage) == (2, WORST + OUTPUT)


def test_one_that_is_recorded_as_too_long_speaks_for_the_others(journal: SqliteJournal) -> None:
    with pytest.raises(ContextTooLong):
        Desk(journal, OneByOne([ContextTooLong("too long")])).ask(2)
    model = ManyAtOnce()
    assert Desk(journal, model).ask_many(3) == [None] * 3
    assert model.calls == []


def test_what_was_lost_before_somebody_else_found_it_too_long_stays_lost(journal: SqliteJournal) -> None:
    with pytest.raises(RuntimeError):
        Desk(journal, OneByOne([RuntimeError()])).ask(3)
    desk, later = Desk(journal, ManyAtOnce([ContextTooLong("too long")], samples_at_once=2)), Desk(journal)
    assert desk.ask_many(3) == later.ask_many(3) == [None] * 3
    assert desk.bill == later.bill
    assert (desk.bill.lost_count, desk.bill.spent.usage) == (1, WORST)


def test_what_stands_before_requests_is_asked_once_and_only_while_one_is_missing(journal: SqliteJournal) -> None:
    asked: list[None] = []
    Desk(journal, ManyAtOnce()).ask_many(3, before=lambda: asked.append(None))
    Desk(journal).ask_many(3, before=lambda: asked.append(None))
    assert len(asked) == 1


def test_a_stop_before_the_call_costs_nothing(journal: SqliteJournal) -> None:
    def refuse() -> None:
        raise Cancelled("enough")

    desk = Desk(journal, ManyAtOnce(), check=refuse)
    with pytest.raises(Cancelled):
        desk.ask_many(3)
    assert (desk.bill, written(journal)) == (NOTHING, [])


def test_a_price_that_is_unknown_afterwards_is_charged_as_each_part_was_reserved(journal: SqliteJournal) -> None:
    desk, later = Desk(journal, ManyAtOnce(is_priced=False)), Desk(journal)
    desk.ask_many(3)
    later.ask_many(3)
    assert desk.bill == later.bill
    assert desk.bill.spent.usage.usd == Decimal("0.25")


def test_samples_of_an_ensemble_are_asked_of_their_members(journal: SqliteJournal) -> None:
    one, other = ManyAtOnce(name="fake/one"), OneByOne(name="fake/other")
    assert texts(Desk(journal, Several([one, other])).ask_many(5)) == ann(5)
    assert (one.calls, other.calls) == ([(2, 4)], [(1,), (3,), (5,)])


@pytest.mark.parametrize("is_repeatable", [True, False])
@pytest.mark.parametrize("script", [[], [LostReply("broke")], [None, ContextTooLong("too long")]])
def test_killed_at_every_write_the_sums_are_those_of_the_journal_in_every_later_process(
    script: list[BaseException | None], is_repeatable: bool
) -> None:
    touches, was_killed = 0, True
    while was_killed:
        model = ManyAtOnce(list(script), samples_at_once=3, gives=[2], is_repeatable=is_repeatable)
        journal = MemoryJournal()
        journal.fuse.left = touches
        try:
            Desk(journal, model).ask_many(4)
            was_killed = False
        except Killed:
            pass
        journal.fuse.left = None
        in_flight = open_calls(journal)
        desk, later = Desk(journal, model), Desk(journal, model, mode=Mode.REPLAY)
        found = texts(desk.ask_many(4))
        assert all(text in (None, name) for text, name in zip(found, ann(4), strict=True))
        assert None not in found or len(script) == 2
        assert texts(later.ask_many(4)) == found
        assert later.bill == desk.bill
        assert desk.bill.spent.requests == desk.bill.lost_count + sum(text is not None for text in found)
        if is_repeatable:
            assert desk.bill.lost_count == 0
        else:  # what was in flight, and the call whose reply is lost in the script, if it was not made before
            assert in_flight <= desk.bill.lost_count <= in_flight + 3 * (len(script) == 1)
        touches += 1
    assert touches > 12
