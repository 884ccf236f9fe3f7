"""What the static screen lets a tool use: what analysing a database and writing a text about it needs.

The lists are a rule of the game and the auditor's help. What keeps a tool in is the container.
"""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, frozenset[str] | None] = {
    **dict.fromkeys((
        "__future__", "abc", "argparse", "base64", "binascii", "bisect", "calendar", "cmath", "collections",
        "collections.abc", "colorsys", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
        "enum", "fnmatch", "fractions", "functools", "graphlib", "hashlib", "heapq", "html", "itertools", "json",
        "keyword", "math", "numbers", "os.path", "pathlib", "pprint", "random", "re", "sqlite3", "statistics",
        "struct", "textwrap", "time", "traceback", "unicodedata", "warnings", "zlib",
    )),
    "io": frozenset({"BytesIO", "StringIO", "TextIOWrapper"}),
    "logging": frozenset({
        "CRITICAL", "DEBUG", "ERROR", "Formatter", "INFO", "Logger", "NullHandler", "StreamHandler", "WARNING",
        "basicConfig", "critical", "debug", "error", "exception", "getLogger", "info", "warning",
    }),
    "operator": frozenset({
        "add", "and_", "contains", "countOf", "eq", "floordiv", "ge", "getitem", "gt", "itemgetter", "le", "lt", "mod",
        "mul", "ne", "neg", "not_", "or_", "pow", "sub", "truediv", "truth", "xor",
    }),
    "os": frozenset({
        "PathLike", "fspath", "getcwd", "linesep", "listdir", "makedirs", "mkdir", "path", "scandir", "sep", "stat",
    }),
    "string": frozenset({
        "Template", "ascii_letters", "ascii_lowercase", "ascii_uppercase", "capwords", "digits", "hexdigits",
        "octdigits", "printable", "punctuation", "whitespace",
    }),
    "sys": frozenset({
        "argv", "byteorder", "exc_info", "exit", "float_info", "getsizeof", "intern", "maxsize", "path", "platform",
        "setrecursionlimit", "stderr", "stdin", "stdout", "version", "version_info",
    }),
    "types": frozenset({"MappingProxyType", "SimpleNamespace"}),
    "typing": frozenset({  # nothing that evaluates an annotation
        "Annotated", "Any", "Callable", "ClassVar", "Collection", "Counter", "DefaultDict", "Deque", "Dict", "Final",
        "FrozenSet", "Generator", "Generic", "Hashable", "IO", "Iterable", "Iterator", "List", "Literal", "Mapping",
        "Match", "MutableMapping", "MutableSequence", "NamedTuple", "NewType", "NoReturn", "Optional", "Pattern",
        "Protocol", "Self", "Sequence", "Set", "Sized", "TYPE_CHECKING", "TextIO", "Tuple", "Type", "TypeAlias",
        "TypeVar", "TypedDict", "Union", "cast", "overload",
    }),
}  # fmt: skip
"""Module to the names that may be used of it; None: all that are public and no modules."""

HOMONYMS = frozenset({"datetime.time"})
"""Names of modules that mean something harmless in another module."""

DENIED_NAMES = frozenset({
    "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "eval", "exec", "globals",
    "locals", "vars",
})  # fmt: skip
"""Built-ins that run code from text or reach into the interpreter; also as values, whatever a tool calls so itself."""

ATTRIBUTE_FUNCTIONS = frozenset({"getattr", "setattr", "hasattr", "delattr"})
"""These may be called with a constant name that could also be written with a dot."""

DENIED_ATTRIBUTES = frozenset({
    "ag_code", "ag_frame", "cr_code", "cr_frame", "enable_load_extension", "f_back", "f_builtins", "f_code",
    "f_globals", "f_locals", "gi_code", "gi_frame", "hardlink_to", "load_extension", "modules", "symlink_to",
    "tb_frame", "tb_next",
})  # fmt: skip
"""Attributes of any object that walk the interpreter's frames, load machine code or make links."""

DUNDERS = frozenset({
    "__all__", "__author__", "__cause__", "__class__", "__contains__", "__context__", "__doc__", "__enter__", "__eq__",
    "__exit__", "__file__", "__future__", "__ge__", "__getitem__", "__gt__", "__hash__", "__init__", "__iter__",
    "__le__", "__len__", "__lt__", "__main__", "__name__", "__ne__", "__next__", "__post_init__", "__qualname__",
    "__repr__", "__slots__", "__str__", "__version__",
})  # fmt: skip
"""Names with double underscores that may be defined, read or written as text."""
