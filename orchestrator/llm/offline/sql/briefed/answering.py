"""Answers, verdicts and repairs: one message of a conversation about one question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from orchestrator.domain.conversation import Conversation, Sampling
from orchestrator.llm.offline.sql.analysis import read_analysis
from orchestrator.llm.offline.sql.briefed import revising
from orchestrator.llm.offline.sql.briefed.briefing import Briefing, read_briefing, task_of
from orchestrator.llm.offline.sql.briefed.effects import in_force
from orchestrator.llm.offline.sql.generator import draw
from orchestrator.llm.offline.sql.instructions import conventions_in
from orchestrator.llm.offline.sql.pool import MAX_RUNS, Derived, derivations
from orchestrator.llm.offline.sql.reading import Reading, read_with

DEFAULT_TEMPERATURE = 1.0
_FULL_EFFORT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A question as it is read once, under the rules in force."""

    reading: Reading
    rules: frozenset[str]
    pool: tuple[Derived, ...]
    """The likeliest first; empty: no query could be built."""


def is_briefed_request(conversation: Conversation) -> bool:
    """Whether the last message is one of those about a question."""
    return task_of(conversation) is not None


def respond_briefed(conversation: Conversation, sampling: Sampling, effort: float = 1.0) -> str:
    """The reply: a pure function of the conversation, the seed, the temperature and the effort.

    Args:
        conversation: The system message holds the analysis and the instructions; no other source is asked.
        sampling: At temperature 0 the likeliest query is given.
        effort: Over 0, at most 1. Below 1 only that share of the derivations and of each list of values is looked at,
            each word is understood by what stands next to it alone, and results are not doubted: only failures and
            empty results lead to another query. It stands for a weaker model.
    """
    briefing = read_briefing(conversation)
    if briefing is None:
        return "The message has none of the titles I know."
    if not briefing.question:
        return "There is no question, so there is nothing I can answer."
    case = _case(briefing, effort)
    if not case.pool:
        return "I found no table in the analysis from which a query could be built."
    temperature = DEFAULT_TEMPERATURE if sampling.temperature is None else sampling.temperature
    if briefing.task == "answer":
        scores = [derived.score for derived in case.pool]
        sql = case.pool[draw(scores, sampling.seed, temperature)].sql
        return _block("I linked the question's words to the analysis and put them together.", sql)
    return _revised(briefing, case, sampling.seed, temperature, has_insight=effort >= _FULL_EFFORT)


def _revised(briefing: Briefing, case: Case, seed: int, temperature: float, *, has_insight: bool) -> str:
    known = (briefing, case.reading, case.rules, case.pool)
    if briefing.task == "verify":
        sql, reason = revising.verified(*known, seed=seed, temperature=temperature, has_insight=has_insight)
    else:
        sql, reason = revising.repaired(*known, seed=seed, temperature=temperature)
    if sql is None:
        return "CORRECT"
    return _block(reason, sql)


def _case(briefing: Briefing, effort: float) -> Case:
    """The question under what is known by now; names that the database refused are none of it any more."""
    known = (briefing.analysis, briefing.instructions, briefing.question, briefing.evidence, effort)
    refused = revising.refused_names(briefing)
    case = _read(*known, refused)
    return case if case.pool or not refused else _read(*known, frozenset())


@lru_cache(maxsize=256)
def _read(
    analysis: str, instructions: str, question: str, evidence: str, effort: float, refused: frozenset[str]
) -> Case:
    schema = read_analysis(analysis, effort).for_question(question, evidence).without(refused)
    reading = read_with(schema, question, evidence)
    rules = conventions_in(instructions)
    if not schema.tables:
        return Case(reading, rules, ())
    pool = derivations(reading, max(1, round(MAX_RUNS * effort)))
    if effort < _FULL_EFFORT:
        pool = tuple(sorted(map(_first_draft, pool), key=lambda derived: -derived.score))
    return Case(reading, rules, in_force(pool, reading, rules))


def _first_draft(derived: Derived) -> Derived:
    return Derived(sql=derived.sql, query=derived.query, score=derived.drawn, drawn=derived.drawn)


def _block(reason: str, sql: str) -> str:
    plain = reason.replace("`", "'").replace("\n", " ")
    return f"{plain}\n\n```sql\n{sql}\n```"
