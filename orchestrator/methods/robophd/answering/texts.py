"""The texts of answering, filled in from `prompts/`.

Whatever comes from a package, a database, a data set or a model stands in a fenced block that nothing inside can end.
The system message is the same for all questions of a package on a database, so that providers can keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from orchestrator.domain.conversation import Conversation, UserMessage
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.sql.quoting import data_block, json_line

ANSWER = "Answer with a SQLite query"
VERIFY = "Verify the result of a SQLite query"
REPAIR = "Repair a SQLite query"
ANALYSE = "Analyse a database with read-only queries"
NO_ANALYSIS = "There is no analysis of this database."
NO_ROWS = "It returned no rows."
NO_QUERY = "The reply held no query."
LAST_CALL = "[That was the last use of tools: the next message must be the analysis.]"
CUT_OFF = "[Your message reached its maximum length and was cut off: its last call may be incomplete; say less in one.]"


def system_message(analysis: str | None, instructions: str) -> str:
    """What a model knows before any question.

    Args:
        analysis: Untrusted; None: there is none.
        instructions: Of the package; untrusted.
    """
    preface = Template(_stored("answer_system")).substitute(data=_stored("answer_data"))
    known = f"## Database analysis\n{NO_ANALYSIS}" if analysis is None else _section("Database analysis", analysis)
    return "\n\n".join([preface, known, _section("Instructions", instructions)])


def question_request(system: str, question: QuestionView) -> Conversation:
    """The beginning of a conversation: a request for a query."""
    sections = [_section("Question", question.text)]
    if question.evidence.strip():
        sections.append(_section("Evidence", question.evidence))
    return Conversation(system=system, messages=(_message(ANSWER, *sections),))


def verify_message(sql: str, shown: Mapping[str, Any]) -> UserMessage:
    """A request to look at a result.

    Args:
        sql: As it was run.
        shown: `sql.shown_results.shown_result` of what it gave.
    """
    return _message(VERIFY, _section("Query", sql, "sql"), _section("Result", json_line(shown), "json"))


def repair_message(failure: str, sql: str, shown: Mapping[str, Any] | None) -> UserMessage:
    """A request to put right what failed, or gave nothing.

    Args:
        failure: What was wrong.
        sql: As it was run; empty: there was no query.
        shown: What it gave; None: there was no query.
    """
    sections = [_section("Failure", failure)]
    if shown is not None:
        sections += [_section("Query", sql, "sql"), _section("Result", json_line(shown), "json")]
    return _message(REPAIR, *sections)


def analysis_request(failure: str, settings: AnswerSettings) -> Conversation:
    """The beginning of a conversation in which a model analyses a database.

    Args:
        failure: Of the tool.
        settings: Say how long it may become.
    """
    system = Template(_stored("analysis_system")).substitute(
        requests=settings.hybrid_requests, characters=settings.hybrid_characters
    )
    return Conversation(system=system, messages=(_message(ANALYSE, _section("Tool failure", failure)),))


def _message(title: str, *sections: str) -> UserMessage:
    return UserMessage(text="\n\n".join([f"# {title}", *sections]))


def _section(name: str, text: str, info: str = "text") -> str:
    return f"## {name}\n{data_block(text, info)}"


@cache
def _stored(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
