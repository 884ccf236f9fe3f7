"""`sql ask`: one question of one database."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.ledger import RememberingLedger
from orchestrator.bootstrap.models import OFFLINE
from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.opening import OpenFor, open_database
from orchestrator.bootstrap.sql.prompts import SchemaTexts, schema_characters
from orchestrator.bootstrap.sql.scratch import scratch_folder
from orchestrator.bootstrap.sql.withheld import Withheld, withheld_words
from orchestrator.domain.conversation import Usage
from orchestrator.domain.data_access import Access
from orchestrator.domain.sql import QueryResult
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.llm.offline.sql import unplaced_words
from orchestrator.methods.evosql import (
    Progress,
    QuestionPorts,
    QuestionView,
    Settings,
    Solution,
    explain,
    solve,
)
from orchestrator.methods.evosql.calls import read_outcomes
from orchestrator.ports import LanguageModel
from orchestrator.search.reply_kinds import Outcomes
from orchestrator.storage.journal import SqliteJournal

_ID = "ask"


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked, and with what it is answered."""

    path: Path
    question: str
    evidence: str
    settings: Settings
    generator: LanguageModel
    critic: LanguageModel
    budget: SqlBudget
    on_event: Callable[[Progress], object] = lambda _: None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer, valid or not, and how it was found."""

    database: str
    digest: str
    """Of the volume that was asked."""
    sqlite_version: str
    access: Access
    withheld: tuple[Withheld, ...]
    """What the question names of it; no model was told."""
    unplaced: tuple[str, ...] | None
    """Words of the question that the model made nothing of; None: it does not say."""
    solution: Solution
    result: QueryResult | None
    """Of the answer; None: no candidate held a query."""
    explanation: dict[str, Any]
    usage: Usage
    requests: int
    outcomes: Outcomes
    """Of the requests for queries."""
    refusal: str | None
    """What the budget did not cover, in words; None: it covered everything."""


def answer_question(asking: Asking, opener: OpenFor) -> Answered:
    """Answer with EvoSQL. Nothing is kept but the audit records of the containers.

    Raises:
        BudgetExhausted: The budget does not cover the first round.
        EvolvariumError: As `open_database` and as a model request.
    """
    view = QuestionView(id=_ID, text=asking.question, evidence=asking.evidence)
    ledger = RememberingLedger(
        asking.budget.share(1), spender="this question", way_out="ask again with a higher limit on"
    )
    with open_database(asking.path, _ID, opener) as database, scratch_folder() as folder:
        characters = schema_characters(asking.generator, asking.critic)
        texts = SchemaTexts(database.description, {}, name=database.name, characters=characters)
        with SqliteJournal(folder / "journal.sqlite") as journal:
            ports = QuestionPorts(
                generator=asking.generator,
                critic=asking.critic,
                database=database,
                journal=journal,
                ledger=ledger,
                cancel=opener.token,
                parallel_requests=len(os.sched_getaffinity(0)),
                on_event=asking.on_event,
            )
            schema_text = texts.of(view)
            solution = solve(view, schema_text, settings=asking.settings, ports=ports)
            outcomes = read_outcomes(journal)
            blob = solution.answer.execution.result
            result = None if blob is None else result_from_bytes(journal.get_blob(blob))
        snapshot = ledger.snapshot()
        return Answered(
            database=database.name,
            digest=database.digest,
            sqlite_version=database.description.sqlite_version,
            access=database.access,
            withheld=withheld_words(view.text, view.evidence, database.access, database.description.schema),
            unplaced=_unplaced(asking, schema_text),
            solution=solution,
            result=result,
            explanation=explain(solution),
            usage=snapshot.spent.usage,
            requests=snapshot.spent.requests,
            outcomes=outcomes,
            refusal=ledger.refusal,
        )


def _unplaced(asking: Asking, schema_text: str) -> tuple[str, ...] | None:
    """As the offline engine reads the question; what another model made of a word, nobody can tell."""
    if asking.generator.name != OFFLINE:
        return None
    return unplaced_words(schema_text, asking.question, asking.evidence)
