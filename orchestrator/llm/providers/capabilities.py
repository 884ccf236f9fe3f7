"""What a model's server takes, as data: a table by provider and name, and what is learned from refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.domain.written_settings import WrittenSettings
from orchestrator.errors import InputError
from orchestrator.runtime.strict_yaml import load_yaml

SYSTEM_ROLE = "system_role"
"""Names the role of the system prompt where the parameter that was refused is meant."""
THOUGHTS_BACK = "thoughts sent back"
"""Names what a model thought in earlier turns, where that is refused, as by one that has taken another's place."""
THINKING = "thinking"
"""Field of Anthropic's protocol that says whether and how much a model thinks."""
UNFIT_THOUGHTS = "thinking, in this conversation"
"""Names thoughts that are refused for how one conversation went: another one can have them."""
LEAST_THINKING_TOKENS = 1024
"""The smallest budget for thoughts that Anthropic's protocol takes."""
OUTPUT_LIMIT = "max_output_tokens="
"""With a number behind it: not the parameter was refused but its value, and the server takes at most so many."""
OURS = frozenset(
    {"model", "models", "messages", "system", "tools", "stream", "n", "max_tokens", "max_completion_tokens"}
    | {"input", "instructions", "prompt", "previous_response_id", "conversation", "background", "max_output_tokens"}
    | {"n_predict", "fallbacks"}
)
"""Fields of a request that no `options` may set: policy and budget rest on them."""
_SOURCE = "capabilities.yaml"
_NEXT_ROLE = {"developer": "system", "system": "user"}
_SWITCHES = {
    "temperature": "temperature",
    "seed": "seed",
    "stream_options": "stream_usage",
    "prompt_cache_key": "cache_marks",
    "cache_control": "cache_marks",
}
_SWITCHES_OF_RESPONSES = {
    "temperature": "temperature",
    "prompt_cache_key": "cache_marks",
    "include": "encrypted_reasoning",
}
_RESPONSES: dict[str, Any] = {
    "output_field": "max_output_tokens",
    "other_output_fields": (),
    "seed": False,
    "samples": 1,
    "stream_usage": False,
    "reasoning_field": None,
    "effort_with_tools": None,
}
"""What OpenAI's responses have under one name at every server, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Of one model at one server. Parameter names are those of the provider's request body."""

    api: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's protocols it is asked in."""
    context_tokens: int | None = None
    """None: neither table nor server says."""
    max_output_tokens: int | None = None
    """Likewise."""
    output_field: str = "max_tokens"
    """The parameter that limits the output."""
    other_output_fields: tuple[str, ...] = ()
    """What to try when that one is refused."""
    temperature: bool = True
    seed: bool = False
    samples: int = 1
    """How many replies one call may ask for."""
    cache_marks: bool = False
    """Whether the stable prefix of a request is marked for the provider's cache."""
    stream_usage: bool = True
    """Whether the usage has to be asked for in a stream (`stream_options`), and may be."""
    system_role: str = "system"
    """Role of the message that holds the system prompt, where it is a message; `user`: it is put before the first."""
    reasoning_field: str | None = None
    """Field of an assistant message that holds its reasoning when it is sent back; None: it is not."""
    effort_with_tools: str | None = None
    """What `reasoning_effort` has to be in a request with tools; None: it is not sent."""
    encrypted_reasoning: bool = True
    """Whether reasoning is asked for in encrypted form, to be sent back; of responses alone."""
    thinking_tokens: int | None = None
    """Budget for thoughts, which are part of the output; None: the entry's options set none."""
    refused: frozenset[str] = field(default_factory=frozenset)
    """Parameters that this server has refused, or that the user leaves out."""

    def accepts(self, parameter: str) -> bool:
        """Whether a parameter may be sent."""
        return parameter not in self.refused

    def without(self, *parameters: str) -> Capabilities:
        """The same, but that some parameters are not sent."""
        return replace(self, refused=self.refused.union(parameters))


def find_capabilities(entry: ModelEntry) -> Capabilities:
    """What the table says of a model, with the user's own words on top.

    Raises:
        InputError: `options` set what policy or budget rest on, or more thoughts than the model gives output, or the
            table is not well formed.
    """
    if taken := OURS & set(entry.options):
        msg = f"options of model {entry.model!r}: {min(taken)!r} cannot be set there; leave it out"
        raise InputError(msg)
    found = _table().find(entry)
    found = replace(found, api=entry.api or found.api)
    if found.api == "responses":
        found = replace(found, **_RESPONSES)
    if entry.context_tokens is not None:
        found = replace(found, context_tokens=entry.context_tokens)
    if entry.max_output_tokens is not None:
        found = replace(found, max_output_tokens=entry.max_output_tokens)
    found = replace(found, thinking_tokens=_thinking_tokens(entry, found.max_output_tokens))
    for parameter in entry.without:
        found = _without(found, parameter)
    return found


def _thinking_tokens(entry: ModelEntry, most: int | None) -> int | None:
    """The budget for thoughts that an entry's options set."""
    thinking = entry.options.get(THINKING)
    if entry.provider is not Provider.ANTHROPIC or not isinstance(thinking, Mapping) or THINKING in entry.without:
        return None
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or not isinstance(budget, int) or isinstance(budget, bool):
        return None
    if most is not None and budget >= most:
        msg = (
            f"options of model {entry.model!r}: thinking.budget_tokens is {budget}, and max_output_tokens, of which "
            f"thoughts are a part, is {most}; give a smaller budget_tokens, or a larger max_output_tokens if the model "
            "takes it"
        )
        raise InputError(msg)
    return budget


