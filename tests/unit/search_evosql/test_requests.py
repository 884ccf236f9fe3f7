"""Requests of every method are made once, paid once, and never lost from the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.domain.budgets import Account, Budget, LedgerSnapshot
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolSpec,
    Usage,
    UserMessage,
)
from orchestrator.domain.records import from_record
from orchestrator.errors import BudgetExhausted, Cancelled, ModelError, RunStateError
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.replay import Mode, Steps
from orchestrator.search.requests import ModelRequests
from orchestrator.storage.journal import SqliteJournal

WORST = Usage(input_tokens=100, output_tokens=50, usd=Decimal("0.10"))
ACTUAL = Usage(input_tokens=90, output_tokens=5, usd=Decimal("0.02"))
QUESTION = Conversation(system="s", messages=(UserMessage(text="Who?"),))
SAMPLING = Sampling(seed=1)
Asked = tuple[Conversation, Sampling]


@dataclass
class Model:
    """`ports.LanguageModel` with one answer; it can fail."""

    name: str = "fake/model"
    context_tokens: int = 1000
    is_repeatable: bool = False
    text: str = "Ann"
    usage: Usage = ACTUAL
    failing: BaseException | None = None
    asked: list[Asked] = field(default_factory=list)

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return len(conversation.messages) + len(tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        del conversation, tools, sampling
        return WORST

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        del tools
        self.asked.append((conversation, sampling))
        if self.failing is not None:
            raise self.failing
        return Reply(message=AssistantMessage(text=self.text), usage=self.usage, stop=StopReason.END)


@dataclass
class Desk:
    """A process: a ledger and requests on a journal."""

    journal: SqliteJournal
    model: Model = field(default_factory=Model)
    ledger: Ledger = field(default_factory=lambda: Ledger(Budget()))
    check: Callable[[], object] = lambda: None
    mode: Mode = Mode.PERFORM
    announces: bool = True

    def ask(self, key: str = "a/request/0001", **more: Callable[[], object]) -> Reply:
        requests = ModelRequests(
            model=self.model,
            steps=Steps(self.journal, self.mode),
            ledger=self.ledger,
            account=Account(role="agent", model=self.model.name),
            check=self.check,
            announces_free_calls=self.announces,
        )
        return requests.ask(key, QUESTION, SAMPLING, **more)

    def written(self) -> list[str]:
        return [key for key, _ in self.journal.records()]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        yield journal


def refuse() -> None:
    raise Cancelled("an operator asked to stop")


def test_a_request_is_announced_made_settled_and_then_answered_from_the_journal(journal: SqliteJournal) -> None:
    first, second = Desk(journal), Desk(journal)
    assert first.ask() == second.ask() == Desk(journal, mode=Mode.REPLAY).ask()
    assert (len(first.model.asked), len(second.model.asked)) == (1, 0)
    assert first.written() == ["a/request/0001/sent", "a/request/0001"]
    assert first.ledger.snapshot() == second.ledger.snapshot()
    assert first.ledger.snapshot().spent.usage == ACTUAL


def test_a_call_whose_end_nobody_saw_is_charged_as_announced_and_made_again(journal: SqliteJournal) -> None:
    broken = Desk(journal, Model(failing=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        broken.ask()
    lost = broken.ledger.snapshot()
    assert (lost.lost.usage, lost.lost_count) == (WORST, 1)
    desk = Desk(journal)
    desk.ask()
    assert desk.written() == ["a/request/0001/sent", "a/request/0001/2/sent", "a/request/0001"]
    for snapshot in (desk.ledger.snapshot(), _again(journal)):
        assert (snapshot.lost_count, snapshot.spent.requests) == (1, 2)
        assert snapshot.spent.usage == WORST + ACTUAL


def _again(journal: SqliteJournal) -> LedgerSnapshot:
    desk = Desk(journal)
    desk.ask()
    return desk.ledger.snapshot()


@pytest.mark.parametrize("announces", [True, False])
def test_a_repeatable_model_loses_nothing(journal: SqliteJournal, announces: bool) -> None:
    broken = Desk(journal, Model(is_repeatable=True, failing=ModelError("out of memory")), announces=announces)
    with pytest.raises(ModelError):
        broken.ask()
    assert broken.ledger.snapshot() == Ledger(Budget()).snapshot()
    desk = Desk(journal, Model(is_repeatable=True), announces=announces)
    desk.ask()
    assert desk.ledger.snapshot().lost_count == 0
    announced = [key for key in desk.written() if key.endswith("/sent")]
    assert len(announced) == (2 if announces else 0)
    for key in announced:
        assert from_record(Usage, (journal.get(key) or {})["reserved"]) == Usage()


def test_what_the_budget_does_not_cover_is_neither_announced_nor_made(journal: SqliteJournal) -> None:
    desk = Desk(journal, ledger=Ledger(Budget(usd=Decimal("0.09"))))
    with pytest.raises(BudgetExhausted):
        desk.ask()
    assert (desk.written(), desk.model.asked) == ([], [])


@pytest.mark.parametrize("is_repeatable", [True, False])
@pytest.mark.parametrize("announces", [True, False])
def test_after_a_stop_nothing_is_made(journal: SqliteJournal, is_repeatable: bool, announces: bool) -> None:
    desk = Desk(journal, Model(is_repeatable=is_repeatable), check=refuse, announces=announces)
    with pytest.raises(Cancelled):
        desk.ask()
    assert (desk.written(), desk.model.asked) == ([], [])


def test_what_stands_before_a_request_is_asked_only_while_it_has_no_answer(journal: SqliteJournal) -> None:
    with pytest.raises(Cancelled):
        Desk(journal).ask(before=refuse)
    Desk(journal).ask()
    assert Desk(journal).ask(before=refuse).message.text == "Ann"


def test_a_price_that_is_unknown_afterwards_is_charged_as_reserved_now_and_later(journal: SqliteJournal) -> None:
    desk = Desk(journal, Model(usage=Usage(output_tokens=5, usd=None)))
    desk.ask()
    assert desk.ledger.snapshot().spent.usage.usd == Decimal("0.10")
    assert _again(journal) == desk.ledger.snapshot()


def test_a_reply_that_no_record_could_hold_is_made_to_fit(journal: SqliteJournal) -> None:
    assert Desk(journal, Model(text="a\ud800b")).ask().message.text == "a?b"


def test_an_answer_to_another_request_is_not_taken(journal: SqliteJournal) -> None:
    Desk(journal).ask()
    journal.put("b/request/0001", dict(journal.get("a/request/0001") or {}) | {"conversation": "sha256:0"})
    with pytest.raises(RunStateError, match="conversation"):
        Desk(journal).ask("b/request/0001")
