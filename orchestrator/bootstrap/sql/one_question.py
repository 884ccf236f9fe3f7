"""One question of a bench as its journal tells it; its gold query, where it is asked for, from the data set itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from orchestrator.bootstrap.sql.data import load_data
from orchestrator.bootstrap.sql.outcomes import Method, Outcome
from orchestrator.bootstrap.sql.question_texts import QuestionText, read_texts
from orchestrator.bootstrap.sql.results import BenchView, Measured
from orchestrator.domain.sql import QueryResult
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.errors import RunStateError
from orchestrator.ports import Journal
from orchestrator.sql.differences import difference

_SQL = "/sql/"
"""In the journal between a question's key and the name of one different query of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A query, and what running it gave."""

    sql: str
    result: QueryResult | None
    """None: a gold query without one, for its question cannot be evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneQuestion:
    """All that is recorded of one question."""

    measured: Measured
    text: QuestionText | None
    """None: the run was made by a version that did not keep it."""
    answers: Mapping[Method, QueryResult | None]
    """What running each method's answer gave; None: it held no query."""
    differences: Mapping[Method, tuple[str, ...]]
    """How these differ from the gold result, in words that give away no value; row order counts, as in `strict`."""
    ran: Sequence[Ran]
    """Every different query that was run, in order."""
    gold: Ran | None
    """None: not asked for, or the data set gives none."""


def read_question(view: BenchView, journal: Journal, name: str, *, with_gold: bool) -> OneQuestion:
    """Read what is recorded of a question.

    Args:
        view: Of the bench.
        journal: Of it.
        name: Id of the question.
        with_gold: Whether its gold query is wanted, too; it is read from the data set.

    Raises:
        RunStateError: There is no such question, a record is missing, or the data set has changed since.
        InputError: The gold query is wanted, and the data set cannot be read.
    """
    measured = _find(view, name)
    texts = view.header.get("texts")
    answers = _answers(journal, measured.outcome)
    return OneQuestion(
        measured=measured,
        text=None if texts is None else read_texts(journal, texts).get(name),
        answers=answers,
        differences=_differences(journal, measured, answers),
        ran=[
            Ran(sql=str(record["sql"]), result=_result(journal, str(record["result"])))
            for _, record in journal.records(measured.key + _SQL)
        ],
        gold=_gold(view, journal, measured) if with_gold else None,
    )


def _find(view: BenchView, name: str) -> Measured:
    found = next((one for one in view.questions if one.id == name), None)
    if found is None:
        known = [one.id for one in view.questions]
        close = get_close_matches(name, known, n=3) or known[:3]
        msg = (
            f"run {view.run_id} has no question {name!r}; it has for instance {', '.join(close)}, and "
            f"`evolvarium show {view.run_id} --questions all` lists them"
        )
        raise RunStateError(msg)
    return found


def _answers(journal: Journal, outcome: Outcome | None) -> dict[Method, QueryResult | None]:
    return {
        method: None if one.result is None else _result(journal, one.result)
        for method, one in (outcome.predictions.items() if outcome is not None else ())
    }


def _differences(
    journal: Journal, measured: Measured, answers: Mapping[Method, QueryResult | None]
) -> dict[Method, tuple[str, ...]]:
    digest = None if measured.gold is None else measured.gold.result
    gold = None if digest is None else _result(journal, digest)
    if gold is None or not gold.is_ok:
        return {}
    return {
        method: ("no candidate held a query",) if result is None else difference(result, gold, ordered=True)
        for method, result in answers.items()
    }


def _gold(view: BenchView, journal: Journal, measured: Measured) -> Ran | None:
    """The journal holds the result of a gold query, but not the query."""
    data = load_data(view.choices)
    if data.dataset.digest != view.header["dataset"]["digest"]:
        msg = (
            f"the data set in {view.choices.root!r} has changed since run {view.run_id}, so its gold queries may be "
            "others; restore it, or leave out --gold"
        )
        raise RunStateError(msg)
    sql = next(question.gold for question in data.questions if question.id == measured.id)
    digest = None if measured.gold is None else measured.gold.result
    if sql is None:
        return None
    return Ran(sql=sql, result=None if digest is None else _result(journal, digest))


def _result(journal: Journal, digest: str) -> QueryResult:
    return result_from_bytes(journal.get_blob(digest))
