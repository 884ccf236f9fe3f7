"""What can be said about a command's models before any of them is opened: rules, options that concern none, prices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from orchestrator.bootstrap.model_names import is_plain, names_like
from orchestrator.domain.model_access import PROVIDER_URLS, Members, ModelAccess, ModelEntry, ModelRole, Price, Provider
from orchestrator.domain.model_rules import ModelRule
from orchestrator.errors import InputError, PolicyError
from orchestrator.llm.prices import PRICES_VARIABLE, PricedModels, find_price, price_table, read_prices

_ELSEWHERE = "the models of a --models file have their own `base_url`, `key` and `price`"


def require_allowed(
    uses: Iterable[tuple[str, ModelEntry, ModelRole]], rules: Sequence[ModelRule], policy: str | None
) -> None:
    """See that a policy lets models be asked.

    Args:
        uses: Names, models and roles.
        rules: Of the policy.
        policy: Its name; None: it has none.

    Raises:
        PolicyError: One may not be; the message has the rules that would let them.
    """
    whose = "the policy" if policy is None else f"policy {policy!r}"
    refused = [
        f"{whose} does not let {name!r} ({_identity(entry)}) be asked at {entry.url} as {role}; if it may be, add to "
        f'`models` in the policy: {{models: ["{_identity(entry)}"], base_urls: ["{entry.url}"], roles: [{role}]}}'
        for name, entry, role in uses
        if not any(rule.allows(_identity(entry), entry.url, role) for rule in rules)
    ]
    if refused:
        raise PolicyError("; ".join(refused))


class Said(Protocol):
    """What a command says of its models."""

    @property
    def models(self) -> Mapping[str, ModelEntry]:
        """By name, of a file."""
        ...

    @property
    def ensembles(self) -> Mapping[str, Members]:
        """Likewise."""
        ...

    @property
    def base_url(self) -> str | None:
        """Where the model that is named by its provider is."""
        ...

    @property
    def price(self) -> Price | None:
        """What it costs."""
        ...


def require_concerned(names: Collection[str], access: ModelAccess, said: Said) -> None:
    """See that what is said about a model concerns one, lest somebody relies on it.

    Args:
        names: Of all models of a command, ensembles and their members.
        access: In force.
        said: By this very command.

    Raises:
        InputError: It concerns none, or a price concerns several.
    """
    plain = sorted({name for name in names if is_plain(name, access)})
    if said.base_url is not None and not any(name.startswith(f"{Provider.OPENAI}/") for name in plain):
        msg = f"--base-url is where models named openai/NAME are, and none of these is; leave it out ({_ELSEWHERE})"
        raise InputError(msg)
    if said.price is not None and len(plain) != 1:
        found = f"here are {', '.join(map(repr, plain))}" if plain else "here is none"
        msg = f"--price is that of the only model named anthropic/NAME or openai/NAME, and {found} ({_ELSEWHERE})"
        raise InputError(msg)
    own = [*said.models, *said.ensembles]
    if own and not set(own) & set(names):
        msg = (
            f"no model of the --models file is used: it names {names_like(own, names)}, and asked are "
            f"{', '.join(map(repr, sorted(names)))}; say --model NAME (or another option that names a model) with "
            "one of its names, give the file an entry of a name that is asked, or leave it out (of a configuration: "
            "`access`)"
        )
        raise InputError(msg)


def one_url_for_all(names: Collection[str], lacking: Collection[str], access: ModelAccess) -> list[str]:
    """How models are at different servers, where several are looked for at the one that --base-url names.

    Args:
        names: Of all models of a command.
        lacking: Of those that cannot be asked as things are.
        access: In force.
    """
    here = {name for name in names if is_plain(name, access) and name.startswith(f"{Provider.OPENAI}/")}
    if access.base_url is None or len(here) == 1 or not here & set(lacking):
        return []
    return ["--base-url is where all models named openai/NAME are; for two servers use a --models file"]


def without_price(entries: Mapping[str, ModelEntry], environment: Mapping[str, str]) -> list[str]:
    """A sentence for each model whose price is unknown, with the ways out.

    Args:
        entries: By name.
        environment: May name a file of prices.

    Raises:
        InputError: That file is malformed.
    """
    table = price_table(environment)
    path = environment.get(PRICES_VARIABLE, "")
    own = read_prices(Path(path)) if path else ()
    return [
        f"the price of {name!r} ({_identity(entry)} at {entry.url}) is unknown, so a budget in US dollars cannot be "
        f"kept{_elsewhere(entry, own)}; give --price IN/CACHED/OUT, or `price` in a --models file, in US dollars for a "
        "million tokens (0/0 where it costs nothing), or limit tokens with --budget-tokens"
        for name, entry in entries.items()
        if find_price(entry, table) is None
    ]


def _elsewhere(entry: ModelEntry, own: Iterable[PricedModels]) -> str:
    """That the user's own prices name the model, but not its server."""
    for priced in own:
        if priced.model_copy(update={"base_urls": (entry.url,)}).fits(entry):
            where = ", ".join(priced.base_urls) or f"{PROVIDER_URLS[entry.provider]}, for it has no `base_urls`"
            return (
                f" (an entry of ${PRICES_VARIABLE} names the model, but counts only at {where}: give it "
                f'`base_urls: ["{entry.url}"]` if it holds there)'
            )
    return ""


def _identity(entry: ModelEntry) -> str:
    """A model as rules name it."""
    return f"{entry.provider}/{entry.model}"
