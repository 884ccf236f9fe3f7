"""Refusals of OpenAI's chat completions in the words of many servers: of a parameter, or of too long a conversation.

The wordings are those of the servers' source and of what their users report: OpenAI, Azure, vLLM, llama.cpp, Ollama,
DeepSeek, GLM, Qwen, Groq, Mistral, LiteLLM and servers that read requests with FastAPI or serde.
"""

from __future__ import annotations

import re

from orchestrator.llm.providers.capabilities import OUTPUT_LIMIT, SYSTEM_ROLE

_KNOWN = (
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "seed",
    "stream_options",
    "prompt_cache_key",
    "reasoning_content",
    "reasoning_effort",
    "reasoning",
    "n",
)
"""What a request can do without, or with in another way."""
_REFUSAL = re.compile(
    r"unsupported|not supported|(n't|not) (currently )?support|unrecogni[sz]ed|unexpected (keyword|field|parameter)"
    r"|unknown (parameter|field|argument|name)|extra (inputs|fields)|not (permitted|allowed)|additional properties"
    r"|not available (for|on|with)|deprecated for|only the default|must be (equal to )?1\b|only (n ?= ?)?1\b"
    r"|must be passed back|missing .?reasoning_content|reasoning_content.{0,20} is missing|is not (implemented|enabled)"
    r"|cannot be (used|set)|cannot find field|only one (completion )?choice|must be at most 1\b|is not present in"
    r"|value must be between",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"(role|variant|message).{0,60}\b(system|developer)\b|\b(system|developer)\b.{0,20}\b(role|message|is not one of)",
    re.IGNORECASE | re.DOTALL,
)
_ROLE_REFUSAL = re.compile(
    r"not support|unsupported|unknown variant|is not one of|invalid role|must be one of|unexpected (message )?role"
    r"|not (allowed|permitted)",
    re.IGNORECASE,
)
_CONTEXT_CODES = (
    "context_length_exceeded",
    "exceed_context_size",
    "context_window_exceeded",
    "string_above_max_length",
)
_CONTEXT = re.compile(
    r"(maximum|max|model'?s?|available|the) context (length|size|window)"
    r"|context (size|length|window) (has been )?exceeded|exceeds?.{0,40}(context|max(imum)? (length|model|tokens))"
    r"|(prompt|input|request|message)s? (\([^)]{1,40}\) )?(is|are|was) too (long|large)"
    r"|longer than the (maximum )?(model|context)|too many (input |prompt )?tokens|range of input length"
    r"|(input|prompt) (token )?(length|count|size).{0,30}(too long|exceed|maximum)|exceeded model token limit"
    r"|max_tokens must be at least 1, got -|request too large|maximum number of (input )?tokens",
    re.IGNORECASE,
)
_SAMPLES = r"[`'\"]n[`'\"]|\bn ?(=|>|must|is)|(parameter|argument|supplied|->):? n\b|completion choice"
_OUTPUT_ASKED = re.compile(
    r"context length is (?P<limit>\d{1,9})\b.{0,120}?"
    r"(\((?P<input>\d{1,9}) in (the messages|(the|your) prompt)|(has|at least|contains) (?P<input2>\d{1,9}) input)",
    re.IGNORECASE | re.DOTALL,
)
_OUTPUT_VALUE = re.compile(
    r"\[ ?\d{1,9} ?, ?(?P<range>\d{2,9}) ?\]"
    r"|(at most|maximum( value)?( for [`'\"]?\w{1,40}[`'\"]?)?( is)?:?|<=|less than or equal to|no more than|up to"
    r"|must not exceed|cannot exceed|exceeds? the limit( of)?) ?[`'\"]?(?P<most>\d{2,9})",
    re.IGNORECASE,
)
_OUTPUT_FIELD = re.compile(r"\bmax_((completion|output)_)?tokens\b|completion tokens", re.IGNORECASE)


def refused_parameter(said: str, param: str) -> str | None:
    """What a refusal is about, as `capabilities.learned` takes it, where a request can do without it or with less.

    Args:
        said: The server's words.
        param: The parameter as it names it in a field of its own; empty: it does not.
    """
    if (limit := _output_limit(said, param)) is not None:
        return f"{OUTPUT_LIMIT}{limit}"
    if is_about_role(said, param):
        return SYSTEM_ROLE
    if not _REFUSAL.search(said):
        return None
    root = re.split(r"[.\[]", param)[0]
    if root in _KNOWN:
        return root
    if root not in ("", "messages", "body"):
        return root  # of the user's own `options`: nothing is tried without it, but it is named
    return _named(said)


def is_about_role(said: str, param: str) -> bool:
    """Whether it is the role of the system prompt that is refused."""
    if not _ROLE_REFUSAL.search(said):
        return False
    return re.fullmatch(r"messages\.?\[?'?0'?\]?\.role", param) is not None or _ROLE.search(said) is not None


def is_about_context(said: str, codes: str) -> bool:
    """Whether the conversation is too long."""
    return any(code in codes for code in _CONTEXT_CODES[:3]) or _CONTEXT.search(said) is not None


def _named(said: str) -> str | None:
    """The parameter that is named first; `n` is but one letter, and needs something beside it."""
    found: list[tuple[int, str]] = []
    for name in _KNOWN:
        pattern = _SAMPLES if name == "n" else rf"(?<![\w-]){name}\b"
        if (match := re.search(pattern, said)) is not None:
            found.append((match.start(), name))
    if found:
        return min(found)[1]
    quoted = re.search(r"(?:argument|parameter|field|property)s?(?: supplied)?:? [`'\"]?([a-z][a-z0-9_]{1,40})\b", said)
    return quoted[1] if quoted is not None else None


def _output_limit(said: str, param: str) -> int | None:
    """How much output a server takes, where it was the output that was too much, and not the conversation."""
    if (asked := _OUTPUT_ASKED.search(said)) is not None:
        limit, used = int(asked["limit"]), int(asked["input"] or asked["input2"])
        return limit // 2 if used <= limit // 2 else None
    if not (_OUTPUT_FIELD.search(param) or _OUTPUT_FIELD.search(said)) or "context length" in said:
        return None
    value = _OUTPUT_VALUE.search(said)
    return None if value is None else int(value["range"] or value["most"])
