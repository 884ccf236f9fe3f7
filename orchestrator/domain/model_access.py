"""Which language models a run may call, where they are, what they cost, and how long it waits for them.

All of it is part of a run's record, so nothing here is secret: a key is named, never held.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from orchestrator.domain.model_options import unsendable
from orchestrator.domain.written_settings import WrittenSettings


class ModelRole(StrEnum):
    """What a model is asked for."""

    AGENT = "agent"
    """Improves programs, in AgenticEvolve."""
    GENERATOR = "generator"
    """Writes SQL, in EvoSQL."""
    CRITIC = "critic"
    """Judges it."""
    EVOLVER = "evolver"
    """Makes packages, in RoboPhD."""
    ANSWERER = "answerer"
    """Answers questions with a package."""


class Provider(StrEnum):
    """Whose protocol a model's server speaks."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """Chat completions, as many servers besides OpenAI's speak them, or responses; `ModelEntry.api` says which."""


PROVIDER_URLS = {Provider.ANTHROPIC: "https://api.anthropic.com", Provider.OPENAI: "https://api.openai.com/v1"}
"""Where a provider's own server is."""
PROVIDER_KEYS = {Provider.ANTHROPIC: "ANTHROPIC_API_KEY", Provider.OPENAI: "OPENAI_API_KEY"}
"""Environment variable of its key, which is sent to its own server and to no other unless somebody says so."""
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,127}$"
_ENTRY_NAME = re.compile(r"^[a-z][a-z0-9._-]{0,63}$")
_PRINTABLE = re.compile(r"[!-~]+")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_LONGEST_HOST = 253
_RESERVED = ("offline", "replay", *Provider)


def _plain_url(url: str) -> str:
    if _PRINTABLE.fullmatch(url) is None:
        msg = (
            "must be printable ASCII without spaces; write what else a path holds as %XX, and the name of a host in "
            "its ASCII form (xn--...)"
        )
        raise ValueError(msg)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        msg = "must be http://HOST[:PORT]/PATH or https://..."
        raise ValueError(msg)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        msg = "must hold no user name, password, query or fragment: a key comes from the environment or from a file"
        raise ValueError(msg)
    if not _is_host(parts.hostname) or parts.netloc.endswith(":"):
        msg = "must name a host, as example.org, or an address, as 127.0.0.1 or [::1]; behind it, if at all, :PORT"
        raise ValueError(msg)
    if parts.port == 0:  # raises ValueError where it is none
        msg = "must have a port from 1 to 65535, or none"
        raise ValueError(msg)
    return url.rstrip("/")


def _is_host(name: str) -> bool:
    """Whether it is an address, or a name that can be looked up; underscores are what container networks use."""
    if ":" in name or name.replace(".", "").isdigit():
        try:
            ip_address(name)
        except ValueError:
            return False
        return True
    labels = name.removesuffix(".").split(".")
    return len(name) <= _LONGEST_HOST and all(_LABEL.fullmatch(label) for label in labels)


BaseUrl = Annotated[str, Field(min_length=8, max_length=500), AfterValidator(_plain_url)]
"""Without user, query or slash at its end."""
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
"""Name of an environment variable."""
Usd = Annotated[Decimal, Field(ge=0, le=1_000_000)]
"""US dollars for a million tokens."""
Weight = Annotated[float, Field(gt=0, le=1_000_000)]


