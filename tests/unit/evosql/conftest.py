"""A laboratory for EvoSQL: scripted models, a database in memory behind the real gate, and a question between them."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    NativeMessage,
    Reply,
    Sampling,
    StopReason,
    ToolSpec,
    Usage,
)
from orchestrator.domain.data_access import Access
from orchestrator.domain.sql import Description, QueryResult, QueryStatus, Schema
from orchestrator.methods.evosql import (
    Choice,
    FirstRound,
    Progress,
    QuestionPorts,
    QuestionView,
    Settings,
    Solution,
    best_of_k,
    elicit,
    self_evolve,
    solve,
)
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode
from orchestrator.sql.gate import Refusal, check
from tests.memory_journal import Fuse, MemoryJournal

SCHEMA = 'CREATE TABLE p (\n  id INTEGER,\n  name TEXT, -- {"examples": ["\'Ann\'"]}\n  age INTEGER,\n  city TEXT\n);'
ROWS = [(1, "Ann", 30, "Oslo"), (2, "Bob", 40, "Rome"), (3, "Cy", 30, "Oslo"), (4, "Dee", 50, None)]
RIGHT = "SELECT name FROM p WHERE city = 'Oslo'"
ALIKE = "SELECT name FROM p WHERE city LIKE 'Oslo'"
WRONG = "SELECT name FROM p"
EMPTY = "SELECT name FROM p WHERE city = 'Paris'"
BROKEN = "SELECT nam FROM p"
FENCE = "```"
Answer = Callable[["Request", Sampling], str]


@dataclass(frozen=True)
class Request:
    """A user message taken apart, as a model that knows the contract would."""

    title: str
    sections: Mapping[str, str]
    turn: int
    """How often the model has answered in this conversation before."""

    @property
    def candidates(self) -> list[dict[str, Any]]:
        return json.loads(self.sections["Candidates"])


def read_request(conversation: Conversation) -> Request:
    """Headings count outside of fenced blocks only."""
    lines = conversation.messages[0].text.split("\n")
    sections: dict[str, str] = {}
    name, fence, body = "", "", list[str]()
    for line in lines[1:]:
        if fence:
            if line == fence:
                assert name not in sections
                sections[name], fence = "\n".join(body), ""
            else:
                body.append(line)
        elif line.startswith("## "):
            name = line[3:]
        elif opening := re.match(r"`{3,}", line):
            fence, body = opening[0], []
    assert not fence
    turn = sum(isinstance(message, AssistantMessage) for message in conversation.messages)
    return Request(title=lines[0].removeprefix("# "), sections=sections, turn=turn)


@dataclass
class Model:
    """`ports.LanguageModel` around pure functions, one for each title; a token is four characters."""

    answers: Mapping[str, Answer]
    name: str = "fake/model"
    context_tokens: int = 1_000_000
    is_repeatable: bool = True
    fuse: Fuse = field(default_factory=Fuse)
    asked: list[tuple[Request, Conversation, Sampling]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    before: Callable[[Request, Sampling], object] = lambda _request, _sampling: None
    stop_of: Callable[[Request], StopReason] = lambda _: StopReason.END
    native: NativeMessage | None = None
    """Of every message."""
    calls: list[int] = field(default_factory=list)
    """How many replies each call gave."""

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        assert not tools
        return sum(map(len, [conversation.system, *(repr(message) for message in conversation.messages)])) // 4

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        size = self.count_tokens(conversation, tools)
        return Usage(input_tokens=size, output_tokens=sampling.max_output_tokens, usd=Decimal("0.05"))

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        self.fuse.touch()
        (reply,) = self._replies(conversation, tools, [sampling])
        self.fuse.touch()
        return reply

    def _replies(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Reply]:
        """The first one pays for the input."""
        request = read_request(conversation)
        self.before(request, samplings[0])
        with self.lock:
            self.calls.append(len(samplings))
            self.asked += [(request, conversation, sampling) for sampling in samplings]
        replies: list[Reply] = []
        for sampling in samplings:
            text = self.answers[request.title](request, sampling)
            read = self.count_tokens(conversation, tools) - 10 if not replies else 0
            usage = Usage(
                input_tokens=read,
                cached_input_tokens=10 if read else 0,
                output_tokens=len(text),
                usd=Decimal("0.01"),
            )
            message = AssistantMessage(text=text, native=self.native)
            replies.append(Reply(message=message, usage=usage, stop=self.stop_of(request)))
        return replies

    def of(self, title: str) -> list[Request]:
        """What was asked under a title, in the order of asking."""
        return [request for request, _, _ in self.asked if request.title == title]


class Sampler(Model):
    """`ports.ManySamples`."""

    samples_at_once = 3

    def worst_case_of_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Usage]:
        first = self.worst_case(conversation, tools, samplings[0])
        more = Usage(output_tokens=samplings[0].max_output_tokens, usd=Decimal("0.05"))
        return [first, *[more] * (len(samplings) - 1)]

    def complete_samples(
        self, conversation: Conversation, tools: Sequence[ToolSpec], samplings: Sequence[Sampling]
    ) -> list[Reply]:
        self.fuse.touch()
        replies = self._replies(conversation, tools, samplings)
        self.fuse.touch()
        return replies


class Sqlite:
    """`ports.Database`: the real gate before a real SQLite, both here; notes what was really run."""

    name = "people"
    digest = "sha256:" + "d" * 64
    description = Description(schema=Schema(tables=()), values={}, sqlite_version=sqlite3.sqlite_version)
    access = Access(rule=1, hidden=(), max_rows=1000, max_bytes=1 << 20, query_seconds=1.0)

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute("CREATE TABLE p (id INTEGER, name TEXT, age INTEGER, city TEXT)")
        self.fill(ROWS)
        self.fuse = Fuse()
        self.performed: list[str] = []
        self.attempts: list[str] = []

    def fill(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._connection.executemany("INSERT INTO p VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        self._connection.close()

    def query(self, sql: str, *, attempt_id: str, reverse: bool = False) -> QueryResult:
        del reverse
        return self.query_all([sql], attempt_id=attempt_id)[0]

    def query_all(self, queries: Sequence[str], *, attempt_id: str) -> list[QueryResult]:
        self.fuse.touch()
        self.performed.extend(queries)
        self.attempts.append(attempt_id)
        return [self._run(sql) for sql in queries]

    def _run(self, sql: str) -> QueryResult:
        refusal = refusal_of(sql)
        if refusal is not None:
            return QueryResult(status=QueryStatus.REFUSED, message=refusal)
        try:
            cursor = self._connection.execute(sql)
            rows = tuple(map(tuple, cursor.fetchall()))
        except sqlite3.Error as error:
            return QueryResult(status=QueryStatus.ERROR, message=str(error))
        return QueryResult(status=QueryStatus.OK, columns=tuple(d[0] for d in cursor.description), rows=rows)


def refusal_of(sql: str) -> str | None:
    try:
        check(sql)
    except Refusal as refusal:
        return refusal.reason
    return None


def fenced(text: str, info: str = "sql") -> str:
    return f"Some reasoning.\n\n{FENCE}{info}\n{text}\n{FENCE}\n"


def says(*queries: str) -> Answer:
    """A generator that answers with these, by the number that its seed gives."""
    return lambda _, sampling: fenced(queries[sampling.seed % len(queries)])


def evaluations(request: Request, score: Callable[[dict[str, Any]], Any], summary: str = "") -> dict[str, Any]:
    names = json.loads(request.sections["Scores"])
    return {
        "evaluations": [
            {
                "index": candidate["index"],
                "scores": dict.fromkeys(names, score(candidate)),
                "issues": [{"problem": "no restriction to Oslo", "repair": "restrict city to Oslo"}],
                "execution_assessment": "Too many rows.",
            }
            for candidate in request.candidates
        ],
        "cumulative_summary": summary,
    }


def judges(score: Callable[[dict[str, Any]], Any], summary: str = "The city counts.") -> Answer:
    """A critic that scores by a function of the listed candidate."""
    return lambda request, _: fenced(json.dumps(evaluations(request, score, summary)), "json")


def true_score(candidate: dict[str, Any]) -> int:
    """A critic that knows the answer."""
    return 10 if candidate["execution"]["rows"] == [["Ann"], ["Cy"]] else 3


def improve(request: Request, sampling: Sampling) -> str:
    """A generator that does what the critic says, most of the time."""
    heeded = "critique" in request.candidates[0] and sampling.seed % 4
    return fenced(RIGHT if heeded else request.candidates[0]["sql"])


class Lab:
    """A question and everything around it; running again is a new process on the same journal."""

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**({"seed": 7, "candidates": 4} | settings))
        self.question = QuestionView(id="17", text="Who lives in Oslo?", evidence="Oslo is a city.")
        self.schema = SCHEMA
        self.generator = Model(
            {
                "Write a SQLite query": says(WRONG, EMPTY, BROKEN, "SELECT name, age FROM p"),
                "Improve a SQLite query": improve,
                "Improve a SQLite query without a critic": improve,
            },
            name="fake/generator",
        )
        self.critic = Model(
            {
                "Judge SQLite queries": judges(true_score),
                "Choose a SQLite query": lambda _request, _sampling: fenced('{"choice": 2, "reason": ""}', "json"),
            },
            name="fake/critic",
        )
        self.database = Sqlite()
        self.journal: Any = MemoryJournal()
        self.budget = Budget()
        self.ledger = Ledger(Budget())
        self.cancel = CancelToken()
        self.events: list[Progress] = []
        self.mode = Mode.PERFORM
        self.parallel = 1

    def ports(self) -> QuestionPorts:
        return QuestionPorts(
            generator=self.generator,
            critic=self.critic,
            database=self.database,
            journal=self.journal,
            ledger=self.ledger,
            cancel=self.cancel,
            mode=self.mode,
            parallel_requests=self.parallel,
            on_event=self.events.append,
        )

    def process(self) -> None:
        """Begin a new process: an empty ledger."""
        self.ledger = Ledger(self.budget)
        self.events = []

    def elicit(self) -> FirstRound:
        return elicit(self.question, self.schema, settings=self.settings, ports=self.ports())

    def solve(self, first: FirstRound | None = None, **more: Any) -> Solution:
        return solve(self.question, self.schema, settings=self.settings, ports=self.ports(), first=first, **more)

    def self_evolve(self, first: FirstRound | None = None) -> Solution:
        return self_evolve(self.question, self.schema, settings=self.settings, ports=self.ports(), first=first)

    def choose(self, solution: Solution) -> Choice:
        return best_of_k(self.schema, solution, settings=self.settings, ports=self.ports())

    def everything(self) -> tuple[FirstRound, Solution, Solution, Choice]:
        """All methods in a new process."""
        self.process()
        first = self.elicit()
        solution = self.solve(first)
        return first, solution, self.self_evolve(first), self.choose(solution)

    def light(self, touches: int | None) -> None:
        """Let everything share one fuse that burns through after this many touches; None: never."""
        self.journal.fuse = self.generator.fuse = self.critic.fuse = self.database.fuse = Fuse(touches)

    @property
    def keys(self) -> list[str]:
        return list(self.journal.entries)


@pytest.fixture
def kit() -> ModuleType:
    """This module, for tests cannot import each other."""
    return sys.modules[__name__]


@pytest.fixture
def labs() -> Iterator[Callable[..., Lab]]:
    """Makes laboratories, and closes their databases."""
    made: list[Lab] = []

    def make(**settings: Any) -> Lab:
        made.append(Lab(**settings))
        return made[-1]

    yield make
    for lab in made:
        lab.database.close()
