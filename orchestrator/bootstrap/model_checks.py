"""What can be said about a command's models before any of them is opened: rules, options that concern none, prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from orchestrator.bootstrap.model_names import is_plain
from orchestrator.domain.model_access import ModelAccess, ModelEntry, ModelRole, Price, Provider
from orchestrator.domain.model_rules import ModelRule
from orchestrator.errors import InputError, PolicyError
from orchestrator.llm.prices import find_price, price_table

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
    """What a command says of a model that is named by its provider."""

    @property
    def base_url(self) -> str | None:
        """Where it is."""
        ...

    @property
    def price(self) -> Price | None:
        """What it costs."""
        ...


def require_concerned(names: Iterable[str], access: ModelAccess, said: Said) -> None:
    """See that what is said about a model concerns one, lest somebody relies on it.

    Args:
        names: Of all models of a command.
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


def without_price(entries: Mapping[str, ModelEntry], environment: Mapping[str, str]) -> list[str]:
    """A sentence for each model whose price is unknown, with the ways out.

    Args:
        entries: By name.
        environment: May name a file of prices.

    Raises:
        InputError: That file is malformed.
    """
    table = price_table(environment)
    return [
        f"the price of {name!r} ({_identity(entry)} at {entry.url}) is unknown, so a budget in US dollars cannot be "
        "kept; give --price IN/CACHED/OUT, or `price` in a --models file, in US dollars for a million tokens (0/0 "
        "where it costs nothing), or limit tokens with --budget-tokens"
        for name, entry in entries.items()
        if find_price(entry, table) is None
    ]


def _identity(entry: ModelEntry) -> str:
    """A model as rules name it."""
    return f"{entry.provider}/{entry.model}"
