"""What a Text-to-SQL bench (EvoSQL and its baselines) will take: requests about each question, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from orchestrator.bootstrap.estimates.amounts import Amounts, Line, Size, expected_amounts, most_amounts
from orchestrator.bootstrap.estimates.assumptions import BenchAssumptions, assumed, require_used
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.like import Measured
from orchestrator.bootstrap.estimates.like_bench import LikeBench
from orchestrator.bootstrap.estimates.models import EstimatedModel, context_facts, estimated_models
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.data import BenchData, load_data, view_of
from orchestrator.bootstrap.sql.outcomes import EVOLUTIONS, Method
from orchestrator.domain.conversation import Conversation
from orchestrator.domain.model_access import ModelRole
from orchestrator.llm.prices import price_table
from orchestrator.llm.tokens import conversation_tokens
from orchestrator.methods.evosql import QuestionView, Settings, texts

_Request = Callable[[QuestionView], Conversation]
GENERATOR, CRITIC = ModelRole.GENERATOR.value, ModelRole.CRITIC.value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Requests of one kind about all questions."""

    role: str
    sizes: Sequence[Size]
    output_tokens: int
    alike: int = 1
    """So many requests about a question are the very same and may be answered by one call."""


def estimate_bench(
    choices: BenchChoices,
    settings: Settings,
    assignments: Sequence[str] = (),
    like: Measured | None = None,
) -> Estimate:
    """What `sql bench` will take with these choices; every question is taken for one that can be evaluated.

    Args:
        choices: What would be asked for.
        settings: Of the method.
        assignments: Assumptions, each `NAME=VALUE`.
        like: A recorded bench whose averages are used instead; None: the assumptions.

    Raises:
        InputError: Data or model are not there, or a value is out of its range.
    """
    data = load_data(choices)
    assumptions = assumed(BenchAssumptions, assignments)
    roles = _models(choices, assumptions, like)
    models = [one for several in roles.values() for one in several]
    require_used(assignments, models)
    questions = len(data.questions)
    measured = None if like is None else LikeBench(like, choices, settings, questions=questions)
    asked = [] if like is not None else _asked(data, choices, settings, assumptions)
    most = most_requests(choices, settings)
    lines = [
        Line(
            role=role,
            model=one,
            expected=_expected(role, one, asked, assumptions) if measured is None else measured.expected(role, one),
            at_most=most_amounts(one, most[role] * questions, output_limit=settings.max_output_tokens),
        )
        for role, several in roles.items()
        for one in several
    ]
    return Estimate(
        method="sql bench",
        subject=data.dataset.name,
        lines=tuple(line for line in lines if line.at_most.requests),
        assumptions=[] if like is not None else assumptions.stated(models),
        facts=[*_facts(data, choices, settings, is_measured=like is not None), *context_facts(models)],
        notes=[] if measured is None else list(measured.notes()),
        budget_usd=choices.budget.usd,
        budget_tokens=choices.budget.tokens,
        like=None if like is None else like.run_id,
    )


def _models(
    choices: BenchChoices, assumptions: BenchAssumptions, like: Measured | None
) -> Mapping[str, list[EstimatedModel]]:
    table, recorded = price_table(), {} if like is None else like.contexts
    return {
        role.value: estimated_models(
            name, role, choices.access, table, context_tokens=assumptions.context_tokens, recorded=recorded
        )
        for role, name in ((ModelRole.GENERATOR, choices.model), (ModelRole.CRITIC, choices.critic))
    }


def _facts(data: BenchData, choices: BenchChoices, settings: Settings, *, is_measured: bool) -> list[str]:
    counts = (
        f"{len(data.questions)} questions on {len(data.databases)} databases; {settings.candidates} candidates in each "
        f"of at most {settings.rounds} rounds; methods {', '.join(method.value for method in choices.methods)}"
    )
    if is_measured:
        return [
            counts,
            "requests and tokens are those of the recorded bench, scaled to these questions, candidates and rounds",
        ]
    return [counts, "questions, evidence and prompts are counted from their own texts, schemas are assumed"]