def _without(capabilities: Capabilities, name: str) -> Capabilities:
    """What a user leaves out is never sent, not even where a server would miss it."""
    changes = _changes(capabilities, name) or {}
    never = {switch: None for switch in changes if switch in ("reasoning_field", "effort_with_tools")}
    return replace(capabilities, **{**changes, **never, "refused": capabilities.refused | {name}})


def learned(capabilities: Capabilities, parameter: str) -> Capabilities | None:
    """What to try after a server has refused a parameter.

    Args:
        capabilities: What was tried.
        parameter: As `Failure.parameter` names it: a field of the request, also with what is inside of it
            (`stream_options.include_usage`), `SYSTEM_ROLE`, `THOUGHTS_BACK`, or `OUTPUT_LIMIT` and a number.

    Returns:
        None: there is nothing left to give up, so that the refusal stands.
    """
    if parameter.startswith(OUTPUT_LIMIT):
        return _less_output(capabilities, parameter.removeprefix(OUTPUT_LIMIT))
    if parameter == SYSTEM_ROLE or re.match(r"messages\b.*\brole$", parameter):
        role = _NEXT_ROLE.get(capabilities.system_role)
        return None if role is None else replace(capabilities, system_role=role)
    name = re.split(r"[.\[]", parameter)[0]
    if name in capabilities.refused:
        return None
    changes = {} if name == THOUGHTS_BACK else _changes(capabilities, name)
    if changes is None:
        return None
    return replace(capabilities, **{"refused": capabilities.refused | {name}, **changes})


def _changes(capabilities: Capabilities, name: str) -> dict[str, Any] | None:
    if name == capabilities.output_field:
        rest = capabilities.other_output_fields
        return {"output_field": rest[0], "other_output_fields": rest[1:]} if rest else None
    if name in capabilities.other_output_fields:
        return {"other_output_fields": tuple(other for other in capabilities.other_output_fields if other != name)}
    if capabilities.api == "responses":
        return _changes_of_responses(capabilities, name)
    if name == "n":
        return {"samples": 1} if capabilities.samples > 1 else None
    if name.startswith("reasoning"):
        return _changed_reasoning(capabilities, name)
    switch = _SWITCHES.get(name)
    return {switch: False} if switch is not None and getattr(capabilities, switch) else None


def _changes_of_responses(capabilities: Capabilities, name: str) -> dict[str, Any] | None:
    if name == "instructions":
        return {"system_role": "user"} if capabilities.system_role != "user" else None
    switch = _SWITCHES_OF_RESPONSES.get(name)
    return {switch: False} if switch is not None and getattr(capabilities, switch) else None


def _changed_reasoning(capabilities: Capabilities, name: str) -> dict[str, Any] | None:
    """These are refused for being missing as well as for being there."""
    kept = {"refused": capabilities.refused}
    if name == "reasoning_effort":  # there is no less than none
        return {"effort_with_tools": "none", **kept} if capabilities.effort_with_tools is None else None
    if name not in ("reasoning_content", "reasoning"):
        return None
    return {"reasoning_field": name, **kept} if capabilities.reasoning_field is None else {"reasoning_field": None}


def _less_output(capabilities: Capabilities, number: str) -> Capabilities | None:
    if not number.isdecimal() or len(number) > 9 or int(number) < 1:
        return None
    limit, known = int(number), capabilities.max_output_tokens
    return replace(capabilities, max_output_tokens=limit) if known is None or limit < known else None


Patterns = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(min_length=1)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]


class _Values(WrittenSettings):
    """Of `Capabilities`; what is not set is as there."""

    api: Literal["chat", "responses"] = "chat"
    context_tokens: Tokens | None = None
    max_output_tokens: Tokens | None = None
    output_field: str = "max_tokens"
    other_output_fields: tuple[str, ...] = ()
    temperature: bool = True
    seed: bool = False
    samples: Annotated[int, Field(ge=1, le=128)] = 1
    cache_marks: bool = False
    stream_usage: bool = True
    system_role: Annotated[str, Field(pattern=r"^(system|developer|user)$")] = "system"
    reasoning_field: str | None = None
    effort_with_tools: str | None = None
    encrypted_reasoning: bool = True


class _Models(_Values):
    names: Patterns


class _Group(WrittenSettings):
    provider: Provider
    urls: Patterns
    common: _Values = _Values()
    models: tuple[_Models, ...] = ()

    def serves(self, entry: ModelEntry) -> bool:
        return entry.provider is self.provider and _matches(entry.url, self.urls)

    def find(self, entry: ModelEntry) -> Capabilities:
        common = self.common.model_dump(exclude_unset=True)
        for row in self.models:
            if _matches(entry.model, row.names):
                return Capabilities(**common | row.model_dump(exclude_unset=True, exclude={"names"}))
        return Capabilities(**common)


class _Table(WrittenSettings):
    dated: date
    groups: Annotated[tuple[_Group, ...], Field(min_length=1)]

    def find(self, entry: ModelEntry) -> Capabilities:
        return next((group.find(entry) for group in self.groups if group.serves(entry)), Capabilities())


@cache
def _table() -> _Table:
    return read_table(files(__package__).joinpath(_SOURCE).read_bytes())


def read_table(raw: bytes) -> _Table:
    """A table as it is written.

    Raises:
        InputError: It is not well formed; the message names the place.
    """
    try:
        return _Table.model_validate(load_yaml(raw, _SOURCE))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        msg = f"{_SOURCE}: {place}: {first['msg']}; correct it"
        raise InputError(msg) from error


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text.lower(), pattern.lower().replace("[", "[[]")) for pattern in patterns)
