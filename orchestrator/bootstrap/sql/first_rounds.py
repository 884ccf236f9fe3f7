"""Whether a budget covers a first round anywhere, seen before anything is spent: without one no method answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.databases import OpenDatabases
from orchestrator.bootstrap.sql.running import Opened
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import Conversation, Sampling
from orchestrator.errors import BudgetExhausted
from orchestrator.methods.evosql import Settings
from orchestrator.methods.evosql.texts import write_request
from orchestrator.ports import LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """What a first round takes."""

    least_tokens: int
    """K prompts and one reply of full length, which is set aside for the last of them."""
    most_tokens: int
    """K requests at their worst."""
    least_usd: Decimal | None
    """One request at its worst: a provider may charge less for a prompt it has seen. None: the price is unknown."""
    most_usd: Decimal | None
    """K of them, likewise."""


def require_first_round(budget: SqlBudget, opened: Sequence[Opened], settings: Sequence[Settings]) -> None:
    """See that an equal share of a budget may cover the first round of at least one question.

    Args:
        budget: Of the whole run.
        opened: Its data sets; gold queries need not have been run.
        settings: Every question is answered once under each.

    Raises:
        BudgetExhausted: It covers none; the message says how much would be needed.
        EvolvariumError: As `DatabaseStore.open`.
    """
    questions = sum(question.gold is not None for one in opened for question in one.data.questions)
    if budget == SqlBudget() or not questions:
        return
    parts = len(settings) * questions
    share = budget.share(parts)
    needs: list[_Need] = []
    for need in _needs(opened, settings):
        if _covers(share, need):
            return
        needs.append(need)
    raise BudgetExhausted(_refusal(share, parts, needs, is_sweep=len(settings) > 1))


def _needs(opened: Sequence[Opened], settings: Sequence[Settings]) -> Iterator[_Need]:
    """Of each question, under each of the settings."""
    for one in opened:
        asked = sorted((q for q in one.data.questions if q.gold is not None), key=lambda q: q.database)
        with OpenDatabases(one.place, asked, one.texts) as databases:
            for question in asked:
                one.place.token.check()
                view = view_of(question)
                with databases.use(question.database) as (_, texts):
                    request = write_request(view, texts.of(view))
                yield from (_need(one.generator, request, each) for each in settings)


def _need(model: LanguageModel, request: Conversation, settings: Settings) -> _Need:
    prompt = model.count_tokens(request, ())
    room = model.context_tokens - prompt
    if room < 1:  # nothing is asked, and so nothing is spent
        return _Need(least_tokens=0, most_tokens=0, least_usd=Decimal(0), most_usd=Decimal(0))
    length = min(settings.max_output_tokens, room)
    worst = model.worst_case(request, (), Sampling(seed=0, max_output_tokens=length, temperature=settings.temperature))
    return _Need(
        least_tokens=(settings.candidates - 1) * prompt + worst.tokens,
        most_tokens=settings.candidates * worst.tokens,
        least_usd=worst.usd,
        most_usd=None if worst.usd is None else settings.candidates * worst.usd,
    )


def _covers(share: Budget, need: _Need) -> bool:
    """A price that is unknown is refused elsewhere, with the reason."""
    return (share.tokens is None or need.least_tokens <= share.tokens) and (
        share.usd is None or need.least_usd is None or need.least_usd <= share.usd
    )


def _refusal(share: Budget, parts: int, needs: Sequence[_Need], *, is_sweep: bool) -> str:
    unit = "evolution of a question" if is_sweep else "question"
    said = []
    short = [need for need in needs if share.tokens is not None and need.least_tokens > share.tokens]
    if short:
        least, most = min(need.least_tokens for need in short), max(need.most_tokens for need in needs)
        said.append(
            f"a first round needs at least {least} tokens per {unit}, the share of each of {parts} is {share.tokens}; "
            f"give --budget-tokens {least * parts} or more ({most * parts} is surely enough for first rounds)"
        )
    prices = [need.least_usd for need in needs if need.least_usd is not None]
    dear = [price for price in prices if share.usd is not None and price > share.usd]
    if dear:
        surely = max(need.most_usd for need in needs if need.most_usd is not None)
        said.append(
            f"a first round needs at least {min(dear):f} US dollars per {unit}, the share of each of {parts} is "
            f"{share.usd:f}; give --budget-usd {min(dear) * parts:f} or more ({surely * parts:f} is surely enough for "
            "first rounds)"
        )
    fewer = "fewer questions with --limit, fewer variants" if is_sweep else "fewer questions with --limit"
    return f"{'; '.join(said)}, or {fewer}, or a lower max_output_tokens; nothing was spent, and no run is kept"
