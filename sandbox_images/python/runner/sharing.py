"""Whether copies of a program may live in one process, each in modules of its own, instead of in a process each.

A process per copy keeps everything apart, and costs two switches between processes for every call. Where a program
changes nothing but what its own modules hold, loading it once more for every copy keeps the same promise: every copy
is in the state right after loading, and no copy sees another's changes. What is decided here is decided by names, and
when in doubt the answer is no; a program that cheats about it can only hand something from one of its own copies to the
next, which it could do by shared memory, too.
"""

from __future__ import annotations

import inspect as introspection
from collections.abc import Collection, Iterator
from dis import get_instructions
from types import CodeType, FunctionType, ModuleType

import numpy as np

_SETTERS = frozenset({"seterr", "seterrcall", "setbufsize", "set_printoptions"})
"""Functions of NumPy that change it for the whole process."""
_CONTEXTS = frozenset({"errstate", "printoptions"})
"""Functions of NumPy that change it for the time of a `with` block."""
_TELLTALE_NAMES = frozenset({
    "print",  # what is printed while loading would come once per copy
    "type", "setattr", "delattr", "super",  # classes are made and changed by these
    "id",
})  # fmt: skip
_TELLTALE_OPERATIONS = frozenset({"STORE_ATTR", "DELETE_ATTR", "MATCH_CLASS", "LOAD_BUILD_CLASS"})
"""Storing into an attribute may change what all copies share, and classes are a way to reach for more."""
_GENERATORS = introspection.CO_GENERATOR | introspection.CO_COROUTINE | introspection.CO_ASYNC_GENERATOR
_MODULES = frozenset({"fft", "linalg"})
"""Parts of NumPy that hold nothing but functions."""
_LAZY_NAMES = frozenset(dir(np)) - _MODULES
"""NumPy loads some of its parts when they are first asked for, so its names are more than its dictionary has."""
_HARMLESS = (np.ufunc, FunctionType, type(len), type(np.sum), type, float, int, type(None))


def can_share(codes: Collection[CodeType]) -> bool:
    """Whether a program of these modules changes nothing outside of its own modules, as far as its names tell."""
    return all(_is_contained(code) for module in codes for code in _nested(module))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _is_contained(code: CodeType) -> bool:
    parts = {part for name in code.co_names for part in name.split(".")}
    names = {part for part in parts if not part.startswith("__")}  # the compiler's own: the load check refuses others
    texts = {constant for constant in code.co_consts if isinstance(constant, str)}
    if any("__" in text for text in texts):
        return False
    if names & _TELLTALE_NAMES or not all(map(_is_harmless, names | texts)):
        return False
    if code.co_flags & _GENERATORS and names & _CONTEXTS:
        return False  # a generator that is left alone inside of one leaves its setting to the others
    return all(one.opname not in _TELLTALE_OPERATIONS for one in get_instructions(code))


def _is_harmless(name: str) -> bool:
    """Whether this name, if it is one of NumPy's, is a function without memory, a type or a number."""
    if name in _SETTERS:
        return False
    if name not in vars(np):
        return name not in _LAZY_NAMES
    meant = vars(np)[name]
    return name in _MODULES if isinstance(meant, ModuleType) else isinstance(meant, _HARMLESS)
