"""YAML as people write settings: bounded, and without what makes a file say something else than it seems to."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable
from typing import Any, cast

import yaml

from orchestrator.errors import InputError

MAX_BYTES = 256 << 10
MAX_DEPTH = 32
MAX_NUMBER_LENGTH = 64
"""Characters of a number; whole numbers have no bound of their own, and long ones take quadratic time."""
_MERGE_TAG = "tag:yaml.org,2002:merge"
_NUMBER_TAGS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_MISLEADING = re.compile(r"[-+]?(?:(?P<octal>0[0-9_]+)|[0-9][0-9_]*(?::[0-9.:_]*)+)")
"""What YAML 1.1 reads in base 8 or 60: `pids: 0400` and `pids: 4:16` would be 256."""
_SHOWN_CHARACTERS = 80
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHOWN_CHARACTERS


def load_yaml(raw: bytes, source: str) -> Any:  # noqa: ANN401 - any document
    """The one document of a file, or None if the file is empty.

    Args:
        raw: UTF-8, at most `MAX_BYTES`.
        source: The file, for messages.

    Raises:
        InputError: It is too large or too deep, is not YAML, repeats a key, uses aliases, merges or tags of programs,
            or holds a value that is none of its kind; the message names file and line.
    """
    if len(raw) > MAX_BYTES:
        msg = f"{source}: has over {MAX_BYTES} bytes; make it smaller"
        raise InputError(msg)
    try:
        return yaml.load(raw.decode("utf-8"), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader, and stricter
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{source}: {_where(error, raw)}"
        raise InputError(msg) from error


def shown(value: object) -> str:
    """A value of a document for a message, cut before it is written out and not only afterwards."""
    text = _SHORT.repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


class _StrictLoader(yaml.SafeLoader):
    """Refuses aliases (nested ones grow without bound), merges, repeated keys, depth, and malformed scalars."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as PyYAML has it
        """Refuse aliases and deep nesting before anything is built of them."""
        event = cast(Any, self).peek_event()
        if isinstance(event, yaml.events.AliasEvent):
            raise _fault("aliases (`*name`) are not allowed; write the value out", event)
        if self._depth == MAX_DEPTH:
            raise _fault(f"nested more than {MAX_DEPTH} deep; make it flatter", event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401 - as PyYAML has it
        """Turn whatever a constructor raises over a malformed scalar into one kind of error."""
        if node.tag in _NUMBER_TAGS and len(str(node.value)) > MAX_NUMBER_LENGTH:
            raise _fault(f"a number of over {MAX_NUMBER_LENGTH} characters; write a shorter one, or quote it", node)
        try:
            value = super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            kind = node.tag.rpartition(":")[2]
            raise _fault(f"{shown(node.value)} is no {kind}; correct it, or quote it if text is meant", node) from error
        if node.tag in _NUMBER_TAGS and (found := _MISLEADING.fullmatch(node.value)):
            base = 8 if found["octal"] else 60
            raise _fault(f"{shown(node.value)} is {value} in YAML (base {base}); write {value}, or what you mean", node)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a key that occurs twice, of which YAML would silently keep the last."""
        names: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("a key is a list or mapping; use plain text", key)
            if key.tag == _MERGE_TAG:
                raise _fault("merges (`<<`) are not allowed; write the values out", key)
            if key.value in names:
                raise _fault(f"key {shown(key.value)} occurs twice; keep one of them", key)
            names.add(key.value)
        mapping = super().construct_mapping(node, deep)
        if len(mapping) != len(node.value):  # written in two ways, for instance 1 and 0x1
            raise _fault("a key occurs twice; keep one of them", node)
        return mapping


def _fault(problem: str, place: yaml.Node | yaml.Event) -> yaml.constructor.ConstructorError:
    mark: Any = place.start_mark  # typed as one of three classes with the same fields
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def _where(error: UnicodeDecodeError | yaml.YAMLError, raw: bytes) -> str:
    """Line and problem in one short line."""
    if isinstance(error, UnicodeDecodeError):
        line = raw.count(b"\n", 0, error.start) + 1
        return f"line {line}: not UTF-8; save it as UTF-8"
    if isinstance(error, yaml.reader.ReaderError):
        line = raw.decode("utf-8").count("\n", 0, error.position) + 1
        return f"line {line}: character {error.character!r} is not allowed in YAML"
    mark = getattr(error, "problem_mark", None)
    problem = " ".join(str(getattr(error, "problem", None) or "not YAML").split())
    cut = problem if len(problem) <= 2 * _SHOWN_CHARACTERS else problem[: 2 * _SHOWN_CHARACTERS] + "..."
    return cut if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {cut}"
