"""Errors of the Messages API, in the provider's bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.model_servers.base import Responder

KINDS = {
    400: ("invalid_request_error", "Invalid request."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not Found"),
    408: ("timeout_error", "Request timed out."),
    409: ("conflict_error", "The request conflicts with another one."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit of 50 requests per minute."),
    504: ("timeout_error", "Request timed out."),
    529: ("overloaded_error", "Overloaded"),
}
"""Error type and message of each status; any other is an `api_error`."""


def error_body(status: int, message: str | None = None) -> dict[str, Any]:
    """The provider's body for a status."""
    kind, usual = KINDS.get(status, ("api_error", "Internal server error"))
    return {"type": "error", "error": {"type": kind, "message": message or usual}, "request_id": "req_011CTestTest"}


def error_event(status: int, message: str | None = None) -> bytes:
    """What ends a stream when something goes wrong in it; for `Trouble.raw`."""
    body = error_body(status, message)
    return f"event: error\ndata: {json.dumps(body)}\n\n".encode()


def answer_with_an_error(
    status: int, body: Mapping[str, Any] | str | None, respond: Responder, headers: Mapping[str, str]
) -> None:
    """The usual body and headers, where the script has none."""
    usual = {"retry-after": "1"} if status == 429 else {}
    headers = {**usual, **{name.lower(): value for name, value in headers.items()}}
    if isinstance(body, str):
        respond.whole(status, body.encode(), "text/html", headers)
    else:
        respond.json(status, error_body(status) if body is None else body, headers)
