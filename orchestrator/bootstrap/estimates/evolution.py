"""What an evolution of packages (RoboPhD) will take: conversations of the evolver, and answers to questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

from orchestrator.bootstrap.estimates.amounts import (
    Amounts,
    Line,
    Size,
    conversation,
    expected_amounts,
    most_amounts,
)
from orchestrator.bootstrap.estimates.assumptions import EvolveAssumptions, assumed, require_used
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.like import Measured
from orchestrator.bootstrap.estimates.like_evolution import Course, LikeEvolution
from orchestrator.bootstrap.estimates.models import EstimatedModel, context_facts, estimated_models
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.bootstrap.robophd.data import data_view, load_evolve_data
from orchestrator.domain.model_access import ModelRole
from orchestrator.llm.prices import price_table
from orchestrator.llm.tokens import conversation_tokens
from orchestrator.methods.robophd.answering.texts import question_request
from orchestrator.methods.robophd.questions import DataView
from orchestrator.methods.robophd.schedule import plan_iteration
from orchestrator.methods.robophd.settings import Settings

EVOLVER, ANSWERER, HYBRID = ModelRole.EVOLVER.value, ModelRole.ANSWERER.value, "hybrid"


def estimate_evolution(
    choices: EvolveChoices,
    settings: Settings,
    assignments: Sequence[str] = (),
    like: Measured | None = None,
) -> Estimate:
    """What `sql evolve` will take with these choices; every question is taken for one that can be evaluated.

    Args:
        choices: What would be asked for.
        settings: Of the method.
        assignments: Assumptions, each `NAME=VALUE`.
        like: A recorded evolution whose averages are used instead; None: the assumptions.

    Raises:
        InputError: Data or model are not there, or a value is out of its range.
    """
    data = load_evolve_data(choices)
    view = data_view(data.questions, data.split(settings.seed, choices.shares))
    assumptions = assumed(EvolveAssumptions, assignments)
    course = course_of(settings, view, packages=1 + len(choices.packages))
    evolver, answerer = _models(choices, assumptions, like)
    require_used(assignments, [evolver, answerer])
    measured = None if like is None else LikeEvolution(like, choices, settings, course)
    facts = [*_facts(settings, course), *context_facts([evolver, answerer])]
    if measured is None:
        expected = _expected(settings, course, view, assumptions, evolver, answerer)
    else:
        expected = {
            EVOLVER: measured.evolver(evolver),
            ANSWERER: measured.answerer(answerer),
            HYBRID: measured.hybrid(answerer),
        }
        facts += measured.facts()
    lines = tuple(
        Line(role=role, model=evolver if role == EVOLVER else answerer, expected=expected[role], at_most=most)
        for role, most in _ceilings(settings, course, evolver, answerer).items()
    )
    return Estimate(
        method="sql evolve",
        subject=", ".join(data.names),
        lines=tuple(line for line in lines if line.at_most.requests),
        assumptions=[] if like is not None else assumptions.stated([evolver, answerer]),
        facts=facts,
        notes=[] if measured is None else list(measured.notes()),
        budget_usd=choices.budget.usd,
        budget_tokens=choices.budget.tokens,
        like=None if like is None else like.run_id,
    )


def _models(
    choices: EvolveChoices, assumptions: EvolveAssumptions, like: Measured | None
) -> tuple[EstimatedModel, EstimatedModel]:
    """Evolver and answerer."""
    table, recorded = price_table(), {} if like is None else like.contexts
    pairs = ((choices.evolver, ModelRole.EVOLVER), (choices.answerer, ModelRole.ANSWERER))
    (evolver,), (answerer,) = (
        estimated_models(
            name, role, choices.access, table, context_tokens=assumptions.context_tokens, recorded=recorded
        )
        for name, role in pairs
    )
    return evolver, answerer


def _facts(settings: Settings, course: Course) -> list[str]:
    counts = (
        f"{settings.iterations} iterations, of which {course.evolutions} make a package; {course.contest_answers} "
        f"answers in contests, {course.focus_answers} in Deep Focus and {course.select_answers} for the selection"
    )
    return [counts, "rounds and samples are those that the seed draws; what `evolvarium final` takes comes on top"]


def course_of(settings: Settings, data: DataView, *, packages: int) -> Course:
    """The iterations that a seed draws.

    Args:
        settings: Of the method.
        data: Questions by database.
        packages: That take part from the beginning, from 1.
    """
    there, evolutions, contests, focus, analyses = packages, 0, 0, 0, 0
    tested: list[tuple[int, int]] = []
    for iteration in range(1, settings.iterations + 1):
        plan = plan_iteration(settings, data.evolve, iteration)
        if plan.strategy is not None:
            evolutions += 1
            there += 1
            rounds = tested[-settings.evolver.deep_focus :] if settings.evolver.deep_focus else []
            focus += 2 * sum(questions for questions, _ in rounds)
            analyses += 2 * sum(databases for _, databases in rounds)
        questions, databases = sum(map(len, plan.sample.values())), len(plan.sample)
        slots = min(plan.slots, there)
        contests += slots * questions
        analyses += slots * databases
        tested.append((questions, databases))
    select = sum(map(len, data.select.values()))
    return Course(
        evolutions=evolutions,
        contest_answers=contests,
        focus_answers=focus,
        select_answers=there * select,
        analyses=analyses + there * len(data.select),
    )


def _ceilings(
    settings: Settings, course: Course, evolver: EstimatedModel, answerer: EstimatedModel
) -> Mapping[str, Amounts]:
    answers, of_evolver = settings.answers, settings.evolver
    return {
        EVOLVER: most_amounts(
            evolver, course.evolutions * of_evolver.requests, output_limit=of_evolver.max_output_tokens
        ),
        ANSWERER: most_amounts(
            answerer, course.answers * (1 + answers.corrections), output_limit=answers.max_output_tokens
        ),
        HYBRID: most_amounts(
            answerer, course.analyses * answers.hybrid_requests, output_limit=answers.max_output_tokens
        ),
    }


def _expected(
    settings: Settings,
    course: Course,
    data: DataView,
    assumptions: EvolveAssumptions,
    evolver: EstimatedModel,
    answerer: EstimatedModel,
) -> Mapping[str, Amounts]:
    answers = settings.answers
    reply = min(assumptions.reply_tokens, answers.max_output_tokens)
    fresh = course.answers - round(course.contest_answers * assumptions.answered_before_share)
    requests = min(round(fresh * Fraction(assumptions.requests_per_answer)), course.answers * (1 + answers.corrections))
    size = assumptions.analysis_tokens + _question_tokens(data)
    per_analysis = min(ceil(assumptions.hybrid_requests), answers.hybrid_requests)
    analysed = round(course.analyses * assumptions.hybrid_share)
    return {
        EVOLVER: _evolver(settings, course, assumptions, evolver),
        ANSWERER: expected_amounts(
            answerer,
            [Size(requests, size, assumptions.analysis_tokens)],
            output_tokens=reply,
            cached_share=assumptions.cached_share,
        ),
        HYBRID: expected_amounts(
            answerer,
            [
                Size(one.requests * analysed, one.tokens, one.seen)
                for one in _conversation(per_analysis, assumptions, answerer, assumptions.analysis_tokens)
            ],
            output_tokens=reply,
            cached_share=assumptions.evolver_cached_share,
        ),
    }


def _evolver(settings: Settings, course: Course, assumptions: EvolveAssumptions, model: EstimatedModel) -> Amounts:
    requests = min(round(assumptions.evolver_requests), settings.evolver.requests)
    return expected_amounts(
        model,
        [
            Size(one.requests * course.evolutions, one.tokens, one.seen)
            for one in _conversation(max(requests, 1), assumptions, model, assumptions.opening_tokens)
        ],
        output_tokens=min(assumptions.evolver_reply_tokens, settings.evolver.max_output_tokens),
        cached_share=assumptions.evolver_cached_share,
    )


def _conversation(requests: int, assumptions: EvolveAssumptions, model: EstimatedModel, first: int) -> list[Size]:
    """One that ends where the model's context is full, since nothing is compacted here."""
    growth = assumptions.evolver_reply_tokens + assumptions.result_tokens
    room = max(1, -(-(model.context_tokens - first) // growth))
    return list(
        conversation(min(requests, room), first=first, growth=growth, limit=model.context_tokens, restart=first)
    )


def _question_tokens(data: DataView) -> int:
    """Of an average question as it is asked, without what a package says of its database."""
    views = [view for part in (data.evolve, data.select) for views in part.values() for view in views]
    return round(sum(conversation_tokens(question_request("", view), ()) for view in views) / len(views))
