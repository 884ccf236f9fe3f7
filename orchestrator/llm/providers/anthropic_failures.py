"""What goes wrong with Anthropic's Messages API, and what each of it means."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping

import anthropic
import httpx2

from orchestrator.llm.providers.anthropic_events import NotAReply
from orchestrator.llm.providers.anthropic_requests import NEEDED
from orchestrator.llm.providers.capabilities import OUTPUT_LIMIT, THOUGHTS_BACK, UNFIT_THOUGHTS
from orchestrator.llm.providers.retry_hints import retry_after
from orchestrator.llm.providers.shown_errors import shown_error
from orchestrator.llm.providers.wire import Failure, Fault, Secret

_ACCESS_KINDS = ("authentication_error", "permission_error", "billing_error", "not_found_error")
_STATUSES = {
    401: Fault.ACCESS,
    402: Fault.ACCESS,
    403: Fault.ACCESS,
    404: Fault.ACCESS,
    408: Fault.OUTAGE,
    409: Fault.OUTAGE,
    413: Fault.CONTEXT,
    429: Fault.RATE,
}
_STREAMED_KINDS = {
    "overloaded_error": Fault.OUTAGE,
    "api_error": Fault.OUTAGE,
    "timeout_error": Fault.OUTAGE,
    "rate_limit_error": Fault.RATE,
    "request_too_large": Fault.CONTEXT,
}
"""Errors that come in a stream have no status of their own."""
_NO_CREDIT = re.compile(
    r"credit balance|usage limits?\b|spend(ing)? limit|billing|organization has been disabled|on hold", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"(prompt|input|request|conversation) is too long|exceeds? (the )?(model's )?(maximum )?context"
    r"|context (window|limit|length)"
    r"|too many (total text bytes|input tokens)",
    re.IGNORECASE,
)
_OUTPUT_LIMIT = re.compile(r"max_tokens: \d+ > (\d{1,9}), which is the maximum")
_NOT_PERMITTED = re.compile(r"^([\w.-]+): Extra inputs are not permitted", re.IGNORECASE)
_REFUSAL = re.compile(
    r"deprecated for|not supported|n't supported|(does not|doesn't) support|unsupported|may only be set|must be unset"
    r"|or unset|cannot both be (specified|set)|not (available|allowed) (for|on|with)|incompatible with",
    re.IGNORECASE,
)
_FOREIGN_THOUGHT = re.compile(r"invalid `(signature|data)` in `(redacted_)?thinking`", re.IGNORECASE)
"""Thoughts are sealed for the model that had them, which may be another one by now under the same name of ours."""
_UNFIT_THOUGHTS = re.compile(
    r"expected `(redacted_)?thinking`.{0,60}but found|`?assistant`? message must start with a thinking block"
    r"|thinking is disabled, an? `?assistant`? message.{0,60}cannot contain",
    re.IGNORECASE | re.DOTALL,
)
"""A turn of the assistant has thoughts from its beginning, or none at all."""
_REFUSED_THOUGHTS = {_FOREIGN_THOUGHT: THOUGHTS_BACK, _UNFIT_THOUGHTS: UNFIT_THOUGHTS}
_NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "effort": "output_config",
    "output_config": "output_config",
    "thinking": "thinking",
    "cache_control": "cache_control",
    "service_tier": "service_tier",
    "tool_choice": "tool_choice",
    "stop_sequences": "stop_sequences",
    "speed": "speed",
    "inference_geo": "inference_geo",
}
"""Words for parameters in refusals, in the order in which they are looked for."""
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError, httpx2.WriteTimeout)
"""Before the whole request was there."""
_CANNOT_BE_SENT = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)


def failure_of(error: Exception, *, has_begun: bool, key: Secret | None) -> Failure:
    """What an exception means, as `Wire.failure` promises it."""
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error, has_begun=has_begun, key=key)
    cause = next((each for each in _chain(error) if isinstance(each, httpx2.HTTPError | httpx2.InvalidURL)), error)
    if not has_begun and isinstance(cause, _NOT_SENT):
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in _chain(error)):
            return Failure(fault=Fault.ACCESS, message=shown_error(f"its certificate is not accepted: {cause}", key))
        return Failure(fault=Fault.OUTAGE, message=shown_error(f"it cannot be reached: {_words(cause)}", key))
    if not has_begun and isinstance(cause, _CANNOT_BE_SENT):
        return Failure(fault=Fault.REQUEST, message=shown_error(f"it cannot be sent: {_words(cause)}", key))
    return Failure(fault=Fault.BROKEN, message=shown_error(_broken(cause, has_begun=has_begun), key), may_be_paid=True)


def _broken(cause: BaseException, *, has_begun: bool) -> str:
    if isinstance(cause, httpx2.TimeoutException):
        return "nothing came any more for too long" if has_begun else "the request was taken, and never answered"
    if isinstance(cause, NotAReply | httpx2.DecodingError):
        return f"what came is no whole reply: {cause}"
    begun = "after the reply had begun" if has_begun else "after the request was sent"
    return f"the connection broke {begun}: {_words(cause)}"


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def _of_status(error: anthropic.APIStatusError, *, has_begun: bool, key: Secret | None) -> Failure:
    said, kind = _said(error)
    is_streamed = error.response.is_success  # then the error came in the stream
    where = "in the stream" if is_streamed else f"HTTP {error.status_code}"
    fault = _streamed_fault(kind, said) if is_streamed else _fault(error, kind, said)
    parameter = None
    if fault is Fault.REQUEST and (parameter := refused_parameter(said)) is not None:
        fault = Fault.PARAMETER
    return Failure(
        fault=fault,
        message=shown_error(f"{where}{f' {kind}' if kind else ''}: {said}", key),
        retry_after=retry_after(error.response.headers, said if fault in (Fault.RATE, Fault.OUTAGE) else ""),
        parameter=parameter,
        may_be_paid=has_begun or is_streamed,
    )


def _said(error: anthropic.APIStatusError) -> tuple[str, str]:
    """Message and type of an error; whatever stands between may give a body of its own."""
    body = error.body
    inner = body.get("error") if isinstance(body, Mapping) else None
    if isinstance(inner, Mapping):
        message = inner.get("message")
        kind = inner.get("type")
        return str(message or error.message), kind if isinstance(kind, str) else ""
    if 300 <= error.status_code < 400:
        return f"it sends us to {error.response.headers.get('location', 'another address')}; give that as base_url", ""
    return (inner if isinstance(inner, str) else error.message) or "no reason given", ""


def _fault(error: anthropic.APIStatusError, kind: str, said: str) -> Fault:
    status = error.status_code
    if status < 400 or _is_without_credit(error.error_code, said, status):
        return Fault.ACCESS
    if status >= 500:
        return Fault.OUTAGE
    if (known := _STATUSES.get(status)) is not None:
        return known
    if kind in _ACCESS_KINDS:
        return Fault.ACCESS
    return Fault.CONTEXT if _TOO_LONG.search(said) else Fault.REQUEST


def _is_without_credit(code: str | None, said: str, status: int) -> bool:
    """A limit on money passes no sooner than somebody raises it, whichever status says so."""
    if code is not None and ("spend_limit" in code or "on_hold" in code):
        return True
    return status == 400 and _NO_CREDIT.search(said) is not None


def _streamed_fault(kind: str, said: str) -> Fault:
    if kind in _ACCESS_KINDS:
        return Fault.ACCESS
    if kind in _STREAMED_KINDS:
        return _STREAMED_KINDS[kind]
    if kind != "invalid_request_error":
        return Fault.BROKEN
    return Fault.CONTEXT if _TOO_LONG.search(said) else Fault.REQUEST


def refused_parameter(said: str) -> str | None:
    """The parameter that a refusal is about, where a request can do without it or with less of it."""
    if (most := _OUTPUT_LIMIT.search(said)) is not None:
        return f"{OUTPUT_LIMIT}{most.group(1)}"
    if (named := _NOT_PERMITTED.match(said)) is not None:
        path = named.group(1).split(".")
        name = "cache_control" if path[-1] == "cache_control" else path[0]
        return None if name in NEEDED or name == "max_tokens" else name
    for pattern, refused in _REFUSED_THOUGHTS.items():
        if pattern.search(said):
            return refused
    if not _REFUSAL.search(said):
        return None
    quoted = re.findall(r"[`'\"]([a-z_]+)[\w.]*[`'\"]", said)
    for name in (*quoted, *_NAMES):
        if name in _NAMES and re.search(rf"\b{name}\b", said):
            return _NAMES[name]
    return None
