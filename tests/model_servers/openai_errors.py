"""Error responses of OpenAI's protocol, in OpenAI's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An error response."""

    status: int
    body: Mapping[str, Any]


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """As OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def bad_request(message: str, *, param: str | None = None, code: str | None = None) -> Refusal:
    """400."""
    return Refusal(status=400, body=error_body(message, "invalid_request_error", param=param, code=code))


def unsupported_parameter(name: str, instead: str | None = None) -> Refusal:
    """A parameter that the model does not take."""
    way_out = f" Use '{instead}' instead." if instead else ""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{way_out}"
    return bad_request(message, param=name, code="unsupported_parameter")


def unsupported_value(name: str, value: object, only: object = 1) -> Refusal:
    """A parameter that the model takes with its default only."""
    message = (
        f"Unsupported value: '{name}' does not support {value} with this model. "
        f"Only the default ({only}) value is supported."
    )
    return bad_request(message, param=name, code="unsupported_value")


def unsupported_role(index: int, role: str) -> Refusal:
    """A role that the model does not take."""
    message = f"Unsupported value: 'messages[{index}].role' does not support '{role}' with this model."
    return bad_request(message, param=f"messages[{index}].role", code="unsupported_value")


def context_length_exceeded(limit: int, used: int) -> Refusal:
    """A conversation that does not fit."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens. "
        "Please reduce the length of the messages."
    )
    return bad_request(message, param="messages", code="context_length_exceeded")


def incorrect_key(key: str) -> Refusal:
    """401; OpenAI shows the beginning and the end of what it was given."""
    if not key:
        message = (
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
            "auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
        return Refusal(status=401, body=error_body(message, "invalid_request_error"))
    shown = f"{key[:8]}{'*' * max(0, len(key) - 12)}{key[-4:]}"
    message = (
        f"Incorrect API key provided: {shown}. "
        "You can find your API key at https://platform.openai.com/account/api-keys."
    )
    return Refusal(status=401, body=error_body(message, "invalid_request_error", code="invalid_api_key"))


def model_not_found(model: str) -> Refusal:
    """404."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal(status=404, body=error_body(message, "invalid_request_error", code="model_not_found"))


INSUFFICIENT_QUOTA = error_body(
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
    "insufficient_quota",
    code="insufficient_quota",
)
"""Of a 429 that no waiting helps."""
RATE_LIMIT = error_body(
    "Rate limit reached for test-model in organization org-test on tokens per min (TPM): Limit 30000, Used 29000, "
    "Requested 3000. Please try again in 1.2s. Visit https://platform.openai.com/account/rate-limits to learn more.",
    "tokens",
    code="rate_limit_exceeded",
)


def usual_body(status: int, model: str) -> Mapping[str, Any]:
    """What OpenAI says with a status."""
    if status == 404:
        return model_not_found(model).body
    if status == 429:
        return RATE_LIMIT
    message, kind, code = _USUAL.get(status, (f"The server said {status}.", "server_error", None))
    return error_body(message, kind, code=code)


_USUAL: dict[int, tuple[str, str, str | None]] = {
    400: ("We could not parse the JSON body of your request.", "invalid_request_error", None),
    401: ("Your authentication token has been revoked.", "invalid_request_error", "token_revoked"),
    403: (
        "Country, region, or territory not supported",
        "request_forbidden",
        "unsupported_country_region_territory",
    ),
    500: (
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        None,
    ),
    503: (
        "The engine is currently overloaded, please try again later.",
        "service_unavailable_error",
        "service_unavailable",
    ),
}
