"""Language models whose calls come to what a script says, and a process that asks them on a real journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

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
from orchestrator.ports import LanguageModel
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.replay import Mode, Steps
from orchestrator.search.requests import ModelRequests
from orchestrator.storage.journal import SqliteJournal
from tests.memory_journal import Fuse

INPUT = Usage(input_tokens=100, usd=Decimal("0.10"))
OUTPUT = Usage(output_tokens=50, usd=Decimal("0.05"))
WORST = INPUT + OUTPUT
"""Of one reply."""
READ = Usage(input_tokens=90, usd=Decimal("0.09"))
SAID = Usage(output_tokens=5, usd=Decimal("0.01"))
ACTUAL = READ + SAID
QUESTION = Conversation(system="s", messages=(UserMessage(text="Who?"),))
KEY = "a/request/0001"


@dataclass
class OneByOne:
    """`ports.LanguageModel`: each call raises the next error of the script, or answers; its text tells the seed."""

    script: list[BaseException | None] = field(default_factory=list)
    """What the calls to come raise; None: the call is answered. After its end all are."""
    name: str = "fake/model"
    context_tokens: int = 1000
    is_repeatable: bool = False
    worst: Usage = WORST
    usage: Usage = ACTUAL
    message: Callable[[Sampling], AssistantMessage] = lambda sampling: AssistantMessage(text=f"Ann {sampling.seed}")
    calls: list[tuple[int, ...]] = field(default_factory=list)
    """The seeds of each call."""

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return len(conversation.messages) + len(tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        del conversation, tools, sampling
        return self.worst

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        del conversation, tools
        self._called([sampling])
        return Reply(message=self.message(sampling), usage=self.usage, stop=StopReason.END)

    def _called(self, samplings: Sequence[Sampling]) -> None:
        self.calls.append(tuple(sampling.seed for sampling in samplings))
        event = self.script.pop(0) if self.script else None
        if event is not None:
            raise event


@dataclass
class ManyAtOnce(OneByOne):
    """`ports.ManySamples`; the first reply of a call pays for the input."""

    samples_at_once: int = 4
    gives: list[int] = field(default_factory=list)
    """How many replies the calls to come give at most; after its end as many as are asked for."""
    falls_to_one: bool = False
    """Whether the first call for several shows that one is all there is."""
    is_priced: bool = True

    def worst_case_of_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Usage]:
        del conversation, tools
        return [WORST, *[OUTPUT] * (len(samplings) - 1)]

    def complete_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Reply]:
        del conversation, tools
        assert 2 <= len(samplings) <= self.samples_at_once
        self._called(samplings)
        count = min(self.gives.pop(0) if self.gives else len(samplings), len(samplings))
        if self.falls_to_one:
            self.samples_at_once, count = 1, 1
        usages = [ACTUAL, *[SAID] * (count - 1)][:count]
        if not self.is_priced:
            usages = [Usage(input_tokens=u.input_tokens, output_tokens=u.output_tokens, usd=None) for u in usages]
        return [
            Reply(message=self.message(sampling), usage=usage, stop=StopReason.END)
            for sampling, usage in zip(samplings, usages, strict=False)
        ]


@dataclass
class Several:
    """`ports.Ensemble`: a request's seed, modulo their number, says which member answers."""

    members: Sequence[OneByOne]
    name: str = "fake/ensemble"
    context_tokens: int = 1000
    is_repeatable: bool = False

    def member(self, sampling: Sampling) -> LanguageModel:
        return self.members[sampling.seed % len(self.members)]

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        return max(member.count_tokens(conversation, tools) for member in self.members)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        return self.member(sampling).worst_case(conversation, tools, sampling)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        del conversation, tools, sampling
        raise AssertionError("its member is asked")


class BurningJournal:
    """A real journal; the fuse is touched before and after every write."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal
        self.fuse = Fuse()

    def get(self, key: str) -> Mapping[str, Any] | None:
        return self._journal.get(key)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        self.fuse.touch()
        self._journal.put(key, record)
        self.fuse.touch()

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        return self._journal.records(prefix)

    def put_blob(self, content: bytes) -> str:
        return self._journal.put_blob(content)

    def get_blob(self, digest: str) -> bytes:
        return self._journal.get_blob(digest)


@dataclass
class Desk:
    """A process: an empty ledger and requests on a journal."""

    journal: Any
    model: LanguageModel = field(default_factory=OneByOne)
    budget: Budget = field(default_factory=Budget)
    check: Callable[[], object] = lambda: None
    mode: Mode = Mode.PERFORM
    announces: bool = True
    island: int | None = 2
    thread: str = "a"
    """What the keys begin with; the rest of a journal does not matter."""

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.budget)
        self.requests = ModelRequests(
            model=self.model,
            steps=Steps(self.journal, self.mode),
            ledger=self.ledger,
            account=Account(role="agent", model=self.model.name, island=self.island),
            check=self.check,
            announces_free_calls=self.announces,
        )

    def ask(self, number: int = 1) -> Reply:
        return self.requests.ask(self._key(number), QUESTION, Sampling(seed=number))

    def ask_many(self, count: int, **more: Callable[[], object]) -> list[Reply | None]:
        keys = [self._key(number) for number in range(1, count + 1)]
        samplings = [Sampling(seed=number) for number in range(1, count + 1)]
        return self.requests.ask_samples(keys, QUESTION, samplings, **more)

    def _key(self, number: int) -> str:
        return f"{self.thread}/request/{number:04d}"

    @property
    def bill(self) -> LedgerSnapshot:
        return self.ledger.snapshot()


def written(journal: Any, thread: str = "") -> list[str]:
    return [key for key, _ in journal.records(thread)]


def open_calls(journal: Any, thread: str = "") -> int:
    """Announcements that neither a reply nor a retraction belongs to, counted by the keys alone."""
    keys = written(journal, thread)
    ends = [sum(key.endswith(end) for key in keys) for end in ("/sent", "/void")]
    return ends[0] - ends[1] - sum(key.rpartition("/")[2].isdigit() for key in keys)


def texts(replies: Sequence[Reply | None]) -> list[str | None]:
    return [None if reply is None else reply.message.text for reply in replies]
