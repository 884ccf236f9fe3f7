"""What a model that answers questions knows of a database: the package's analysis of it, and its instructions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.conversation import Conversation, UserMessage
from orchestrator.methods.robophd.answering import texts
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.methods.robophd.answering.requests import MIN_REPLY_TOKENS
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.settings import AnswerSettings
from orchestrator.ports import LanguageModel


class Source(StrEnum):
    """Who made an analysis."""

    TOOL = "tool"
    HYBRID = "hybrid"
    """A model with read-only queries, since the tool failed."""
    NONE = "none"
    """Nobody: the tool failed, and no model made up for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """One package on one database, as it stands before every question."""

    package: str
    """Digest."""
    database: str
    """Id."""
    source: Source
    analysis: str | None
    """Untrusted; None: there is none."""
    instructions: str
    """Untrusted."""
    analysis_tokens: int
    """Of the analysis alone, in the model's tokens; 0: there is none."""
    tokens: int
    """Of the system message."""
    is_over_budget: bool
    """Whether it is too long already without a question, so that none can be answered."""
    system: str
    """The system message: fixed words, the analysis and the instructions."""


def brief(
    context: AnswerContext, package: AgentPackage, *, database: str, source: Source, analysis: str | None
) -> Briefing:
    """Put together what there is; nothing is asked.

    Args:
        context: Its model counts the tokens.
        package: Untrusted.
        database: Id.
        source: Who made the analysis.
        analysis: Untrusted; None: there is none.
    """
    system = texts.system_message(analysis, package.instructions)
    tokens = text_tokens(context.model, system)
    return Briefing(
        package=package.digest,
        database=database,
        source=source,
        analysis=analysis,
        instructions=package.instructions,
        analysis_tokens=0 if analysis is None else text_tokens(context.model, analysis),
        tokens=tokens,
        is_over_budget=_is_over(tokens, context.model, context.settings),
        system=system,
    )


def over_budget(question: QuestionView, briefing: Briefing, *, model: LanguageModel, settings: AnswerSettings) -> bool:
    """Whether analysis, instructions, question and evidence are over the token budget, or leave no room for a reply.

    Args:
        question: To be answered.
        briefing: Of its database.
        model: Counts the tokens.
        settings: With the budget.
    """
    request = texts.question_request(briefing.system, question)
    return _is_over(model.count_tokens(request, ()), model, settings)


def text_tokens(model: LanguageModel, text: str) -> int:
    """Length of a text as a system message, in the model's tokens."""
    return model.count_tokens(Conversation(system=text, messages=(UserMessage(text=""),)), ())


def _is_over(tokens: int, model: LanguageModel, settings: AnswerSettings) -> bool:
    return tokens > settings.token_budget or tokens > model.context_tokens - MIN_REPLY_TOKENS
