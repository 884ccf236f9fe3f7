"""How much of a server's answer is read at all, whatever it sends: more would only cost memory and time."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

import httpx2

MAX_ERROR_BYTES = 64 << 10
"""Of what comes with an error status; the rest is cut off."""
MAX_LIST_BYTES = 8 << 20
"""Of what is asked without cost, as a list of models."""
MAX_VALUES = 250_000
"""Of one JSON document: small values take a hundred times the memory of their text."""
_ERROR_SECONDS = 5.0
"""For the words of an error to come; the status says the most of it."""


def bound_body(response: httpx2.Response) -> None:
    """Have only so much of an answer read; a response hook of the client.

    The words of an error are cut off where they are too long, take too long or break off: its status holds all the
    same. Replies are bounded by those who read them.

    Raises:
        httpx2.DecodingError: It is compressed, although nobody asked for that: a small one may be a huge one.
    """
    is_compressed = response.headers.get("content-encoding", "").strip().lower() not in ("", "identity")
    if response.is_success and is_compressed:
        msg = "it is compressed (Content-Encoding), which was not asked for"
        raise httpx2.DecodingError(msg, request=response.request)
    whole = response.stream
    if not isinstance(whole, httpx2.SyncByteStream) or (response.is_success and response.request.method != "GET"):
        return
    limits = response.request.extensions.get("timeout", {})
    if response.is_success:
        response.stream = _Bounded(whole, response.request, limits.get("read"))
        return
    if is_compressed:
        del response.headers["content-encoding"]
    limits["read"] = min(limits.get("read") or _ERROR_SECONDS, _ERROR_SECONDS)
    response.stream = _Cut(whole, 0 if is_compressed else MAX_ERROR_BYTES)


class _Cut(httpx2.SyncByteStream):
    """The beginning of a body, which ends where anything is wrong with the rest."""

    def __init__(self, whole: httpx2.SyncByteStream, most: int) -> None:
        self._whole = whole
        self._left = most
        self._end = time.monotonic() + _ERROR_SECONDS

    def __iter__(self) -> Iterator[bytes]:
        chunks = iter(self._whole)
        while self._left > 0 and time.monotonic() < self._end:
            try:
                chunk = next(chunks, b"")
            except httpx2.TransportError:
                return
            if not chunk:
                return
            yield chunk[: self._left]
            self._left -= len(chunk)

    def close(self) -> None:
        with contextlib.suppress(httpx2.TransportError):
            self._whole.close()


class _Bounded(httpx2.SyncByteStream):
    """A body that may be no larger than a list, and take no longer than its request allows for one piece."""

    def __init__(self, whole: httpx2.SyncByteStream, request: httpx2.Request, seconds: float | None) -> None:
        self._whole = whole
        self._request = request
        self._end = None if seconds is None else time.monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._whole:
            size += len(chunk)
            if size > MAX_LIST_BYTES:
                msg = f"over {MAX_LIST_BYTES} bytes in one piece"
                raise httpx2.DecodingError(msg, request=self._request)
            if self._end is not None and time.monotonic() > self._end:
                msg = "it takes too long"
                raise httpx2.ReadTimeout(msg, request=self._request)
            yield chunk

    def close(self) -> None:
        self._whole.close()


def parsed_json(content: bytes) -> object:
    """JSON of at most `MAX_VALUES` values.

    Raises:
        ValueError: It is none, or has more; or it is nested too deep.
    """
    if content.count(b",") + content.count(b"[") + content.count(b"{") > MAX_VALUES and _has_too_many(content):
        msg = f"over {MAX_VALUES} values"
        raise ValueError(msg)
    try:
        return json.loads(content)
    except RecursionError:
        msg = "nested too deep"
    raise ValueError(msg)


def _has_too_many(content: bytes) -> bool:
    """Whether there are too many values, not counting what looks like some within a text."""
    plain = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * MAX_VALUES:
        return True
    between = plain.split(b'"')[::2]
    return sum(part.count(b",") + part.count(b"[") + part.count(b"{") for part in between) > MAX_VALUES
