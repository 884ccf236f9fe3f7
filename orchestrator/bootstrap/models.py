"""Language models by name and role, as far as a policy lets them be asked; what is missing is told before any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from orchestrator.bootstrap.model_checks import Said, one_url_for_all, require_allowed, require_concerned, without_price
from orchestrator.bootstrap.model_names import (
    OFFLINE,
    REPLAY_PREFIX,
    entry_of,
    models_behind,
    offline_model,
    require_name,
)
from orchestrator.domain.model_access import ModelAccess, ModelEntry, ModelRole, Provider
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.policies import Policy
from orchestrator.errors import InputError, PrerequisiteError
from orchestrator.llm.ensemble import EnsembleModel
from orchestrator.llm.unasked import UnaskedModel
from orchestrator.ports import LanguageModel
from orchestrator.runtime.workers import CancelToken, spawn

if TYPE_CHECKING:
    from orchestrator.llm.providers.breaker import Breakers
    from orchestrator.llm.providers.model import ProviderModel

__all__ = ["OFFLINE", "REPLAY_PREFIX", "Models", "Wanted"]

Wanted = Sequence[tuple[ModelRole, str]]
"""Roles, and the names of the models that are to play them."""
Unasked = Callable[[str, Provider, int], LanguageModel]
"""From a model's name, its provider and its context in tokens to what stands in for it."""
CHECK_SECONDS = 10.0
"""For a server to say that it is there and serves a model."""
_NO_CONTEXTS: Mapping[str, int] = {}
_ANY_CONTEXT = 1_000_000
"""Of a model whose context was not recorded, for nothing depended on it."""