class KeySource(WrittenSettings):
    """Where a key comes from; exactly one of the two."""

    env: Variable | None = None
    """Environment variable."""
    file: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """File that nobody but its owner can read (mode 600 or 400), relative to the working directory."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.env is None) == (self.file is None):
            msg = "give either env or file"
            raise ValueError(msg)
        if self.file is not None and "\0" in self.file:
            msg = "a path holds no NUL character"
            raise ValueError(msg)
        return self


class PriceTier(WrittenSettings):
    """Prices of one size of request, in US dollars for a million tokens."""

    input: Usd
    cached_input: Usd | None = None
    """Of input that is read from a cache; null: as other input."""
    cache_write: Usd | None = None
    """Of input that is written into a cache; null: as other input."""
    output: Usd
    reasoning: Usd | None = None
    """Of the part of the output that is reasoning; null: as other output."""


class Price(PriceTier):
    """What a model costs."""

    above_input_tokens: Annotated[int, Field(ge=1)] | None = None
    """Requests with more input than this, of all kinds together, cost what `above` says; null: all cost the same."""
    above: PriceTier | None = None

    @model_validator(mode="after")
    def _has_both_or_neither(self) -> Self:
        if (self.above_input_tokens is None) != (self.above is None):
            msg = "above_input_tokens and above belong together; give both or neither"
            raise ValueError(msg)
        return self


class ModelEntry(WrittenSettings):
    """One language model and how to reach it."""

    provider: Provider
    model: Annotated[str, Field(pattern=MODEL_NAME)]
    """What the provider calls it."""
    base_url: BaseUrl | None = None
    """null: the provider's own server."""
    api: Literal["chat", "responses"] | None = None
    """Which of OpenAI's protocols, chat completions or responses; null: as the capability table says."""
    key: KeySource | None = None
    """null: for the provider's own server its usual variable (`PROVIDER_KEYS`), for any other none at all."""
    context_tokens: Annotated[int, Field(ge=1024, le=100_000_000)] | None = None
    """null: as the capability table or the server says."""
    max_output_tokens: Annotated[int, Field(ge=16, le=100_000_000)] | None = None
    """Likewise."""
    price: Price | None = None
    """null: as the price table says; what is not in it is unknown."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request, as the provider documents them, for instance `reasoning_effort: high`."""
    without: tuple[str, ...] = ()
    """Parameters that are never sent, for instance `temperature`; those a server refuses are left out by themselves."""

    @field_validator("options")
    @classmethod
    def _can_be_sent(cls, options: dict[str, Any]) -> dict[str, Any]:
        if (fault := unsendable(options)) is not None:
            msg = f"{fault}; options are sent as JSON: texts, finite numbers, true, false, null, lists and mappings"
            raise ValueError(msg)
        return options

    @model_validator(mode="after")
    def _api_is_of_its_provider(self) -> Self:
        if self.api is not None and self.provider is not Provider.OPENAI:
            msg = f"provider {self.provider} has one protocol only; leave `api` out"
            raise ValueError(msg)
        return self

    @property
    def url(self) -> str:
        """Where its server is."""
        return self.base_url or PROVIDER_URLS[self.provider]

    @property
    def key_source(self) -> KeySource | None:
        """Where its key comes from; None: it is asked without one."""
        if self.key is not None or self.url != PROVIDER_URLS[self.provider]:
            return self.key
        return KeySource(env=PROVIDER_KEYS[self.provider])


def _is_provided(name: str, entry: ModelEntry) -> bool:
    """Whether a name is `PROVIDER/NAME`, of the entry's provider."""
    provider, _, model = name.partition("/")
    return provider == entry.provider and re.fullmatch(MODEL_NAME, model) is not None


class Member(WrittenSettings):
    """One model of an ensemble."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    weight: Weight = 1.0


Members = Annotated[tuple[Member, ...], Field(min_length=1, max_length=32)]


class Patience(WrittenSettings):
    """How long a run waits for its models, in seconds."""

    chunk_seconds: Annotated[float, Field(gt=0, le=3600)] = 300.0
    """Without a byte of a reply."""
    request_seconds: Annotated[float, Field(gt=0, le=86_400)] = 1800.0
    """For one reply, with everything that is tried on the way; an outage that is waited out does not count."""
    outage_seconds: Annotated[float, Field(ge=0, le=604_800)] = 600.0
    """For a provider that serves nobody, before the run is paused."""


class ModelAccess(WrittenSettings):
    """What a command says about its models, beside their names."""

    models: dict[str, ModelEntry] = Field(default_factory=dict)
    """Models under names of one's own, or under `PROVIDER/NAME`: then it says how that model is reached."""
    ensembles: dict[str, Members] = Field(default_factory=dict)
    """Weighted models under one name."""
    base_url: BaseUrl | None = None
    """For models named `openai/NAME`; null: OpenAI's own."""
    key_env: Variable | None = None
    """Variable of the key for `base_url`."""
    price: Price | None = None
    """For the only model named `anthropic/NAME` or `openai/NAME`."""
    patience: Patience = Patience()

    @model_validator(mode="after")
    def _names_are_free(self) -> Self:
        for name in (*self.models, *self.ensembles):
            if name in self.models and _is_provided(name, self.models[name]):
                continue
            if not _ENTRY_NAME.fullmatch(name) or name in _RESERVED:
                msg = (
                    f"{name!r} cannot be the name of a model: small letters, digits, '.', '_' and '-', at most 64, "
                    f"beginning with a letter, and none of {', '.join(_RESERVED)}; a model's name may also be "
                    "PROVIDER/NAME, with the provider that its entry names"
                )
                raise ValueError(msg)
        if twice := set(self.models) & set(self.ensembles):
            msg = f"{min(twice)!r} is both a model and an ensemble; give one of them another name"
            raise ValueError(msg)
        if self.key_env is not None and self.base_url is None:
            msg = "key_env is the key for base_url; give base_url as well"
            raise ValueError(msg)
        return self
