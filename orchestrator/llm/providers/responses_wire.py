"""OpenAI's responses, through its SDK: the protocol in which its newest models take tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import openai

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec
from orchestrator.domain.model_access import ModelEntry
from orchestrator.llm.providers.capabilities import Capabilities
from orchestrator.llm.providers.open_line import Switchboard
from orchestrator.llm.providers.openai_failures import complaint_in, failure_of, has_content_before
from orchestrator.llm.providers.openai_wire import OpenAIConnection, OpenAIExchange, OpenAIWire, timeout_of
from orchestrator.llm.providers.responses_requests import parameters
from orchestrator.llm.providers.responses_stream import ResponseCollector, refusal_in
from orchestrator.llm.providers.wire import Failure, Fault, Secret


class ResponsesWire(OpenAIWire):
    """Speaks responses (`Wire`). Stateless and thread-safe.

    Its name is that of chat completions: native messages of either protocol are of the same provider, and each of the
    two leaves the other's aside.
    """

    def connect(
        self, entry: ModelEntry, key: Secret | None, *, connect_seconds: float, chunk_seconds: float
    ) -> ResponsesConnection:
        """A client for the server of an entry; sends nothing. The arguments are those of `Wire.connect`."""
        return ResponsesConnection(entry.url, key, timeout_of(connect_seconds, chunk_seconds))

    def parameters(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        samplings: Sequence[Sampling],
        *,
        entry: ModelEntry,
        account: str,
        capabilities: Capabilities,
    ) -> dict[str, Any]:
        """The body of a request. The arguments are those of `Wire.parameters`."""
        return parameters(conversation, tools, samplings, entry=entry, account=account, capabilities=capabilities)

    def failure(self, error: Exception, *, has_begun: bool, key: Secret | None) -> Failure:
        """What an exception means. The arguments are those of `Wire.failure`.

        Thoughts that the server cannot read any more, as after a change of the organisation, are those that `include`
        asks for: without it the conversation goes on.
        """
        found = failure_of(error, has_begun=has_begun, key=key)
        if not isinstance(error, openai.APIError) or found.fault not in (Fault.REQUEST, Fault.PARAMETER, Fault.BROKEN):
            return found
        complaint = complaint_in(error.body)
        if complaint.code != "invalid_encrypted_content" and "encrypted content" not in complaint.text.lower():
            return found
        return replace(found, fault=Fault.PARAMETER, parameter="include", may_be_paid=has_content_before(error))


class ResponsesConnection(OpenAIConnection):
    """The SDK's client for one server (`Connection`). Thread-safe."""

    def begin(self, parameters: Mapping[str, Any]) -> ResponsesExchange:
        """Prepare a streamed call; nothing is sent before the exchange is iterated."""
        return ResponsesExchange(self._client, self._switchboard, parameters)


class ResponsesExchange(OpenAIExchange):
    """One streamed call (`Exchange`)."""

    path = "/responses"

    def __init__(self, client: openai.OpenAI, switchboard: Switchboard, parameters: Mapping[str, Any]) -> None:
        """Sends nothing. The arguments are those of `OpenAIExchange`."""
        self._response = ResponseCollector(str(parameters.get("model", "")))
        super().__init__(client, switchboard, parameters, self._response)

    @property
    def _is_over(self) -> bool:
        """The last event is the end, whatever the server does with the connection then."""
        return self._response.is_full or self._response.has_ended

    def _take(self, event: object, response: httpx2.Response, *, is_error: bool) -> None:
        """Add an event; one that says why there is no reply is the error it says.

        Raises:
            openai.APIError: It is such an event.
            NotAReply: It is no event of this protocol.
        """
        if isinstance(event, Mapping):
            is_error = is_error or event.get("type") == "error"
            inner = event.get("response")
            said = inner if isinstance(inner, Mapping) else event
            if refusal_in(said) is not None:
                self._collector.take(event)
                return
            if isinstance(said.get("error"), Mapping):
                event = {"error": said["error"]}
        super()._take(event, response, is_error=is_error)
