"""Our own fixed texts on programs that fail the load check or return something malformed."""

from __future__ import annotations

from types import MappingProxyType

LOAD_CHECK = MappingProxyType({
    "not-utf-8": "the file is not UTF-8",
    "syntax-error": "the file is not valid Python",
    "too-deep": "the file is nested too deeply",
    "entry-missing": "the program's main file is missing",
    "module-name-not-allowed": "a file of the program has the name of a module that it may import",
    "import-not-allowed": "only NumPy, math and the program's own modules may be imported",
    "name-not-allowed": "a built-in function that is not allowed is used",
    "attribute-not-allowed": "an attribute that is not allowed is used",
    "double-underscore": "names with double underscores are not allowed",
    "function-missing": "a function that the task calls is not defined",
})  # fmt: skip
"""By the reason of a `rejected` frame."""

MALFORMED_REPLY = MappingProxyType({
    "reply-type": "a returned value has the wrong type",
    "reply-shape": "a returned value has the wrong shape",
    "reply-length": "a returned array has the wrong length",
    "reply-dtype": "a returned value has the wrong dtype",
    "reply-range": "a returned value is out of range",
    "reply-not-finite": "a returned value is not finite",
    "reply-expression": "a returned expression is malformed",
    "reply-nodes": "a returned expression has too many nodes",
    "reply-malformed": "the reply is malformed",
})  # fmt: skip
"""By the reason of an `invalid` verdict."""

OWN_MESSAGES = frozenset(LOAD_CHECK.values()) | frozenset(MALFORMED_REPLY.values())
