"""The evolver's messages, taken apart: a title, and sections with one fenced block each.

Everything inside a block was written by others: it is bounded, read as JSON or matched by line, and never run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

EVOLVE = "# Evolve a database-analysis tool and instructions"
DEEP_FOCUS = "# Deep focus"
CONTINUE = "# Continue"
_MAX_CHARACTERS = 4 << 20
_FENCE = re.compile(r"(`{3,})[^`]*")


def title_of(text: str) -> str:
    """The first line of a message."""
    return text.partition("\n")[0].strip()


def fenced_sections(text: str) -> dict[str, str]:
    """The content of the first block below each heading `## NAME`.

    A heading counts only outside of blocks, and a block ends with nothing but its own fence, so no content can add or
    end a section; of two sections with one name the first counts. A block without an end counts to the end.
    """
    sections: dict[str, str] = {}
    name, fence, content = "", "", list[str]()
    for line in text[:_MAX_CHARACTERS].split("\n"):
        if fence:
            if line.strip() != fence:
                content.append(line)
                continue
            sections.setdefault(name, "\n".join(content))
            name, fence = "", ""
        elif (opening := _FENCE.fullmatch(line.rstrip())) is not None:
            fence, content = opening[1], []
        elif line.startswith("## "):
            name = line[3:].strip()
    if fence:
        sections.setdefault(name, "\n".join(content))
    sections.pop("", None)
    return sections


def json_value(text: str) -> object:
    """A bounded, strict JSON document; None: it is something else."""
    if len(text) > _MAX_CHARACTERS:
        return None
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects among the members of a JSON list; empty: it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; empty: it is none."""
    return value if isinstance(value, dict) else {}


def number(value: object) -> float | None:
    """A finite JSON number; None: it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e15 else None


def words(value: object, characters: int = 2000) -> str:
    """A JSON text, cut; empty: it is something else."""
    return value[:characters] if isinstance(value, str) else ""


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)
