"""What `doctor --models FILE` finds about the models of a file: key, server, name, price, and the policy's word.

Its ensembles are listed behind them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping

from orchestrator.bootstrap.model_checks import without_price
from orchestrator.bootstrap.model_files import ModelFile
from orchestrator.bootstrap.model_names import require_name
from orchestrator.bootstrap.models import Models
from orchestrator.domain.model_access import ModelAccess, ModelEntry, ModelRole
from orchestrator.domain.policies import Policy
from orchestrator.errors import InputError
from orchestrator.runtime.workers import CancelToken
from orchestrator.sandbox.doctor import Finding, Status


def examine_models(
    file: ModelFile, policy: Policy, token: CancelToken, environment: Mapping[str, str] | None = None
) -> list[Finding]:
    """Findings on every model and ensemble of a file. Servers are asked about their models, which costs nothing.

    A model that the policy lets nobody ask is not asked about either, and its key is not read.

    Args:
        file: Of models.
        policy: In force.
        token: Of the caller.
        environment: Holds the keys, and may name a file of prices; None: the process's own.

    Raises:
        InputError: The file of prices is malformed.
        Cancelled: Somebody asked to stop.
    """
    variables = os.environ if environment is None else environment
    access = ModelAccess(models=file.models, ensembles=file.ensembles)
    roles = {name: _roles(entry, policy) for name, entry in file.models.items()}
    with Models(access, policy.models, token=token, note=lambda _: None, environment=variables) as models:
        missing = models.missing([name for name, found in roles.items() if found])
    token.check()
    findings = [
        finding
        for name, entry in file.models.items()
        for finding in _judged(name, entry, roles[name], missing.get(name), policy, variables)
    ]
    unfit = {name for name, found in roles.items() if ModelRole.AGENT not in found} | set(missing)
    return [*findings, *(_ensemble(name, access, unfit) for name in file.ensembles)]


def _ensemble(name: str, access: ModelAccess, unfit: Collection[str]) -> Finding:
    """What is found of an ensemble: who is in it, and whether each of them can play its part.

    Args:
        name: Of it.
        access: Holds it.
        unfit: Models of the file that cannot be asked as agents.
    """
    topic, members = f"ensemble {name}", access.ensembles[name]
    shown = ", ".join(f"{member.model} (weight {member.weight:g})" for member in members)
    wrong = []
    for member in members:
        try:
            require_name(member.model, access)
        except InputError as error:
            wrong.append(str(error))
        else:
            wrong += [f"{member.model!r} cannot be asked as agent"] if member.model in unfit else []
    if wrong:
        found = f"{shown}; {'; '.join(wrong)}"
        return Finding(topic=topic, status=Status.FAIL, found=found, remedy="mend its members, or leave them out")
    return Finding(topic=topic, status=Status.OK, found=f"for `run --model {name}`: {shown}")


def _roles(entry: ModelEntry, policy: Policy) -> list[ModelRole]:
    """What the policy lets a model be asked for."""
    model = f"{entry.provider}/{entry.model}"
    return [role for role in ModelRole if any(rule.allows(model, entry.url, role) for rule in policy.models)]


def _judged(
    name: str,
    entry: ModelEntry,
    roles: list[ModelRole],
    missing: str | None,
    policy: Policy,
    environment: Mapping[str, str],
) -> Iterator[Finding]:
    topic = f"model {name}"
    what = f"{entry.provider}/{entry.model} at {entry.url}"
    if not roles:
        found = f"policy {policy.name!r} lets nobody ask {what}, so it was not examined"
        remedy = "add a rule to `models` in the policy if it may be asked"
        yield Finding(topic=topic, status=Status.WARN, found=found, remedy=remedy)
        return
    if missing is not None:
        found, _, remedy = missing.rpartition("; ")
        yield Finding(topic=topic, status=Status.FAIL, found=found or missing, remedy=remedy or "see what it says")
    else:
        asked = "in every role" if len(roles) == len(ModelRole) else f"as {', '.join(roles)}"
        yield Finding(topic=topic, status=Status.OK, found=f"{what} is there, and may be asked {asked}")
    for told in without_price({name: entry}, environment):
        found, _, remedy = told.partition("; ")
        yield Finding(topic=topic, status=Status.WARN, found=found, remedy=remedy)
