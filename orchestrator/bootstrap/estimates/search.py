"""What a search for programs (AgenticEvolve) will take: islands, each a conversation that resends itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.estimates.amounts import (
    Amounts,
    Line,
    Size,
    conversation,
    expected_amounts,
    most_amounts,
)
from orchestrator.bootstrap.estimates.assumptions import RunAssumptions, assumed, require_used
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.like import Measured
from orchestrator.bootstrap.estimates.like_search import like_search
from orchestrator.bootstrap.estimates.models import EstimatedModel, context_facts, estimated_models
from orchestrator.bootstrap.first_requests import first_conversation
from orchestrator.bootstrap.places import Places
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.tasks import TaskView
from orchestrator.evaluation.tasks import load_task
from orchestrator.llm.prices import price_table
from orchestrator.llm.tokens import conversation_tokens
from orchestrator.methods.agentic_evolve import Settings, texts

_REQUESTS_WITHOUT_ANALYSIS = 2.0


def estimate_search(
    places: Places,
    choices: Choices,
    settings: Mapping[str, Any],
    assignments: Sequence[str] = (),
    like: Measured | None = None,
) -> Estimate:
    """What `run` will take with these choices.

    Args:
        places: Of this invocation.
        choices: What would be asked for.
        settings: Fields of the method's settings; None stands for the task's default.
        assignments: Assumptions, each `NAME=VALUE`.
        like: A recorded run whose averages are used instead; None: the assumptions.

    Raises:
        InputError: There is no such task or model, or a value is out of its range.
    """
    task = load_task(places.task(choices.task))
    chosen = method_settings(task.spec, **settings)
    assumptions = assumed(RunAssumptions, assignments, _defaults(chosen))
    models = estimated_models(
        choices.model,
        ModelRole.AGENT,
        choices.access,
        price_table(),
        context_tokens=assumptions.context_tokens,
        recorded={} if like is None else like.contexts,
    )
    require_used(assignments, models)
    first = first_request_tokens(chosen, task.view)
    facts, notes = [*_facts(chosen, first), *context_facts(models)], list[str]()
    if like is not None:
        expected, measured, notes = like_search(like, chosen, model=choices.model, task=task.name, models=models)
        facts += measured
    else:
        expected = [_expected(one, chosen, assumptions, first) for one in models]
    requests = chosen.islands * chosen.requests_per_island
    return Estimate(
        method="run",
        subject=task.name,
        lines=tuple(
            Line(
                role=ModelRole.AGENT.value,
                model=one,
                expected=amounts,
                at_most=most_amounts(one, requests, output_limit=chosen.max_output_tokens),
            )
            for one, amounts in zip(models, expected, strict=True)
        ),
        assumptions=[] if like is not None else assumptions.stated(models),
        facts=facts,
        notes=notes,
        budget_usd=choices.budget_usd,
        budget_tokens=choices.budget_tokens,
        like=None if like is None else like.run_id,
    )


def _expected(model: EstimatedModel, settings: Settings, assumptions: RunAssumptions, first: int) -> Amounts:
    return expected_amounts(
        model,
        _sizes(settings, assumptions, model, first),
        output_tokens=min(assumptions.reply_tokens, settings.max_output_tokens),
        cached_share=assumptions.cached_share,
    )


def first_request_tokens(settings: Settings, task: TaskView) -> int:
    """Length of an island's first request, tools included; the initial program's metrics stand in it as zeros."""
    opened = first_conversation(settings, task)
    return conversation_tokens(opened, texts.tool_specs(settings, task))


def _facts(settings: Settings, first: int) -> list[str]:
    counts = (
        f"{settings.islands} islands of {settings.commits_per_island} commits and at most "
        f"{settings.requests_per_island} requests each, with at most {settings.max_output_tokens} tokens of output"
    )
    return [counts, f"the first request of an island has {first} tokens, counted from the task's own texts and program"]


def _defaults(settings: Settings) -> RunAssumptions:
    return RunAssumptions() if settings.analysis else RunAssumptions(requests_per_commit=_REQUESTS_WITHOUT_ANALYSIS)


def _sizes(settings: Settings, assumptions: RunAssumptions, model: EstimatedModel, first: int) -> list[Size]:
    """Of all requests of the run, if this model answered them all."""
    wanted = round(settings.commits_per_island * assumptions.requests_per_commit)
    one_island = conversation(
        min(max(wanted, 1), settings.requests_per_island),
        first=first,
        growth=assumptions.reply_tokens + assumptions.result_tokens,
        limit=round(settings.compaction_request * model.context_tokens),
        restart=first + assumptions.handoff_tokens,
    )
    return [Size(size.requests * settings.islands, size.tokens, size.seen) for size in one_island]