def most_requests(choices: BenchChoices, settings: Settings) -> Mapping[str, int]:
    """Requests about one question at most, by role."""
    later = settings.candidates * (settings.rounds - 1)
    evolutions = [method for method in EVOLUTIONS if method in choices.methods]
    judged = settings.rounds if settings.critic_last_round else settings.rounds - 1
    critiques = 2 * judged if Method.EVOSQL in choices.methods else 0  # each may have to be asked for again
    chosen = 1 if Method.BEST_OF_K in choices.methods else 0
    return {GENERATOR: settings.candidates + later * len(evolutions), CRITIC: critiques + chosen}


def _expected(role: str, model: EstimatedModel, asked: Sequence[_Asked], assumptions: BenchAssumptions) -> Amounts:
    found = Amounts()
    for one in asked:
        if one.role == role:
            found += expected_amounts(
                model,
                _in_calls(one, model.samples),
                output_tokens=one.output_tokens,
                cached_share=assumptions.cached_share,
            )
    return found


def _in_calls(asked: _Asked, samples: int) -> Sequence[Size]:
    """The sizes of requests of which the first in each call pays for the input of all."""
    calls = -(-asked.alike // samples)
    if calls == asked.alike:
        return asked.sizes
    first, rest = asked.sizes
    again = rest.requests * (calls - 1) // (asked.alike - 1)
    return [first, Size(again, rest.tokens, rest.seen), Size(rest.requests - again, 0, 0)]


def _asked(data: BenchData, choices: BenchChoices, settings: Settings, assumptions: BenchAssumptions) -> list[_Asked]:
    """All requests that are expected, of each kind."""
    views = [view_of(question) for question in data.questions]
    count, k = len(views), settings.candidates
    reply = min(assumptions.reply_tokens, settings.max_output_tokens)
    critique = min(assumptions.critique_tokens * k, settings.max_output_tokens)
    payload, whole = assumptions.candidate_tokens * settings.payload, assumptions.candidate_tokens * k

    def sizes(average: int, times: Fraction, each: int) -> list[Size]:
        """`each` requests about a question that are alike: all but the first of them have been seen."""
        first = round(count * times)
        rest = round(count * times * each) - first
        return [Size(first, average, 0), Size(rest, average, average)]

    write = _average(views, lambda view: texts.write_request(view, ""), assumptions)
    improve = _average(views, lambda view: texts.improve_request(view, "", (), summary=""), assumptions) + payload
    alone = _average(views, lambda view: texts.improve_without_critic_request(view, "", ()), assumptions) + payload
    judge = _average(
        views,
        lambda view: texts.judge_request(view, "", (), summary="", score_names=settings.score_names),
        assumptions,
    )
    choose = _average(views, lambda view: texts.choose_request(view, "", ()), assumptions)
    later = Fraction(assumptions.later_rounds_share) * (settings.rounds - 1)
    found = [_Asked(role=GENERATOR, sizes=sizes(write, Fraction(1), k), output_tokens=reply, alike=k)]
    if Method.SELF_EVOLUTION in choices.methods:  # it never stops early
        found.append(_Asked(role=GENERATOR, sizes=sizes(alone, Fraction(settings.rounds - 1), k), output_tokens=reply))
    if Method.EVOSQL in choices.methods:
        critiques = _critiques(settings, later) * (1 + Fraction(assumptions.repaired_share))
        found += [
            _Asked(role=GENERATOR, sizes=sizes(improve, later, k), output_tokens=reply),
            _Asked(role=CRITIC, sizes=sizes(judge + whole, critiques, 1), output_tokens=critique),
        ]
    if Method.BEST_OF_K in choices.methods:
        found.append(_Asked(role=CRITIC, sizes=sizes(choose + whole, Fraction(1), 1), output_tokens=reply))
    return found


def _critiques(settings: Settings, later: Fraction) -> Fraction:
    """Of one question: of the first round, and of the later ones that are made."""
    if settings.critic_last_round:
        return 1 + later
    judged = settings.rounds - 1
    return Fraction(0) if judged == 0 else 1 + later * Fraction(judged - 1, judged)


def _average(views: Sequence[QuestionView], request: _Request, assumptions: BenchAssumptions) -> int:
    """Tokens of a request about a question, without candidates."""
    total = sum(conversation_tokens(request(view), ()) for view in views)
    return round(total / len(views)) + assumptions.schema_tokens
