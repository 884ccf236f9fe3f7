"""What a list of models says of one of them, in the words of many servers."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from orchestrator.llm.providers.wire import ModelFacts, sane_context, sane_output

_CLOSE_NAMES = 5
_MAX_NAME = 200
_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Of vLLM, OpenRouter and Together, Groq, LM Studio and Mistral."""
_META_CONTEXT = ("n_ctx", "n_ctx_train")
"""Of llama.cpp, in `meta`; the first is what the server was started with."""
_OUTPUT = ("max_output_tokens", "max_completion_tokens")


def facts_in(listing: object, model: str) -> ModelFacts:
    """Facts of a model from the answer to `GET /models`; nothing is known if that is no list."""
    entries = list(_entries(listing))
    names = [name for entry in entries if (name := _name(entry))]
    if not names:
        return ModelFacts(is_known=None)
    found = next((entry for entry in entries if model in _names(entry)), None)
    if found is not None:
        return _facts(found, is_known=True)
    if len(entries) == 1 and entries[0].get("owned_by") == "llamacpp":
        return _facts(entries[0], is_known=None)  # it answers with its one model, whatever it is asked for
    close = difflib.get_close_matches(model, names, n=_CLOSE_NAMES, cutoff=0.5)
    return ModelFacts(is_known=False, close_names=tuple(close or names[:_CLOSE_NAMES]))


def _facts(entry: Mapping[str, object], *, is_known: bool | None) -> ModelFacts:
    meta, provider = entry.get("meta"), entry.get("top_provider")
    context = _size(entry, _CONTEXT, sane_context) or _size(meta, _META_CONTEXT, sane_context)
    return ModelFacts(
        is_known=is_known,
        context_tokens=context,
        max_output_tokens=_size(entry, _OUTPUT, sane_output) or _size(provider, _OUTPUT, sane_output),
    )


def _entries(listing: object) -> Iterator[Mapping[str, object]]:
    if isinstance(listing, Mapping):
        listing = listing.get("data")
    for entry in listing if isinstance(listing, list) else ():
        if isinstance(entry, Mapping):
            yield entry


def _names(entry: Mapping[str, object]) -> set[str]:
    """Ollama's `:latest` may be left out."""
    aliases = entry.get("aliases")
    names = {
        _name(entry),
        *(alias for alias in (aliases if isinstance(aliases, list) else ()) if isinstance(alias, str)),
    }
    return names | {name.removesuffix(":latest") for name in names}


def _name(entry: Mapping[str, object]) -> str:
    name = entry.get("id")
    text = name if isinstance(name, str) else ""
    return "".join(character for character in text[:_MAX_NAME] if character.isprintable())


def _size(place: object, names: tuple[str, ...], sane: Callable[[object], int | None]) -> int | None:
    """What the first name says that says anything; a later one would be another's word on another thing."""
    for name in names:
        if isinstance(place, Mapping) and place.get(name) is not None:
            return sane(place[name])
    return None
