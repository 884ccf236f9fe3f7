"""Where a tool failed: a model analyses the database itself, with tools that only read."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.domain.conversation import AssistantMessage, Conversation, StopReason, ToolMessage, Usage
from orchestrator.methods.robophd.answering import texts
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.methods.robophd.answering.hybrid_tools import TOOLS, ReadOnlyTools
from orchestrator.methods.robophd.answering.requests import NumberedRequests
from orchestrator.ports import Database
from orchestrator.search.streams import derive_seed
from orchestrator.search.turns import noted

HYBRID_ROLE = "hybrid"
"""Whose spending it is, in the ledger."""
_NEARLY_FULL = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridAnalysis:
    """What a model wrote about a database."""

    text: str | None
    """Digest of the blob with it, UTF-8; None: it came to no analysis within its requests, or the model's context."""
    is_cut: bool = False
    """Whether it was too long."""
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    """Of all requests together, as the ledger was charged; lost calls are not in it."""


def investigate(context: AnswerContext, key: str, package: str, database: Database, *, failure: str) -> HybridAnalysis:
    """Let the model look at a database until it says what it found; what it is told and shown is recorded.

    Args:
        context: Of the process.
        key: Of the journal; requests and tools' results stand below it.
        package: Digest of the package whose tool failed.
        database: In the predicted domain.
        failure: What became of the tool, in words; untrusted.

    Raises:
        EvolvariumError: As model requests and `ports.Database`; what was recorded stays.
    """
    requests = NumberedRequests(
        context,
        key,
        role=HYBRID_ROLE,
        seed=lambda number: derive_seed(context.seed, "hybrid", package, database.name, number),
        tools=TOOLS,
    )
    text = _conversed(context, key, database, requests, texts.analysis_request(failure, context.settings))
    kept = text[: context.settings.hybrid_characters]
    return HybridAnalysis(
        text=context.steps.journal.put_blob(kept.encode("utf-8")) if kept else None,
        is_cut=len(kept) < len(text),
        requests=requests.made,
        usage=requests.usage,
    )


def _conversed(
    context: AnswerContext, key: str, database: Database, requests: NumberedRequests, conversation: Conversation
) -> str:
    """The text of the first message without tool calls; empty: there was none, or the model refused."""
    limit = context.settings.hybrid_requests
    while requests.made < limit:
        reply = requests.ask(conversation, context.settings.temperature(0))
        if reply is None:
            return ""
        if not reply.message.tool_calls:
            return "" if reply.stop is StopReason.REFUSAL else reply.message.text.strip()
        if requests.made == limit:
            return ""  # nobody would read what the tools return
        tools = ReadOnlyTools(context, database, key=f"{key}/call/{requests.made:04d}")
        results = _results(tools, reply.message)
        if reply.stop is StopReason.LENGTH:
            results = noted(results, texts.CUT_OFF)
        answered = conversation.plus(reply.message, results)
        is_nearly_full = requests.tokens(answered) > _NEARLY_FULL * context.model.context_tokens
        if requests.made == limit - 1 or is_nearly_full:
            answered = conversation.plus(reply.message, noted(results, texts.LAST_CALL))
        conversation = answered
    return ""


def _results(tools: ReadOnlyTools, message: AssistantMessage) -> ToolMessage:
    return ToolMessage(results=tuple(tools.execute(number, call) for number, call in enumerate(message.tool_calls, 1)))
