"""A laboratory for answering with packages: a scripted model, a real database behind the real gate, and scripted tools.

Beginning again is a new process on the same journal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage, Manifest, manifest_bytes
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import AssistantMessage, ToolMessage
from orchestrator.domain.outcomes import Ending as ContainerEnding
from orchestrator.domain.outcomes import Outcome
from orchestrator.domain.sql import Column, Description, QueryResult, Schema, Table
from orchestrator.domain.tool_runs import ToolFailure, ToolRun
from orchestrator.methods.robophd.answering import (
    Analysis,
    Answer,
    AnswerContext,
    analyse,
    answer,
    brief_on,
)
from orchestrator.methods.robophd.keys import AnswerKeys
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.ports import Database
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode, Steps
from tests.memory_journal import Fuse, MemoryJournal
from tests.plain_database import PlainDatabase
from tests.scripted_answerer import Script, ScriptedModel, call, fenced

RIGHT = "SELECT name FROM p WHERE city = 'Oslo'"
WRONG = "SELECT name FROM p"
EMPTY = "SELECT name FROM p WHERE city = 'Paris'"
ZERO = "SELECT count(*) FROM p WHERE city = 'Paris'"
BROKEN = "SELECT nam FROM p"
WRITE = "Answer with a SQLite query"
VERIFY = "Verify the result of a SQLite query"
REPAIR = "Repair a SQLite query"
ANALYSE = "Analyse a database with read-only queries"


class PeopleDatabase(PlainDatabase):
    """Four people; notes the attempts, and can burn."""

    description = Description(
        schema=Schema(
            tables=(
                Table(
                    name="p",
                    kind="table",
                    sql="CREATE TABLE p (id INTEGER, name TEXT, age INTEGER, city TEXT)",
                    columns=(
                        Column(name="id", type="INTEGER"),
                        Column(name="name", type="TEXT", examples=("'Ann'",)),
                        Column(name="age", type="INTEGER"),
                        Column(name="city", type="TEXT", examples=("'Oslo'",)),
                    ),
                    rows=4,
                ),
                Table(name="v", kind="view", sql="CREATE VIEW v AS SELECT 1 AS one", columns=(), rows=None),
            )
        ),
        values={},
        sqlite_version=sqlite3.sqlite_version,
    )

    def __init__(self) -> None:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute("CREATE TABLE p (id INTEGER, name TEXT, age INTEGER, city TEXT)")
        rows = [(1, "Ann", 30, "Oslo"), (2, "Bob", 40, "Rome"), (3, "Cy", 30, "Oslo"), (4, "Dee", 50, None)]
        connection.executemany("INSERT INTO p VALUES (?, ?, ?, ?)", rows)
        super().__init__(connection, "shop/people")
        self.fuse = Fuse()
        self.attempts: list[str] = []

    def query(self, sql: str, *, attempt_id: str, reverse: bool = False) -> QueryResult:
        self.fuse.touch()
        self.attempts.append(attempt_id)
        return super().query(sql, attempt_id=attempt_id, reverse=reverse)


class ScriptedTools:
    """`ports.DatabaseTools` that gives the next of some runs, and the last one again and again."""

    def __init__(self, *runs: ToolRun) -> None:
        self.runs = runs or (tool_run("Table p holds people."),)
        self.asked: list[tuple[str, str, str]] = []
        self.fuse = Fuse()

    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:
        assert not observe
        self.fuse.touch()
        self.asked.append((package.digest, database.name, attempt_id))
        return self.runs[min(len(self.asked), len(self.runs)) - 1]


def tool_run(text: str | None, failure: ToolFailure | None = None, detail: str = "") -> ToolRun:
    outcome = Outcome(
        ending=ContainerEnding.OK,
        exit_code=0,
        wall_seconds=0.5,
        cpu_seconds=0.25,
        memory_peak_bytes=None,
        output=b"",
        output_truncated=False,
    )
    return ToolRun(text=text, failure=failure, detail=detail, outcomes=(outcome, outcome))


def package(instructions: str = "Give only the columns that are asked for.", tool: str = "print(1)\n") -> AgentPackage:
    return AgentPackage.load(
        {
            "agent.json": manifest_bytes(Manifest(command=("tools/analyze.py",), output="stdout")),
            "eval_instructions.md": instructions.encode(),
            "tools/analyze.py": tool.encode(),
        }
    )


def question(identity: str = "shop/17", evidence: str = "Oslo is a city.") -> QuestionView:
    return QuestionView(id=identity, database="shop/people", text="Who lives in Oslo?", evidence=evidence)


class AnsweringLab:
    """A package, a question and everything around them."""

    def __init__(self, *first: Script, verify: Sequence[Script] = ("CORRECT",), **settings: Any) -> None:
        self.package = package()
        self.question = question()
        self.settings = AnswerSettings(**settings)
        self.model = ScriptedModel(
            {
                WRITE: first or (fenced(RIGHT),),
                VERIFY: verify,
                REPAIR: (fenced(RIGHT),),
                ANALYSE: ("People live here.",),
            }
        )
        self.database = PeopleDatabase()
        self.tools = ScriptedTools()
        self.journal: Any = MemoryJournal()
        self.budget = Budget()
        self.mode = Mode.PERFORM
        self.seed = 7
        self.keys = AnswerKeys()
        self.begin()

    def begin(self) -> None:
        """Begin a new process: an empty ledger and memory."""
        self.ledger = Ledger(self.budget)
        self.cancel = CancelToken()
        self.context = AnswerContext(
            model=self.model,
            steps=Steps(self.journal, self.mode),
            ledger=self.ledger,
            settings=self.settings,
            seed=self.seed,
            cancel=self.cancel,
            keys=self.keys,
        )

    def analyse(self) -> Analysis:
        return analyse(self.context, self.package, self.database, tools=self.tools)

    def answer(self, asked: QuestionView | None = None) -> Answer:
        briefing = brief_on(self.context, self.package, self.database, self.analyse())
        return answer(self.context, asked or self.question, briefing, database=self.database)

    def light(self, touches: int | None) -> None:
        """Let everything share one fuse that burns through after this many touches; None: never."""
        self.journal.fuse = self.model.fuse = self.database.fuse = self.tools.fuse = Fuse(touches)

    @property
    def results(self) -> list[ToolMessage]:
        """Of the tools, as the model saw them in the last request."""
        return [message for message in self.model.asked[-1][1].messages if isinstance(message, ToolMessage)]


def long_lab(**model: Any) -> AnsweringLab:
    """Everything there is: a tool that fails, an analysis by the model, a correction, and a repair."""
    lab = AnsweringLab(fenced(WRONG), verify=[fenced(BROKEN), "CORRECT"])
    lab.tools = ScriptedTools(tool_run(None, ToolFailure.ERROR, "it raised ValueError"))
    looks = AssistantMessage(text="", tool_calls=(call("list_tables"), call("query", sql=WRONG)))
    lab.model.scripts[ANALYSE] = (lambda request: looks if request.turn == 0 else "Table p holds people.",)
    for name, value in model.items():
        setattr(lab.model, name, value)
    return lab


def everything(lab: AnsweringLab) -> tuple[Analysis, Answer]:
    """In a new process."""
    lab.begin()
    return lab.analyse(), lab.answer()
