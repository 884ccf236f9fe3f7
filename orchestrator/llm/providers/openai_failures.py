"""What goes wrong with OpenAI's chat completions, at OpenAI and elsewhere, and what each of it means."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx2
import openai

from orchestrator.llm.providers.openai_refusals import is_about_context, refused_parameter
from orchestrator.llm.providers.openai_stream import NotAReply
from orchestrator.llm.providers.retry_hints import retry_after
from orchestrator.llm.providers.shown_errors import shown_error
from orchestrator.llm.providers.wire import Failure, Fault, Secret

_NO_CREDIT = re.compile(
    r"insufficient.{0,12}(quota|balance|credit|fund)|exceeded.{0,12}quota|billing|out of credits|arrearage|overdue"
    r"|account.{0,20}(deactivated|suspended|not active)",
    re.IGNORECASE,
)
_NO_ACCESS = re.compile(
    r"(api.?key|token).{0,30}(invalid|not valid|expired|revoked|incorrect)|(invalid|incorrect|expired).{0,10}api.?key"
    r"|model.{0,80}(not (exist|found)|does not exist|decommissioned|deprecated and|retired)|no such model"
    r"|invalid model",
    re.IGNORECASE,
)
_ACCESS_CODES = frozenset({"model_not_found", "invalid_api_key", "model_decommissioned", "insufficient_quota"})
_OVERLOADED = re.compile(
    r"overload|unavailable|try again later|server.?error|internal error|timed? ?out", re.IGNORECASE
)
_STATUSES = {401: Fault.ACCESS, 402: Fault.ACCESS, 403: Fault.ACCESS, 404: Fault.ACCESS} | {
    405: Fault.ACCESS,
    408: Fault.OUTAGE,
    409: Fault.OUTAGE,
    425: Fault.OUTAGE,
    429: Fault.RATE,
    413: Fault.CONTEXT,
}
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
"""Before the request was there."""
_CANNOT_BE_SENT = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, UnicodeError)
_UNPAID_IN_STREAM = frozenset({Fault.PARAMETER, Fault.CONTEXT})
"""Refused before a single token came, whatever the status said; unless one came."""
_MASKED = re.compile(r"\S{0,64}\*{3,}\S{0,64}")
_MOST_TEXT = 4000
_TITLE = re.compile(r"<title>(.{1,200}?)</title>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """An error as a server words it."""

    text: str
    code: str = ""
    kind: str = ""
    param: str = ""
    number: int | None = None
    """A status in the body, where the response has none of its own."""


class ErrorInStream(openai.APIError):
    """An error that a server says after a success status."""

    def __init__(self, request: httpx2.Request, body: object, *, has_content: bool) -> None:
        """As it came.

        Args:
            request: That it answers.
            body: Of the event.
            has_content: Whether anything came before it that the server may bill.
        """
        super().__init__("an error in the stream", request, body=body)
        self.has_content = has_content


def failure_of(error: Exception, *, has_begun: bool, key: Secret | None) -> Failure:
    """What an exception means, as `Wire.failure` promises it."""
    if isinstance(error, openai.APIStatusError):
        return _of_response(error, key)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return _of_stream(error, key)
    chain = tuple(_chain(error))
    cause = next((each for each in chain if isinstance(each, httpx2.HTTPError | httpx2.InvalidURL)), chain[0])
    if not has_begun and isinstance(cause, _NOT_SENT):
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in chain):
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


def _of_response(error: openai.APIStatusError, key: Secret | None) -> Failure:
    """An error status: nothing is billed."""
    response = error.response
    if 300 <= error.status_code < 400:
        where = response.headers.get("location", "another address")
        said = f"HTTP {error.status_code}: it sends us to {where}; give that as base_url"
        return Failure(fault=Fault.ACCESS, message=shown_error(said, key))
    complaint = complaint_in(error.body)
    parameter = refused_parameter(complaint.text, complaint.param) if error.status_code in (400, 422) else None
    return Failure(
        fault=_fault(error.status_code, complaint, parameter),
        message=_shown(f"HTTP {error.status_code}", complaint, key),
        retry_after=retry_after(response.headers, complaint.text),
        parameter=parameter,
    )


def _of_stream(error: openai.APIError, key: Secret | None) -> Failure:
    """An error after a success status."""
    complaint = complaint_in(error.body)
    parameter = refused_parameter(complaint.text, complaint.param)
    fault = _fault(complaint.number or _guessed_status(complaint), complaint, parameter)
    return Failure(
        fault=fault,
        message=_shown("in the stream", complaint, key),
        retry_after=retry_after({}, complaint.text),
        parameter=parameter if fault is Fault.PARAMETER else None,
        may_be_paid=fault not in _UNPAID_IN_STREAM or has_content_before(error),
    )


def has_content_before(error: Exception) -> bool:
    """Whether anything came before an error that the server may bill."""
    return isinstance(error, ErrorInStream) and error.has_content


def _guessed_status(complaint: Complaint) -> int:
    kinds = f"{complaint.kind} {complaint.code}"
    if "rate_limit" in kinds:
        return 429
    if "invalid_request" in kinds or "BadRequest" in kinds:
        return 400
    return 500 if _OVERLOADED.search(f"{kinds} {complaint.text}") else 0


def _fault(status: int, complaint: Complaint, parameter: str | None) -> Fault:
    if complaint.code in _ACCESS_CODES or (status in (400, 403, 429) and _NO_CREDIT.search(complaint.text)):
        return Fault.ACCESS
    if status in (400, 422) and parameter is not None:
        return Fault.PARAMETER
    if status not in (401, 402, 403, 404) and is_about_context(complaint.text, f"{complaint.code} {complaint.kind}"):
        return Fault.CONTEXT
    return Fault.OUTAGE if status >= 500 else _STATUSES.get(status) or _other_fault(status, complaint)


def _other_fault(status: int, complaint: Complaint) -> Fault:
    if status < 400:
        return Fault.BROKEN
    return Fault.ACCESS if _NO_ACCESS.search(complaint.text) else Fault.REQUEST


def _shown(where: str, complaint: Complaint, key: Secret | None) -> str:
    kind = complaint.code or complaint.kind
    said = _MASKED.sub("***", complaint.text)
    return shown_error(f"{where}{f' {kind}' if kind else ''}: {said or 'no reason given'}", key)


def complaint_in(body: object) -> Complaint:
    """What a server says in an error body, in one of many forms."""
    if isinstance(body, str):
        title = _TITLE.search(body[:_MOST_TEXT])
        return Complaint(text=title[1] if title else body[:_MOST_TEXT])
    if isinstance(body, list) and body:
        body = body[0]  # as Gemini's server wraps it
    if not isinstance(body, Mapping):
        return Complaint(text="")
    inner = body.get("error")
    if isinstance(inner, Mapping):
        body = inner
    elif isinstance(inner, str):
        return Complaint(text=inner[:_MOST_TEXT])
    said = body.get("code")
    number = int(said) if isinstance(said, int) or (isinstance(said, str) and re.fullmatch(r"[1-5]\d\d", said)) else 0
    return Complaint(
        text=_message(body)[:_MOST_TEXT],
        code=_text(said) if not number else "",
        kind=_text(body.get("type")),
        param=_text(body.get("param")),
        number=number if 100 <= number < 600 else None,
    )


def _message(body: Mapping[str, object]) -> str:
    for name in ("message", "detail", "msg", "error_description"):
        value = body.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and isinstance(value[0], Mapping):  # FastAPI's list of what is wrong
            place = value[0].get("loc")
            path = ".".join(str(part) for part in place) if isinstance(place, list) else ""
            return f"{path}: {_text(value[0].get('msg'))}"
    return ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
