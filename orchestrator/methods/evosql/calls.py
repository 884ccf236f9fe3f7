"""Model calls as the accounting sees them: what for, in which round, and at what cost; from a run's journal as well."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.conversation import Usage
from orchestrator.ports import Journal
from orchestrator.search.attempts import TOO_LONG
from orchestrator.search.reply_kinds import Outcomes, outcomes_of
from orchestrator.search.requests import reply_in

_KEY = re.compile(
    r"(?P<question>q/[^/]+)/"
    r"(?:(?P<elicit>elicit)|(?P<method>[^/]+)/(?:r(?P<round>\d+)/(?P<phase>aggregate|critic)|(?P<choose>choose)))"
    r"/request/(?P<number>\d+)"
)


class Phase(StrEnum):
    """What a model is asked for."""

    ELICIT = "elicit"
    """A first candidate; the first round belongs to all methods."""
    AGGREGATE = "aggregate"
    """A candidate made from remembered ones."""
    CRITIC = "critic"
    CHOOSE = "choose"
    """Best-of-K's choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One answered request."""

    phase: Phase
    round: int
    """From 0 on; of a choice, the last one there was."""
    usage: Usage


def request_key(question: str, method: str, phase: Phase, round_number: int, number: int) -> str:
    """The journal key of a request, for instance `q/17/evosql/r1/aggregate/request/0003`.

    Args:
        question: Its key, for instance `q/17`.
        method: What the calls are for; not used for the first round, which belongs to all methods.
        phase: Likewise.
        round_number: From 0 on.
        number: Of the request, from 1.
    """
    match phase:
        case Phase.ELICIT:
            path = "elicit"
        case Phase.CHOOSE:
            path = f"{method}/choose"
        case Phase.AGGREGATE | Phase.CRITIC:
            path = f"{method}/r{round_number}/{phase.value}"
    return f"{question}/{path}/request/{number:04d}"


def read_calls(journal: Journal) -> Mapping[str, Mapping[str, tuple[Call, ...]]]:
    """Every answered request of a run, in the order in which they were recorded.

    Returns:
        Question key to method to calls; the calls of the first round stand under the method `""`.

    Raises:
        RunStateError: A record is damaged.
    """
    found: dict[str, dict[str, list[Call]]] = {}
    for question, method, call in _recorded(journal):
        found.setdefault(question, {}).setdefault(method, []).append(call)
    return {
        question: {method: tuple(calls) for method, calls in methods.items()} for question, methods in found.items()
    }


def read_outcomes(journal: Journal) -> Outcomes:
    """What became of the requests for queries; no tool was offered with any of them.

    Raises:
        RunStateError: A record is damaged.
    """
    replies, refusals = [], []
    for key, record in journal.records("q/"):
        match = _KEY.fullmatch(key)
        if match is None or match["phase"] == Phase.CRITIC:
            continue
        reply = reply_in(key, record)
        if reply is None:
            refusals.append(str(record[TOO_LONG]))
        else:
            replies.append(reply)
    return outcomes_of(replies, refusals, ())


def _recorded(journal: Journal) -> Iterator[tuple[str, str, Call]]:
    for key, record in journal.records("q/"):
        match = _KEY.fullmatch(key)
        if match is None:
            continue
        reply = reply_in(key, record)
        if reply is None:
            continue  # its conversation was too long
        phase = Phase(match["elicit"] or match["phase"] or match["choose"])
        call = Call(phase=phase, round=int(match["round"] or 0), usage=reply.usage)
        yield match["question"], match["method"] or "", call
