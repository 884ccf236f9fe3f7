"""A model that answers as a recorded run's model did."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from orchestrator.domain.conversation import AssistantMessage, Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.records import request_digest
from orchestrator.errors import ContextTooLong, ModelError, RunStateError
from orchestrator.llm.tokens import conversation_tokens
from orchestrator.ports import Journal
from orchestrator.search.attempts import TOO_LONG
from orchestrator.search.requests import reply_in
from orchestrator.search.turns import said

CountTokens = Callable[[Conversation, Sequence[ToolSpec]], int]
_UNRECORDED = Usage(input_tokens=10**15, usd=Decimal(10**12))
_REQUEST = re.compile(r"(?P<thread>.*request)/(?P<number>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    key: str
    digest: str
    reply: Reply | None
    """None: the conversation was too long for the model."""
    said: str
    """By its provider in that case."""


def _recorded(key: str, record: Mapping[str, Any]) -> _Recorded:
    digest = record.get("conversation")
    if not isinstance(digest, str):
        msg = f"the record of {key!r} is damaged: it names no conversation; restore the run from a copy"
        raise RunStateError(msg)
    return _Recorded(key=key, digest=digest, reply=reply_in(key, record), said=str(record.get(TOO_LONG, "")))


class ReplayModel:
    """A `LanguageModel` that finds a request by its digest among a journal's `iN/request/NNNN` records."""

    def __init__(
        self, journal: Journal, *, recorded: str, context_tokens: int, count: CountTokens = conversation_tokens
    ) -> None:
        """Read all recorded replies.

        Args:
            journal: Of the recorded run.
            recorded: Name of the model that was recorded.
            context_tokens: Of that model, so that conversations are compacted where they were.
            count: How that model counts: what a reply may be long depends on it, and so does every request.

        Raises:
            RunStateError: The journal holds no request, or a record is damaged.
        """
        self._recorded = recorded
        self._context_tokens = context_tokens
        self._count = count
        requests = [_recorded(key, record) for key, record in journal.records() if _REQUEST.fullmatch(key)]
        if not requests:
            msg = f"the journal holds no request to {recorded!r}; replay a run that made some"
            raise RunStateError(msg)
        self._by_digest = {recorded.digest: recorded for recorded in requests}
        self._by_key = {recorded.key: recorded for recorded in requests}

    @property
    def name(self) -> str:
        """For records."""
        return f"replay/{self._recorded}"

    @property
    def context_tokens(self) -> int:
        """As given."""
        return self._context_tokens

    @property
    def is_repeatable(self) -> bool:
        """Always: it reads."""
        return True

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """As the recorded model counts."""
        return self._count(conversation, tools)

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """What the recorded reply used; nothing where there was none; for an unknown request, more than any ceiling.

        A run that a ceiling ended has no record of the request that was too much for it: where there is a ceiling, the
        replay ends there too, and elsewhere `complete` says what is missing.
        """
        found = self._by_digest.get(request_digest(conversation, tools, sampling))
        if found is None:
            return _UNRECORDED
        return Usage() if found.reply is None else found.reply.usage

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """The recorded reply, with its usage.

        Raises:
            ContextTooLong: The conversation was too long for the recorded model.
            ModelError: The request is not in the recording; the message names what differs as far as records tell.
        """
        digest = request_digest(conversation, tools, sampling)
        found = self._by_digest.get(digest)
        if found is None:
            msg = f"request {digest[:19]} is not among the {len(self._by_key)} recorded of {self._recorded!r}: "
            raise ModelError(msg + self._difference(conversation, tools, sampling))
        if found.reply is None:
            raise ContextTooLong(found.said)
        return found.reply

    def _difference(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> str:
        """Where the conversation leaves the recording, judged by the model's own messages in it."""
        spoken = [message for message in conversation.messages if isinstance(message, AssistantMessage)]
        request = (
            f"the tools ({', '.join(tool.name for tool in tools) or 'none'}) or the sampling (seed {sampling.seed}, "
            f"max_output_tokens {sampling.max_output_tokens}, temperature {sampling.temperature})"
        )
        if not spoken:
            return f"no recorded conversation begins like this; the system prompt, the first message, {request} differ"
        after = [one for one in self._by_key.values() if one.reply is not None and _is_said(one.reply, spoken[-1])]
        if not after:
            position = len(conversation.messages) - 1 - list(reversed(conversation.messages)).index(spoken[-1])
            return (
                f"message {position} is the model's, but no recorded reply; an earlier request was answered otherwise"
            )
        following = _next_key(after[-1].key)
        if following not in self._by_key:
            return f"it follows {after[-1].key}, after which the recording has no request; the recorded run ended there"
        return f"it follows {after[-1].key}, but {following} has other answers to its tool calls, or {request} differ"


def _is_said(reply: Reply, message: AssistantMessage) -> bool:
    """Whether a message of a conversation is this reply, as it came or as conversations without tools go on with it."""
    return message in (reply.message, said(reply.message))


def _next_key(key: str) -> str:
    match = _REQUEST.fullmatch(key)
    if match is None:
        msg = f"{key!r} is no request's key"
        raise ValueError(msg)
    return f"{match['thread']}/{int(match['number']) + 1:0{len(match['number'])}d}"
