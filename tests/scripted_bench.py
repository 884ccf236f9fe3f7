"""A bench on the demo shop without an engine: scripted models, and the demo's file behind the real gate."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout
from orchestrator.bootstrap.sql.configurations import Configuration
from orchestrator.bootstrap.sql.data import BenchData, load_data
from orchestrator.bootstrap.sql.databases import Place
from orchestrator.bootstrap.sql.gold import run_gold
from orchestrator.bootstrap.sql.header import bench_header, conditions_of
from orchestrator.bootstrap.sql.outcomes import Method, Outcome
from orchestrator.bootstrap.sql.prompts import SchemaTexts, prompts_record
from orchestrator.bootstrap.sql.question_texts import texts_bytes
from orchestrator.bootstrap.sql.questions import Follow, evaluate
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolSpec,
    Usage,
)
from orchestrator.errors import ModelError
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.evosql import Settings
from orchestrator.ports import Journal
from orchestrator.runtime.workers import CancelToken
from orchestrator.sql.demo import write_demo
from orchestrator.storage.journal import SqliteJournal
from orchestrator.storage.runs import RunStore
from tests.plain_database import PlainDatabase

SETTINGS = Settings(candidates=3, rounds=2, seed=4, stop_share=0.6)
FENCE = "```"


class Writer:
    """Knows the gold queries, writes every third candidate wrong, and can fail once after so many calls."""

    name = "scripted"
    context_tokens = 1_000_000
    is_repeatable = True

    def __init__(self, golds: Mapping[str, str], fails_at: int | None = None) -> None:
        self._golds = golds
        self._left = fails_at

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        assert not tools
        return 100 * len(conversation.messages)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        return Usage(input_tokens=self.count_tokens(conversation, tools), output_tokens=sampling.max_output_tokens)

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                msg = "the model is away"
                raise ModelError(msg)
        usage = Usage(input_tokens=self.count_tokens(conversation, tools), output_tokens=10, usd=Decimal("0.001"))
        text = self._answer(conversation.messages[0].text, sampling.seed)
        return Reply(message=AssistantMessage(text=text), usage=usage, stop=StopReason.END)

    def _answer(self, request: str, seed: int) -> str:
        question = re.search(r"## Question\n`+text\n(.*?)\n`+", request, re.DOTALL)
        assert question is not None
        gold = self._golds[question[1]]
        title = request.split("\n", 1)[0]
        if title == "# Judge SQLite queries":
            listed = re.findall(r'^{"index": (\d+), "sql": (".*?"), "execution"', request, re.MULTILINE)
            scores = {int(index): 9 if json.loads(sql) == gold else 2 for index, sql in listed}
            answer = {
                "evaluations": [
                    {"index": n, "scores": {"score": score}, "issues": [], "execution_assessment": ""}
                    for n, score in scores.items()
                ],
                "cumulative_summary": "Some are right.",
            }
            return f"{FENCE}json\n{json.dumps(answer)}\n{FENCE}"
        if title == "# Choose a SQLite query":
            return f'{FENCE}json\n{{"choice": 1, "reason": ""}}\n{FENCE}'
        return f"{FENCE}sql\n{gold if seed % 3 else 'SELECT 1'}\n{FENCE}"


class Store:
    """Opens the demo's file itself, for every domain alike."""

    def __init__(self, suspicions: tuple[str, ...] = ()) -> None:
        self._suspicions = suspicions

    @contextmanager
    def open(
        self, path: Path, name: str, domain: object, *, run_id: str, query_seconds: float | None = None
    ) -> Iterator[PlainDatabase]:
        assert domain
        assert run_id
        assert query_seconds is None or query_seconds > 0
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        database = PlainDatabase(connection, name)
        database.suspicions = self._suspicions
        try:
            yield database
        finally:
            database.close()


class Bench:
    """A data set, a home, and runs on them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        demo = write_demo(folder / "shop")
        self.choices = BenchChoices(layout=Layout.JSONL, root=str(demo.questions), limit=6)
        self.data: BenchData = load_data(self.choices)
        self.policy = find_policy(find_places(self.home, None), "default")
        self.notes: list[str] = []
        self.suspicions: tuple[str, ...] = ()

    def place(self, workers: int = 1) -> Place:
        sandbox: Any = SimpleNamespace(policy=self.policy)
        store: Any = Store(self.suspicions)
        return Place(
            sandbox=sandbox,
            store=store,
            paths=self.data.databases,
            run_id="r",
            query_seconds=30,
            workers=workers,
            token=CancelToken(),
        )

    def conditions(self) -> dict[str, Any]:
        database = {"source": "s", "volume": "v", "sqlite": "3", "tables": 1, "hidden": 0, "dropped": 0}
        return conditions_of(
            self.data,
            databases={"web_shop": database},
            in_force={"policy": {"name": "default", "digest": self.policy.digest()}, "images": {"sql": "sha256:0"}},
            prompts=prompts_record(1000),
            models={"generator": "scripted", "critic": "scripted"},
        )

    def configuration(self, *, fails_at: int | None = None, **more: Any) -> Configuration:
        writer = Writer({q.text: q.gold or "" for q in self.data.questions}, fails_at)
        given = {"settings": SETTINGS, "methods": tuple(Method), "budget": Budget()} | more
        return Configuration(generator=writer, critic=writer, **given)

    def run(self, journal: Journal, configuration: Configuration, workers: int = 1) -> list[Outcome]:
        place = self.place(workers)
        judge = SqlJudge(journal, dataset=self.data.dataset.digest)
        evaluable = run_gold(place, self.data.questions, judge, label="jsonl", note=self.notes.append)
        return evaluate(
            evaluable,
            configuration,
            place=place,
            texts=lambda database: SchemaTexts(database.description, {}, name=database.name, characters=1000),
            judge=judge,
            journal=journal,
            follow=Follow(token=place.token),
        )

    def begun(self) -> tuple[str, SqliteJournal]:
        run_id, journal = RunStore(self.home).create()
        texts = journal.put_blob(texts_bytes(self.data.questions))
        journal.put("run", bench_header(self.choices, SETTINGS, self.data, self.conditions(), texts))
        return run_id, journal
