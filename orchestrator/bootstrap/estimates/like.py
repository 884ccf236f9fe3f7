"""The averages of a recorded run, in the place of assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from orchestrator.bootstrap.estimates.amounts import Amounts, Line, shared, times
from orchestrator.bootstrap.estimates.models import EstimatedModel
from orchestrator.bootstrap.runs import EVOLUTION, SEARCH, SQL_BENCH, find_run, in_words, kind_of
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.errors import InputError
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.ports import Journal
from orchestrator.storage.runs import RunStore

_OUTCOME = "/outcome"
_END = "/end"
_UNITS = {
    SEARCH: ("commits that were paid for", "commit"),
    SQL_BENCH: ("questions that are answered", "question"),
    EVOLUTION: ("iterations that have ended", "iteration"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a recorded run took; calls whose outcome nobody knows are not among it."""

    run_id: str
    units: int
    """Commits, questions or iterations that it made, at least 1."""
    unit: str
    """What they are, one of them."""
    roles: Mapping[str, Amounts]
    """Of all models and islands."""


def read_measured(store: RunStore, name: str, kind: str) -> Measured:
    """The averages of a run.

    Args:
        store: Holds it.
        name: Of the run.
        kind: That it has to be of, from `bootstrap.runs`.

    Raises:
        InputError: There is no such run, it is of another kind, or it has made nothing to take an average of.
    """
    run_id = find_run(store, name)
    with store.open(run_id, read_only=True) as journal:
        if (found := kind_of(journal)) != kind:
            msg = f"run {run_id} is {in_words(found)}, not {in_words(kind)}; name one of the kind that is estimated"
            raise InputError(msg)
        units = _units(kind, journal)
        roles: dict[str, Amounts] = {}
        for one in read_ledger(journal):
            more = Amounts(requests=one.requests, usage=one.usage)
            roles[one.account.role] = roles.get(one.account.role, Amounts()) + more
    many, unit = _UNITS[kind]
    if units == 0:
        msg = f"run {run_id} has no {many}, so there is no average; name another run, or leave out --like"
        raise InputError(msg)
    return Measured(run_id=run_id, units=units, unit=unit, roles=roles)


def like_lines(
    measured: Measured,
    units: int,
    roles: Mapping[str, Sequence[EstimatedModel]],
    ceilings: Mapping[str, Sequence[Amounts]],
) -> tuple[Line, ...]:
    """What is expected if everything goes on as it was measured, at the prices of these models.

    Args:
        measured: Of the recorded run.
        units: Commits, questions or iterations that are to be made.
        roles: Role to its models.
        ceilings: Role to what each of these models may take at most.
    """
    factor = Fraction(units, measured.units)
    return tuple(
        Line(
            role=role,
            model=model,
            expected=_scaled(measured.roles.get(role, Amounts()), factor, model),
            at_most=most,
        )
        for role, models in roles.items()
        for model, most in zip(models, ceilings[role], strict=True)
    )


def _scaled(amounts: Amounts, factor: Fraction, model: EstimatedModel) -> Amounts:
    """The same at another size, at this model's price."""
    if amounts.requests == 0:
        return Amounts()
    usage = times(replace(amounts.usage, usd=None), factor)
    priced = model.priced_together(usage, requests=amounts.requests * factor)
    return shared(Amounts(requests=round(amounts.requests * factor), usage=priced), model.share)


def _units(kind: str, journal: Journal) -> int:
    if kind == SEARCH:
        return len(read_history(journal).paid)
    if kind == SQL_BENCH:
        return sum(1 for key, _ in journal.records("q/") if key.endswith(_OUTCOME))
    return sum(1 for key, _ in journal.records("it/") if key.endswith(_END) and key.count("/") == 2)
