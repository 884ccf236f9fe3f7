"""What can be found wrong with a task's own Python code without running it.

Only literal arguments are looked at, so what is found is certainly wrong, and what is not found may be wrong still.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from orchestrator.evaluation.task_modules import Module, at, name_of, parsed, running

ENTRY = "evaluate.py"
TAKEN_MODULES = frozenset({
    "channel", "columns", "evaluation", "evaluator_api", "expressions", "frames", "prctl", "questions", "session",
    "volume",
})  # fmt: skip
"""The evaluator's runner finds its own modules of these names first."""
_AVAILABLE = sys.stdlib_module_names | TAKEN_MODULES | {"mpmath", "numpy", "scipy", "sympy"}
"""What an evaluator can import beside its own modules."""
_CALLED_WITH = {
    "evaluate": ("program", "data", "split"),
    "generate": ("seed", "split"),
    "assess": ("program", "data", "split"),
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MISSING_MODULE = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def program_problems(files: Mapping[str, bytes], folder: str, entry: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the initial program; it is the author's own.

    Args:
        files: By path below `folder`, with `entry` among them.
        folder: In the package.
        entry: The module that is called.
        fields: Of a `TaskSpec`, as far as they are well formed.
    """
    modules, problems = parsed(files, folder)
    yield from problems
    functions = {
        name: tuple(argument.name for argument in function.arguments)
        for name, function in fields.get("functions", {}).items()
    }
    if entry in modules:
        yield from _unfit_functions(modules[entry], functions)


def evaluator_problems(files: Mapping[str, bytes], folder: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the evaluator: syntax, missing functions, imports, and names that `task.yaml` does not declare.

    Args:
        files: By path below `folder`.
        folder: In the package.
        fields: Of a `TaskSpec`, as far as they are well formed.
    """
    for path in files:
        if path.partition("/")[0].removesuffix(".py") in TAKEN_MODULES:
            yield f"{folder}/{path}: has the name of a module of ours, which would be imported; rename it"
    modules, problems = parsed(files, folder)
    yield from problems
    needed = {"evaluate"}
    if any(split.source == "generated" for split in fields.get("splits", {}).values()):
        needed.add("generate")
    if fields.get("assessment"):
        needed.add("assess")
    if ENTRY not in files:
        yield f"{folder}/{ENTRY}: does not exist; add it, with the functions {', '.join(sorted(needed))}"
    elif ENTRY in modules:
        yield from _unfit_functions(modules[ENTRY], {name: _CALLED_WITH[name] for name in needed})
        yield from _wrong_metrics(modules[ENTRY], fields)
    own = {module.name: module for module in modules.values()}
    tops = {path.partition("/")[0].removesuffix(".py") for path in files}
    for module in _imported_modules(own):
        yield from _unknown_imports(module, tops)
        yield from _undeclared_names(module, fields)


# Functions and what they return


def _unfit_functions(module: Module, called: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Functions that are not there, or cannot be called with these arguments by position."""
    functions = {node.name: node for node in module.tree.body if isinstance(node, ast.FunctionDef)}
    others = _other_names(module.tree)
    for name, arguments in sorted(called.items()):
        if name not in functions:
            if name not in others:
                yield f"{module.path}: defines no function {name!r} at its top level; add it"
        elif not _takes(functions[name].args, len(arguments)):
            call = f"{name}({', '.join(arguments)})"
            yield f"{at(module, functions[name])}: {name!r} is called by position, as {call}; let it take that"


def _other_names(tree: ast.Module) -> set[str]:
    """Names at the top level that may be functions, too: imported or assigned ones."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        else:
            found |= {n.id for n in running(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Whether so many arguments by position are right."""
    places = len(arguments.posonlyargs) + len(arguments.args)
    keywords_needed = any(default is None for default in arguments.kw_defaults)
    enough = places - len(arguments.defaults) <= count
    return enough and (count <= places or arguments.vararg is not None) and not keywords_needed


def _wrong_metrics(module: Module, fields: Mapping[str, Any]) -> Iterator[str]:
    """Dictionaries that `evaluate` returns as they stand, with other metrics than the declared ones."""
    declared = set(fields.get("metrics", {}))
    found = (node for node in module.tree.body if isinstance(node, ast.FunctionDef) and node.name == "evaluate")
    for function in found:
        for node in running(function, into=lambda inner: not isinstance(inner, _FUNCTIONS)):
            if not isinstance(node, ast.Return):
                continue
            names = _literal_keys(node.value)
            if declared and names is not None and names != declared:
                missing = [f"{name!r} is missing" for name in sorted(declared - names)]
                excess = [f"{name!r} is not declared" for name in sorted(names - declared)]
                yield f"{at(module, node)}: returns other metrics than task.yaml has: {', '.join(missing + excess)}"


def _literal_keys(node: ast.expr | None) -> set[str] | None:
    """Keys of a dictionary that is written out; None: it is none."""
    if not isinstance(node, ast.Dict):
        return None
    keys = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return keys if len(keys) == len(node.keys) else None


# Imports


def _imported_modules(own: Mapping[str, Module]) -> list[Module]:
    """The evaluator's modules that `evaluate` imports, itself included; others, such as its tests, never run."""
    found: dict[str, Module] = {}
    waiting = [ENTRY.removesuffix(".py")]
    while waiting:
        name = waiting.pop()
        if name in own and name not in found:
            found[name] = own[name]
            for _, imported, _ in _imports(own[name]):
                parts = imported.split(".")
                waiting += [".".join(parts[: length + 1]) for length in range(len(parts))]
    return [module for name, module in own.items() if name in found]


def _imports(module: Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, str, bool]]:
    """Statement, dotted name that is or may be a module, and whether the code can do without it."""
    spared = {
        inner
        for node in running(module.tree)
        if isinstance(node, ast.Try) and any(_catches_missing(handler) for handler in node.handlers)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in running(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name, node in spared) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            yield node, base, node in spared
            yield from ((node, f"{base}.{alias.name}", node in spared) for alias in node.names)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    parts = package[: max(0, len(package) - node.level + 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _MISSING_MODULE) for kind in kinds)


def _unknown_imports(module: Module, tops: set[str]) -> Iterator[str]:
    told = set()
    for node, name, is_spared in _imports(module):
        top = name.partition(".")[0]
        is_relative = isinstance(node, ast.ImportFrom) and node.level > 0
        if is_spared or is_relative or top in _AVAILABLE or top in tops or top in told:
            continue
        told.add(top)
        yield (
            f"{at(module, node)}: imports {top!r}, which its container does not have; NumPy, SciPy, SymPy, the "
            "standard library and the evaluator's own modules are there"
        )


# Names that task.yaml declares


def _undeclared_names(module: Module, fields: Mapping[str, Any]) -> Iterator[str]:
    """Calls of functions and refusals with ids that are not declared."""
    for node in running(module.tree):
        if not isinstance(node, ast.Call):
            continue
        texts: Iterable[str] = ()
        if name_of(node.func) == "Refused" and "messages" in fields:
            texts = _wrong_refusal(node, fields["messages"])
        elif name_of(node.func) == "call" and "functions" in fields:
            texts = _wrong_call(node, fields["functions"])
        yield from (f"{at(module, node)}: {text}" for text in texts)


def _wrong_refusal(node: ast.Call, messages: Mapping[str, str]) -> Iterator[str]:
    message = _literal(node, 0, "message")
    if message is not None and message not in messages:
        yield _undeclared(message, "messages", messages)


def _wrong_call(node: ast.Call, functions: Mapping[str, Any]) -> Iterator[str]:
    name = _literal(node, 0, "function")
    if name is None or _is_foreign(node.func):
        return
    if name not in functions:
        yield _undeclared(name, "functions", functions)
        return
    given = [keyword.arg for keyword in node.keywords if keyword.arg not in ("function", "ids")]
    wanted = [argument.name for argument in functions[name].arguments if argument.dtype != "symbol"]
    if None not in given and set(given) != set(wanted):  # None stands for **arguments
        taken = ", ".join(wanted) or "none by name"
        yield f"calls {name!r} with {', '.join(map(str, given)) or 'no arguments'}; it takes {taken}"


def _is_foreign(function: ast.expr) -> bool:
    """Whether this is `subprocess.call` and not `call` of instances."""
    return isinstance(function, ast.Attribute) and name_of(function.value) in sys.stdlib_module_names


def _undeclared(name: str, key: str, declared: Mapping[str, Any]) -> str:
    close = get_close_matches(name, declared, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; it declares {', '.join(declared) or 'none'}"
    return f"{name!r} is not among the `{key}` of task.yaml{hint}"


def _literal(node: ast.Call, place: int, name: str) -> str | None:
    """An argument that is written out as text; None: it is not."""
    given = [keyword.value for keyword in node.keywords if keyword.arg == name]
    value = node.args[place] if len(node.args) > place else next(iter(given), None)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
