"""Which part of NumPy a program may name: the computing part, without files, system access and internals."""

from __future__ import annotations

import importlib
import importlib.util
from functools import lru_cache
from types import ModuleType

import numpy

_MODULES = frozenset({
    "numpy", "numpy.char", "numpy.dtypes", "numpy.emath", "numpy.exceptions", "numpy.fft", "numpy.lib",
    "numpy.lib.scimath", "numpy.lib.stride_tricks", "numpy.linalg", "numpy.ma", "numpy.polynomial",
    "numpy.polynomial.chebyshev", "numpy.polynomial.hermite", "numpy.polynomial.hermite_e",
    "numpy.polynomial.laguerre", "numpy.polynomial.legendre", "numpy.polynomial.polynomial", "numpy.random",
    "numpy.rec", "numpy.strings", "numpy.typing",
})  # fmt: skip
_FILE_FUNCTIONS = frozenset({
    "DataSource", "dump", "dumps", "fromfile", "fromregex", "genfromtxt", "get_include", "info", "load", "loads",
    "loadtxt", "mafromtxt", "memmap", "open_memmap", "recfromcsv", "recfromtxt", "save", "savetxt", "savez",
    "savez_compressed", "show_config", "show_runtime", "source", "test", "tofile",
})  # fmt: skip


def is_numpy(module: str) -> bool:
    """Whether a dotted name lies in NumPy."""
    return module == "numpy" or module.startswith("numpy.")


@lru_cache(maxsize=4096)
def is_allowed(dotted: str) -> bool:
    """Whether a program may name this: a module of the list above, or something in one that is not a file function.

    Every module on the way is checked, so that `numpy.lib.npyio.os.system` falls at `npyio`. What does not exist is
    allowed; it raises when the program runs.
    """
    if not is_numpy(dotted):
        return False
    current: object = numpy
    name = "numpy"
    for part in dotted.split(".")[1:]:
        if part in _FILE_FUNCTIONS or part.startswith("_"):
            return False
        if isinstance(current, ModuleType):
            name = f"{name}.{part}"
            if name in _MODULES and _is_module(name):
                current = importlib.import_module(name)
                continue
            current = vars(current).get(part)
            if name not in _MODULES and (isinstance(current, ModuleType) or (current is None and _is_module(name))):
                return False
    return True


@lru_cache(maxsize=4096)
def is_allowed_module(dotted: str) -> bool:
    """Whether a name that is allowed is a module, and no object in one."""
    current: object = numpy
    for part in dotted.split(".")[1:]:
        current = getattr(current, part, None) if isinstance(current, ModuleType) else None
    return isinstance(current, ModuleType) or dotted in _MODULES


def _is_module(name: str) -> bool:
    """Whether there is a module of this name below a package; nothing but its parents is imported to find out."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
