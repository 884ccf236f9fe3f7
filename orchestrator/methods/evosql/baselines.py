"""What EvoSQL is compared with on the same candidates: majority voting, and a selector over the best of its memory."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.methods.evosql import texts
from orchestrator.methods.evosql.answers import extract_choice
from orchestrator.methods.evosql.asking import Asker, calls_of
from orchestrator.methods.evosql.calls import Phase
from orchestrator.methods.evosql.candidates import Candidate
from orchestrator.methods.evosql.context import open_context
from orchestrator.methods.evosql.ports import QuestionPorts
from orchestrator.methods.evosql.settings import Settings
from orchestrator.methods.evosql.solutions import Choice, FirstRound, Solution
from orchestrator.search.memory import Entry
from orchestrator.search.repeated_sampling import majority


def majority_answer(first: FirstRound) -> Candidate:
    """Maj@K: the first candidate of the largest cluster of results, empty results included."""
    outcomes = [candidate.execution.cluster if candidate.is_valid else None for candidate in first.candidates]
    return first.candidates[majority(outcomes)]


def best_of_k(schema_text: str, solution: Solution, *, settings: Settings, ports: QuestionPorts) -> Choice:
    """Best-of-K: one request lets a model choose among the TopK of an evolution, best first.

    Each different query is shown once, invalid ones only if there are no others. Where the answer cannot be read, or
    only one query is left, the first is chosen.

    Args:
        schema_text: As the evolution had it.
        solution: Of the evolution; its method's name is part of the journal keys.
        settings: As the evolution had them.
        ports: Everything outside; the critic's model chooses.

    Raises:
        BudgetExhausted: The budget does not cover it.
        EvolvariumError: As a model request.
    """
    candidates = selectable(solution.best)
    if len(candidates) == 1:
        return Choice(answer=candidates[0], candidates=candidates, is_readable=True, calls=())
    context = open_context(solution.question, schema_text, settings=settings, ports=ports)
    asker = Asker(
        context,
        ports.critic,
        method=solution.method,
        role=f"{solution.method}/choose",
        temperature=settings.critic_temperature,
    )
    reply = asker.ask(Phase.CHOOSE, 1, texts.choose_request(solution.question, schema_text, candidates))
    number = None if reply is None else extract_choice(reply.message.text, len(candidates))
    return Choice(
        answer=candidates[(number or 1) - 1],
        candidates=candidates,
        is_readable=number is not None,
        calls=calls_of([reply], Phase.CHOOSE, solution.rounds[-1].number),
    )


def selectable(best: Sequence[Entry[Candidate]]) -> tuple[Candidate, ...]:
    """What a selector may choose from, best first: each different query once, invalid ones only among themselves.

    Args:
        best: Entries, best first; at least one.
    """
    distinct = {entry.key: entry.content for entry in reversed(best)}  # of copies the best ranked one stays
    ordered = [distinct[key] for key in dict.fromkeys(entry.key for entry in best)]
    return tuple(candidate for candidate in ordered if candidate.is_valid) or tuple(ordered)
