"""What a recorded run took, in the place of assumptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from orchestrator.bootstrap.estimates.amounts import Amounts, shared
from orchestrator.bootstrap.estimates.models import EstimatedModel
from orchestrator.bootstrap.model_choices import NO_ACCESS, access_in_force
from orchestrator.bootstrap.runs import EVOLUTION, SEARCH, SQL_BENCH, find_run, header_of, in_words, kind_of
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import ModelAccess
from orchestrator.errors import InputError, RunStateError
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.ports import Journal
from orchestrator.search.spending import read_answered
from orchestrator.storage.runs import RunStore

_MADE = {
    SQL_BENCH: re.compile(r"q/[^/]+/outcome"),
    EVOLUTION: re.compile(r"it/\d+/(evolve/)?end|select/[^/]+"),
}
"""Keys of what a run has made."""
_UNITS = {
    SEARCH: "commits that were paid for",
    SQL_BENCH: "questions that are answered",
    EVOLUTION: "iterations that have ended",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a recorded run took; calls whose outcome nobody knows are not among it."""

    run_id: str
    header: Mapping[str, Any]
    """The record `run`."""
    access: ModelAccess
    """What holds for its models."""
    units: int
    """Commits, questions or iterations that it made, at least 1."""
    requests: Mapping[str, Usage]
    """Of every answered request, by its key, in the order in which they were recorded."""
    made: Mapping[str, Mapping[str, Any]]
    """Records of what it has made; of a search there are none."""

    @property
    def contexts(self) -> Mapping[str, int]:
        """The context of its models, by name, as far as it is recorded."""
        recorded = self.header.get("context_tokens", {})
        return recorded if isinstance(recorded, Mapping) else {str(self.header.get("model")): recorded}

    def models(self) -> Mapping[str, str]:
        """Its models, by role, as its command named them.

        Raises:
            RunStateError: Its record is of another version.
        """
        with self.read():
            choices = self.header["choices"]
            names = {
                role: choices[role] for role in ("model", "critic_model", "evolver", "answerer") if role in choices
            }
        return {role: name for role, name in names.items() if isinstance(name, str)}

    @contextmanager
    def read(self) -> Iterator[None]:
        """What a record of another shape raises in the block becomes an error that says so.

        Raises:
            RunStateError: So it did.
        """
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"the record of run {self.run_id} was made by another version, or is damaged; name another run"
            raise RunStateError(msg) from error


def read_measured(store: RunStore, name: str, kind: str) -> Measured:
    """What a run took.

    Args:
        store: Holds it.
        name: Of the run.
        kind: That it has to be of, from `bootstrap.runs`.

    Raises:
        InputError: It is of another kind, or it has made nothing to take an average of.
        RunStateError: There is no such run, or its journal is damaged.
    """
    run_id = find_run(store, name)
    with store.open(run_id, read_only=True) as journal:
        if (found := kind_of(journal)) != kind:
            msg = f"run {run_id} is {in_words(found)}, not {in_words(kind)}; name one of the kind that is estimated"
            raise InputError(msg)
        header = header_of(run_id, journal)
        made = _made(kind, journal)
        units = _units(kind, journal, made)
        if units == 0:
            msg = f"run {run_id} has no {_UNITS[kind]}, so there is no average; name another run, or leave out --like"
            raise InputError(msg)
        return Measured(
            run_id=run_id,
            header=header,
            access=access_in_force(journal, _access(header)),
            units=units,
            requests=dict(read_answered(journal.records())),
            made=made,
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any], *, scaled: frozenset[str]) -> Iterator[str]:
    """Settings that differ from the recorded run's and are in no figure, a sentence each.

    Args:
        before: Of the recorded run, as JSON, sections within each other.
        now: Likewise.
        scaled: Names that are in the figures, or that change nothing; a section with a dot and its star, `elo.*`.
    """
    ours, theirs = dict(_flat(now)), dict(_flat(before))
    for name, value in ours.items():
        is_scaled = name in scaled or f"{name.partition('.')[0]}.*" in scaled
        if not is_scaled and name in theirs and theirs[name] != value:
            yield f"setting {name} was {_word(theirs[name])} and is {_word(value)} now; no figure is scaled by that"


def other(what: str, before: object, now: object) -> Iterator[str]:
    """That something which no figure can be scaled by is not what it was."""
    if before != now:
        yield f"the recorded run's {what} was {before}, not {now}; what it took may tell little of this one"


def total(usages: Iterator[Usage]) -> Amounts:
    """Requests and what they took, without its price."""
    found = Amounts()
    for usage in usages:
        found += Amounts(requests=1, usage=replace(usage, usd=None))
    return found


def priced(usage: Usage, requests: Fraction, model: EstimatedModel) -> Amounts:
    """So many requests at this model's price, its share of them."""
    if requests <= 0:
        return Amounts()
    return shared(Amounts(requests=round(requests), usage=model.priced_together(usage, requests=requests)), model.share)


def _access(header: Mapping[str, Any]) -> ModelAccess:
    choices = header.get("choices")
    access = choices.get("access") if isinstance(choices, Mapping) else None
    return NO_ACCESS if access is None else ModelAccess.model_validate(access)


def _made(kind: str, journal: Journal) -> dict[str, Mapping[str, Any]]:
    pattern = _MADE.get(kind)
    return {} if pattern is None else {key: one for key, one in journal.records() if pattern.fullmatch(key)}


def _units(kind: str, journal: Journal, made: Mapping[str, Mapping[str, Any]]) -> int:
    if kind == SEARCH:
        return len(read_history(journal).paid)
    if kind == SQL_BENCH:
        return len(made)
    return sum(key.startswith("it/") and "/evolve/" not in key for key in made)


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _word(value: object) -> str:
    return "none" if value is None else str(value)
