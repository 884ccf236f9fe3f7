"""A run's ledger, whatever its method: what each role, model and island has spent, from its journal alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.domain.budgets import Account
from orchestrator.domain.model_access import ModelRole
from orchestrator.ports import Journal
from orchestrator.search.spending import AccountOf, Spending, read_spending
from orchestrator.storage.journal import SqliteJournal

_ISLAND = re.compile(r"i(?P<island>\d+)/request/.*")
_QUESTION = re.compile(
    r"(?:d(?P<dataset>\d+)/)?(?:f\d+/)?q/[^/]+/(?:elicit|[^/]+/(?:r\d+/)?(?P<phase>aggregate|critic|choose))/request/.*"
)
_PACKAGE = re.compile(r"(?P<kind>it|hybrid|answer)(?::(?P<model>[^/]+))?/.*")
_KINDS = {"it": ModelRole.EVOLVER.value, "hybrid": "hybrid", "answer": ModelRole.ANSWERER.value}
_JOBS = {
    "elicit": ModelRole.GENERATOR,
    "aggregate": ModelRole.GENERATOR,
    "critic": ModelRole.CRITIC,
    "choose": ModelRole.CRITIC,
}
"""What EvoSQL's accounts are for, by the last part of their role."""


def read_ledger(journal: Journal) -> tuple[Spending, ...]:
    """Spending by role, model and island; roles are those of `ModelRole`, and `hybrid` beside them.

    Records of earlier versions name no account; theirs follows from their key and the models of the run's header. Where
    another process goes on with the run, a call without an outcome is in flight and not lost.

    Raises:
        RunStateError: A record is damaged.
    """
    is_live = isinstance(journal, SqliteJournal) and journal.is_written_elsewhere
    return read_spending(journal.records(), _accounts(journal.get("run") or {}), is_live=is_live)


def _accounts(header: Mapping[str, Any]) -> AccountOf:
    models = header.get("models") or {}

    def account_of(key: str, named: Account | None) -> Account:
        if named is not None:
            return replace(named, role=str(_JOBS.get(named.role.rpartition("/")[2], named.role)))
        if match := _ISLAND.fullmatch(key):
            return Account(role=ModelRole.AGENT.value, model=_text(header.get("model")), island=int(match["island"]))
        if match := _QUESTION.fullmatch(key):
            role = _JOBS[match["phase"] or "elicit"].value
            of_dataset = models if match["dataset"] is None else _models_of(header, int(match["dataset"]))
            return Account(role=role, model=_text(of_dataset.get(role)))
        if match := _PACKAGE.fullmatch(key):
            role = _KINDS[match["kind"]]
            model = ModelRole.EVOLVER.value if match["kind"] == "it" else ModelRole.ANSWERER.value
            return Account(role=role, model=match["model"] or _text(models.get(model)))
        return Account(role="unknown")

    return account_of


def _models_of(header: Mapping[str, Any], dataset: int) -> Mapping[str, Any]:
    """The models that a sweep uses on one of its data sets, by its number from 1."""
    try:
        models: Mapping[str, Any] = header["datasets"][dataset - 1]["conditions"]["models"]
    except (KeyError, IndexError, TypeError):
        return {}
    return models


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