class Models:
    """The models of one command; a context manager that closes them. Wiring is done by one thread.

    Every name is opened once. A policy is asked first: what it refuses is refused before a key is read.
    """

    def __init__(
        self,
        access: ModelAccess,
        rules: Sequence[ModelRule],
        *,
        token: CancelToken,
        note: Callable[[str], None],
        policy: str | None = None,
        environment: Mapping[str, str] | None = None,
        context_tokens: Mapping[str, int] = _NO_CONTEXTS,
        unasked: Unasked | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            access: What the command says of its models.
            rules: Of the policy.
            token: Ends waiting and calls at once.
            note: Told one line when a model makes a run wait.
            policy: Its name, for messages; None: it has none.
            environment: Holds the keys; None: the process's own.
            context_tokens: By name, the context that a run has recorded of a model and goes on with.
            unasked: Makes what stands in for a provider's model where all replies are recorded, so that no key and no
                server is needed; None: models are asked.
        """
        self._access = access
        self._rules = tuple(rules)
        self._policy = policy
        self._token = token
        self._note = note
        self._environment = os.environ if environment is None else environment
        self._contexts = {
            leaf: tokens for name, tokens in context_tokens.items() for leaf in models_behind(name, access)
        }
        self._unasked = unasked
        self._open: dict[str, ProviderModel] = {}
        self._breakers: Breakers | None = None
        self._closing = ExitStack()

    def find(self, name: str, role: ModelRole) -> LanguageModel:
        """A model by its name; an ensemble only for the agent.

        Args:
            name: `offline`, `offline/effort-E`, `anthropic/NAME`, `openai/NAME`, or a name of the access.
            role: What it will be asked for.

        Raises:
            InputError: There is no such model; the message has close names.
            PolicyError: No rule lets it be asked for this; the message has the rule that would.
            PrerequisiteError: Its key is missing.
        """
        members = self._leaves(name, role)
        if self._unasked is None:
            self._require_allowed([(role, one) for one in members])
        if name in self._access.ensembles:
            weighted = [(self._leaf(one.model), one.weight) for one in self._access.ensembles[name]]
            return EnsembleModel(name, weighted)
        return self._leaf(name)

    def require_ready(self, wanted: Wanted, *, in_usd: bool, said: Said | None = None) -> None:
        """See that everything the models need is there, and tell all that is missing at once.

        Asks servers about their models, which costs nothing; models that need no server are ready.

        Args:
            wanted: All models of the command.
            in_usd: Whether there is a ceiling in US dollars, which needs prices.
            said: What the command says itself, and no earlier one; None: all of the access.

        Raises:
            InputError: A name means nothing, an option concerns none of the models, or a price is unknown.
            PolicyError: The policy lets one of them not be asked.
            PrerequisiteError: A key is missing, or a server does not answer or serve its model.
            Cancelled: Somebody asked to stop.
        """
        leaves = [(role, one) for role, name in wanted for one in self._leaves(name, role)]
        names = {name for _, name in (*wanted, *leaves)}
        require_concerned(names, self._access, self._access if said is None else said)
        self._require_allowed(leaves)
        entries = {name: entry for _, name in leaves if (entry := self._entry(name)) is not None}
        unpriced = without_price(entries, self._environment) if in_usd else []
        lacking = self.missing(list(entries))
        missing = dict.fromkeys(lacking.values())  # a key that several lack is told once
        self._token.check()
        if missing:
            raise PrerequisiteError("; ".join([*missing, *one_url_for_all(entries, lacking, self._access), *unpriced]))
        if unpriced:
            raise InputError("; ".join(unpriced))

    def missing(self, names: Sequence[str]) -> dict[str, str]:
        """What providers' models lack, by name, with the way out; servers are asked at the same time.

        Args:
            names: Of models, no ensemble among them.
        """
        missing: dict[str, str] = {}
        models: list[ProviderModel] = []
        for name in names:
            try:
                models.append(self._opened(name))
            except PrerequisiteError as error:
                missing[name] = str(error)
        checks = [(model, spawn(f"check {model.name}", partial(model.check, CHECK_SECONDS))) for model in models]
        for model, check in checks:
            try:
                if check.join(3 * CHECK_SECONDS):
                    check.result()
                else:
                    missing[model.name] = f"the server of {model.name!r} does not answer; try again later"
            except PrerequisiteError as error:
                missing[model.name] = str(error)
        return missing

    def close(self) -> None:
        """Close all connections; idempotent."""
        self._open.clear()
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _leaves(self, name: str, role: ModelRole) -> list[str]:
        """The names of the models behind a name: of an ensemble its members, else the name itself."""
        require_name(name, self._access, with_ensembles=role is ModelRole.AGENT)
        if name not in self._access.ensembles:
            return [name]
        members = models_behind(name, self._access)
        for member in members:
            if member in self._access.ensembles:
                msg = (
                    f"ensemble {name!r}: {member!r} is an ensemble, and an ensemble's members are models; name a model"
                )
                raise InputError(msg)
            try:
                require_name(member, self._access)
            except InputError as error:
                msg = f"ensemble {name!r}: {error}"
                raise InputError(msg) from error
        return members

    def _entry(self, name: str) -> ModelEntry | None:
        """A provider's model, with the context that was recorded of it; None: it is the offline engine."""
        if offline_model(name) is not None:
            return None
        entry = entry_of(name, self._access)
        recorded = self._contexts.get(name)
        if entry is None or recorded is None:
            return entry
        return entry.model_copy(update={"context_tokens": recorded})

    def _leaf(self, name: str) -> LanguageModel:
        if (offline := offline_model(name)) is not None:
            return offline
        if self._unasked is not None and (entry := self._entry(name)) is not None:
            return self._unasked(name, entry.provider, self._contexts.get(name, _ANY_CONTEXT))
        return self._opened(name)

    def _opened(self, name: str) -> ProviderModel:
        from orchestrator.llm.providers.breaker import Breakers  # noqa: PLC0415 - the SDKs take a second to load,
        from orchestrator.llm.providers.opening import open_model  # noqa: PLC0415 - and most commands ask no provider

        entry = self._entry(name)
        if entry is None:
            msg = f"{name!r} is no provider's model"
            raise ValueError(msg)
        if name not in self._open:
            self._breakers = self._breakers or Breakers()
            model = open_model(
                name,
                entry,
                environment=self._environment,
                patience=self._access.patience,
                breakers=self._breakers,
                token=self._token,
                note=self._note,
            )
            self._closing.callback(model.close)
            self._open[name] = model
        return self._open[name]

    def _require_allowed(self, uses: Wanted) -> None:
        found = [(name, self._entry(name), role) for role, name in dict.fromkeys(uses)]
        provided = [(name, entry, role) for name, entry, role in found if entry is not None]
        require_allowed(provided, self._rules, self._policy)


@contextmanager
def ready_models(  # noqa: PLR0913 - what is asked, and how it is followed
    access: ModelAccess,
    policy: Policy,
    wanted: Wanted,
    *,
    in_usd: bool,
    token: CancelToken,
    note: Callable[[str], None],
    context_tokens: Mapping[str, int] = _NO_CONTEXTS,
    asks: bool = True,
    said: Said | None = None,
) -> Iterator[Models]:
    """Models that are ready to be asked, and closed behind the block; the arguments are those of `Models`.

    Where they are not asked at all, since all replies are recorded, nothing is needed of them.

    Raises:
        EvolvariumError: As `Models.require_ready`, before anything else is done.
    """
    with Models(
        access,
        policy.models,
        token=token,
        note=note,
        policy=policy.name,
        context_tokens=context_tokens,
        unasked=None if asks else partial(UnaskedModel, is_priced=in_usd),
    ) as models:
        if asks:
            models.require_ready(wanted, in_usd=in_usd, said=said)
        yield models
