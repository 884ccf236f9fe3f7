"""The first request of a search: whether it leaves a model any room can be known before any work."""

from __future__ import annotations

import math

from orchestrator.domain.conversation import Conversation, UserMessage
from orchestrator.domain.tasks import TaskView
from orchestrator.errors import InputError
from orchestrator.methods.agentic_evolve import Settings, texts
from orchestrator.methods.agentic_evolve.entries import INITIAL
from orchestrator.ports import LanguageModel


def first_conversation(settings: Settings, task: TaskView) -> Conversation:
    """What an island's first request says; the initial program's metrics, not known yet, stand in it as zeros."""
    budget = {"commits_left": settings.commits_per_island, "requests_left": settings.requests_per_island}
    if settings.analysis:
        budget["analyses_left"] = settings.analyses_per_commit
    metrics = dict.fromkeys((task.fitness, *task.features), 0.0)
    facts = {
        "initial": {"id": INITIAL, "metrics": metrics},
        "island": 0,
        "islands": settings.islands,
        "budget": budget,
    }
    message = UserMessage(text=texts.first_message(task.initial, facts))
    return Conversation(system=texts.system_prompt(settings, task), messages=(message,))


def require_room(model: LanguageModel, settings: Settings, task: TaskView) -> None:
    """See that a search can make its first request at all.

    Raises:
        InputError: The model's context is too small; the message has the size that would do.
    """
    tokens = model.count_tokens(first_conversation(settings, task), texts.tool_specs(settings, task))
    if tokens / model.context_tokens < settings.compaction_force:
        return
    msg = (
        f"the first request on task {task.name!r} has {tokens} tokens, and a conversation may fill "
        f"{100 * settings.compaction_force:g} % of the context of {model.name!r}, which has {model.context_tokens}: "
        f"no request could be made; ask a model whose context has over {math.ceil(tokens / settings.compaction_force)} "
        "tokens, or say in a --models file what it really takes (`context_tokens`)"
    )
    raise InputError(msg)
