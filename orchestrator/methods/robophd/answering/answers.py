"""How one question is answered: a query, its verification, and one repair (RoboPhD, 3.2.3).

A query is asked for and run. The model then looks at the result, up to `corrections` times, and says CORRECT or sends
another query. If the query that stands in the end failed or gave no rows, it is asked once more, about that. All of it
is one conversation, and all of it is recorded; a recorded answer is never asked for again.
"""

from __future__ import annotations

import hashlib
import json

from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.sql import QueryResult
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.errors import InputError
from orchestrator.methods.robophd.answering import texts
from orchestrator.methods.robophd.answering.attempts import Answer, Ending
from orchestrator.methods.robophd.answering.briefing import Briefing, over_budget
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.methods.robophd.answering.dialogue import Dialogue
from orchestrator.methods.robophd.answering.executions import execute
from orchestrator.methods.robophd.answering.requests import NumberedRequests, charge_recorded
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.ports import Database, Journal
from orchestrator.search.replay import Record
from orchestrator.search.streams import derive_seed

ROLE = "answerer"
"""Whose spending it is, in the ledger."""


def answer(context: AnswerContext, question: QuestionView, briefing: Briefing, *, database: Database) -> Answer:
    """Answer a question, or read the answer if it is recorded.

    The answer depends on package, question, database, settings, model and the run's seed, and on nothing else: not on
    the contest it is for. Its spending is charged once to a process's ledger, whoever asks for it how often.

    Args:
        context: Of the process.
        question: To be answered.
        briefing: Of the package on the question's database.
        database: In the predicted domain.

    Raises:
        BudgetExhausted: A ceiling does not cover the next request. No answer is recorded; a process with a higher
            ceiling goes on where this one stopped.
        SandboxError: The sandbox failed; likewise.
        ModelError: The model failed; likewise.
        Cancelled: Somebody asked to stop; likewise.
        InputError: Question, briefing and database do not belong together.
        RunStateError: The journal holds an answer of another package, database, question or of other settings.
    """
    if not question.database == briefing.database == database.name:
        msg = (
            f"question {question.id!r} is about database {question.database!r}, the briefing about "
            f"{briefing.database!r}, and the database is {database.name!r}; all three must be the same"
        )
        raise InputError(msg)
    key = context.keys.answer(briefing.package, question.id)
    identity = {"request": _request_digest(context, question, briefing, database)}

    def perform() -> Record:
        return to_record(_answered(context, key, question, briefing, database))

    def settle() -> None:
        is_recorded = context.steps.recorded(key) is not None
        known = from_record(Answer, context.steps.once(key, perform, identity=identity))
        if is_recorded:
            charge_recorded(context, key, role=ROLE, requests=known.requests, usage=known.usage)

    context.once.do(key, settle)
    return from_record(Answer, context.steps.once(key, perform, identity=identity))


def read_result(answer: Answer, journal: Journal) -> QueryResult | None:
    """What an answer's query gave; None: there is no query.

    Raises:
        RunStateError: The journal does not hold it, or it is damaged.
    """
    return None if answer.result is None else result_from_bytes(journal.get_blob(answer.result))


def _answered(
    context: AnswerContext, key: str, question: QuestionView, briefing: Briefing, database: Database
) -> Answer:
    if over_budget(question, briefing, model=context.model, settings=context.settings):
        return Answer(question=question.id, ending=Ending.OVER_BUDGET)
    requests = NumberedRequests(
        context,
        key,
        role=ROLE,
        seed=lambda number: derive_seed(context.seed, "answer", briefing.package, question.id, number),
    )
    dialogue = Dialogue(
        requests,
        context.settings,
        run=lambda sql, number: execute(context, database, sql, key=f"{key}/query/{number:04d}"),
    )
    return dialogue.hold(question.id, texts.question_request(briefing.system, question))


def _request_digest(context: AnswerContext, question: QuestionView, briefing: Briefing, database: Database) -> str:
    """Of everything the answer depends on."""
    parts = [
        briefing.package,
        briefing.system,
        question.id,
        question.text,
        question.evidence,
        database.digest,
        context.settings.model_dump(mode="json"),
        context.model.name,
        context.seed,
    ]
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
