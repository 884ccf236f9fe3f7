"""What a model's name means: the offline engine, a model of a provider, or one of a file of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from orchestrator.domain.model_access import MODEL_NAME, KeySource, ModelAccess, ModelEntry, Provider
from orchestrator.errors import InputError
from orchestrator.llm.offline import OfflineModel
from orchestrator.runtime.strict_yaml import shown

OFFLINE = "offline"
REPLAY_PREFIX = "replay/"
_MOST_NAMES = 20
"""Of a file, that are all told."""
_NAMES_TOLD = 5
"""Of more."""
_EFFORT = re.compile(r"offline/effort-(?P<share>0\.[0-9]{1,4}|1(?:\.0{1,4})?)")
"""No more digits than the name of such a model shows, so that different ones have different names."""


def offline_model(name: str) -> OfflineModel | None:
    """The offline engine; `offline/effort-E`, with E over 0 and at most 1, is a weaker one. None: it is not meant."""
    if name == OFFLINE:
        return OfflineModel()
    weaker = _EFFORT.fullmatch(name)
    return OfflineModel(effort=float(weaker["share"])) if weaker is not None and float(weaker["share"]) > 0 else None


def name_in_records(name: str) -> str:
    """What the model of a name is called in records: the offline engine writes its efforts in one way."""
    offline = offline_model(name)
    return name if offline is None else offline.name


def is_plain(name: str, access: ModelAccess) -> bool:
    """Whether a name is `PROVIDER/NAME` and no entry of a file says more of it: then options say where it is."""
    return name not in access.models and _provided(name) is not None


def entry_of(name: str, access: ModelAccess) -> ModelEntry | None:
    """A model of a provider by its name; None: there is none, or it is an ensemble or the offline engine."""
    if name in access.models:
        return access.models[name]
    found = _provided(name)
    if found is None:
        return None
    provider, model = found
    if provider is not Provider.OPENAI or access.base_url is None:
        return ModelEntry(provider=provider, model=model, price=access.price)
    key = None if access.key_env is None else KeySource(env=access.key_env)
    return ModelEntry(provider=provider, model=model, base_url=access.base_url, key=key, price=access.price)


def models_behind(name: str, access: ModelAccess) -> list[str]:
    """The names of the models behind a name: the members of an ensemble, else the name itself."""
    return [member.model for member in access.ensembles[name]] if name in access.ensembles else [name]


def require_name(name: str, access: ModelAccess, *, with_ensembles: bool = False) -> None:
    """See that a name means something.

    Args:
        name: As it was given.
        access: Of the run.
        with_ensembles: Whether an ensemble may be meant.

    Raises:
        InputError: It means nothing here; the message has close names, and says what there is.
    """
    if offline_model(name) is not None or entry_of(name, access) is not None:
        return
    if name in access.ensembles:
        if with_ensembles:
            return
        msg = (
            f"{name!r} is an ensemble, and only the model that improves programs (`run --model`) can be one; name one "
            "of its members"
        )
        raise InputError(msg)
    if name.startswith(REPLAY_PREFIX):
        msg = (
            f"{shown(name)} cannot be asked here: only `run --model {REPLAY_PREFIX}RUN` replays a search, and "
            "`sql evolve --replay RUN` an evolution; give another model"
        )
        raise InputError(msg)
    own = [*access.models, *(access.ensembles if with_ensembles else ())]
    meant = _meant(name, own)
    if meant is not None:
        msg = f"no model {shown(name)}; did you mean {' or '.join(map(repr, meant))}?"
        raise InputError(msg)
    known = (
        "".join(f"{one!r}, " for one in own) if len(own) <= _MOST_NAMES else f"{len(own)} names of the --models file, "
    )
    msg = (
        f"no model {shown(name)}; there are {known}{OFFLINE!r}, '{OFFLINE}/effort-E' with E over 0 and at most 1 for a "
        "weaker one, 'anthropic/NAME', 'openai/NAME' (with --base-url any server that speaks OpenAI's protocol), and "
        "names of a --models file"
    )
    raise InputError(msg)


def names_like(names: Sequence[str], asked: Iterable[str]) -> str:
    """Names of a file for a message: all of a few, of many those that are like one that is asked, or the first.

    Args:
        names: Of the file, at least one.
        asked: Instead of these.
    """
    if len(names) <= _MOST_NAMES:
        return ", ".join(map(repr, names))
    like = [one for name in asked for one in get_close_matches(name, names, n=_NAMES_TOLD, cutoff=0.7)]
    told = list(dict.fromkeys(like))[:_NAMES_TOLD] or names[:_NAMES_TOLD]
    return f"{', '.join(map(repr, told))} and {len(names) - len(told)} more"


def _provided(name: str) -> tuple[Provider, str] | None:
    provider, slash, model = name.partition("/")
    if not slash or provider not in list(Provider) or re.fullmatch(MODEL_NAME, model) is None:
        return None
    return Provider(provider), model


def _meant(name: str, own: list[str]) -> list[str] | None:
    """Names that are like it, the likest first; None: there are none."""
    close = get_close_matches(name, [OFFLINE, *own], n=3, cutoff=0.7)
    if close:
        return close
    first, slash, model = name.partition("/")
    provider = get_close_matches(first.lower(), list(Provider), n=1, cutoff=0.7)
    if slash and provider and re.fullmatch(MODEL_NAME, model):
        return [f"{provider[0]}/{model}"]
    if not slash and first.startswith("claude"):
        return [f"{Provider.ANTHROPIC}/{first}"]
    if not slash and first.startswith(("gpt", "o1", "o3", "o4")):
        return [f"{Provider.OPENAI}/{first}"]
    return None
