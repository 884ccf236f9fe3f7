"""A program in memory: its modules, their importer, and what its exceptions are called."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

from inspection import DENIED_NAMES, FOREIGN_MODULES

_BUILT_IN_EXCEPTIONS = {
    kind: kind.__name__
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)  # IOError is OSError, under its old name
}
_REACHABLE_BUILTINS = {
    name: value
    for name, value in vars(builtins).items()
    if name not in DENIED_NAMES or name in {"getattr", "setattr", "hasattr", "delattr"}
}


class Program:
    """The candidate's modules, loaded from memory into a namespace of their own.

    They are not in `sys.modules`, so a module named like one of the standard library is the program's own to the
    program and does not exist to anybody else.
    """

    def __init__(self, codes: Mapping[str, CodeType]) -> None:
        """Keep the code; nothing runs yet.

        Args:
            codes: Dotted module name to code, as `inspection.inspect` compiled it.
        """
        self._codes = codes
        self._packages = {name.rpartition(".")[0] for name in codes} | {
            name for name, code in codes.items() if code.co_filename.endswith("__init__.py")
        }
        self._packages |= {parent for package in self._packages for parent in _prefixes(package)}
        self._packages.discard("")
        self._modules: dict[str, ModuleType] = {}
        self.files = frozenset(code.co_filename for code in codes.values())

    def again(self) -> Program:
        """The same program, of which nothing has run yet."""
        return Program(self._codes)

    def load(self, name: str) -> ModuleType:
        """Run a module and its parent packages, each once.

        Raises:
            BaseException: Whatever the program raises.
        """
        module = None
        for prefix in _prefixes(name):
            module = self._modules.get(prefix)
            if module is None:
                module = self._execute(prefix)
                parent, _, last = prefix.rpartition(".")
                if parent:
                    setattr(self._modules[parent], last, module)
        if module is None:
            msg = "a module name is needed"
            raise ImportError(msg)
        return module

    def _execute(self, name: str) -> ModuleType:
        code = self._codes.get(name)
        if code is None and name not in self._packages:
            msg = f"No module named {name!r}"
            raise ModuleNotFoundError(msg, name=name)
        module = ModuleType(name)
        is_package = name in self._packages
        module.__package__ = name if is_package else name.rpartition(".")[0]
        vars(module)["__builtins__"] = _REACHABLE_BUILTINS | {"__import__": self._import}
        self._modules[name] = module
        if code is not None:
            try:
                exec(code, vars(module))
            except BaseException:
                del self._modules[name]  # as the language has it: a failed import can be tried again
                raise
        return module

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names that `__import__` has
        locals: Mapping[str, Any] | None = None,  # noqa: A002, ARG002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What `import` statements of the program call."""
        absolute = _absolute(name, globals or {}, level) if level else name
        top = absolute.split(".")[0]
        if top not in self._codes and top not in self._packages:
            if level or top not in FOREIGN_MODULES:
                msg = f"No module named {absolute!r}"
                raise ModuleNotFoundError(msg, name=absolute)
            return builtins.__import__(name, {}, {}, fromlist or (), 0)
        module = self.load(absolute)
        if not fromlist:
            return self._modules[top]
        for one in fromlist:
            inner = f"{absolute}.{one}"
            if not hasattr(module, one) and (inner in self._codes or inner in self._packages):
                self.load(inner)
        return module


def describe(error: BaseException, files: Collection[str]) -> dict[str, Any]:
    """`{exception, file, line}` of an error: where in the program it came from last.

    A class that is not built in is called `Exception`, since its name could carry data; file and line are None when no
    line of the program was running.
    """
    file = line = None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in files:
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    return {"exception": _BUILT_IN_EXCEPTIONS.get(type(error), "Exception"), "file": file, "line": line}


def _prefixes(name: str) -> list[str]:
    parts = name.split(".") if name else []
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _absolute(name: str, namespace: Mapping[str, Any], level: int) -> str:
    bits = str(namespace.get("__package__") or "").rsplit(".", level - 1)
    if len(bits) < level or not bits[0]:
        msg = "attempted relative import beyond top-level package"
        raise ImportError(msg)
    return f"{bits[0]}.{name}" if name else bits[0]
