"""The load check: what a program looks like before any of it runs.

It may import NumPy, `math` and its own modules, and must not use file or code-execution functions or double-underscore
names. A module is only the base of an attribute and never a value, so that the source shows what is read of it
(`module_names`). The check is a rule of the game, so that nobody wins by reading files or by rewriting the interpreter;
what keeps a hostile program in is the container.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType

import format_fields
import module_names
import numpy_surface

DENIED_NAMES = frozenset({
    "__import__", "breakpoint", "compile", "copyright", "credits", "delattr", "dir", "eval", "exec", "exit",
    "getattr", "globals", "hasattr", "help", "input", "license", "locals", "open", "quit", "setattr", "vars",
})  # fmt: skip
"""Built-ins that open files, run code or reach into the interpreter; a program may give such a name its own value."""
ATTRIBUTE_FUNCTIONS = frozenset({"getattr", "setattr", "hasattr", "delattr"})
"""These may be called with a constant name that could also be written with a dot."""
DENIED_ATTRIBUTES = frozenset({
    "ag_code", "ag_frame", "cr_code", "cr_frame", "dump", "dumps", "f_back", "f_builtins", "f_code", "f_globals",
    "f_locals", "gi_code", "gi_frame", "tb_frame", "tb_next", "tofile",
})  # fmt: skip
"""Attributes of any object that write files or walk the interpreter's frames."""
FOREIGN_MODULES = frozenset({"numpy", "math", "__future__"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Rejected(Exception):
    """The program breaks a rule of the load check."""

    def __init__(self, reason: str, file: str, line: int | None) -> None:
        """Keep the place.

        Args:
            reason: One of the fixed ids of docs/architecture.md.
            file: The program's file.
            line: In that file; None: it concerns the whole file.
        """
        super().__init__(f"{reason} in {file}, line {line}")
        self.reason = reason
        self.file = file
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A program that passed."""

    nodes: int
    """AST nodes of all modules; docstrings and expression contexts are left out."""
    lines: int
    """Lines of all modules."""
    codes: Mapping[str, CodeType]
    """Dotted module name to compiled code; a package's own name stands for its `__init__.py`."""


def inspect(files: Mapping[str, bytes], entry: str) -> Inspected:
    """Parse, check and compile every `.py` file; other files are data that a program cannot reach.

    Raises:
        Rejected: A rule is broken; of several, the first in file and line order of the walk.
    """
    sources = {path: content for path, content in sorted(files.items()) if path.endswith(".py")}
    if entry not in sources:
        raise Rejected("entry-missing", entry, None)
    nodes = lines = 0
    codes: dict[str, CodeType] = {}
    parsed: dict[str, tuple[str, ast.Module]] = {}
    for path, content in sources.items():
        if module_name(path).partition(".")[0] in FOREIGN_MODULES:
            raise Rejected("module-name-not-allowed", path, None)
        parsed[path] = _parse(path, content)
    names = module_names.ModuleNames({
        module_name(path): (tree, path.endswith("__init__.py")) for path, (_, tree) in parsed.items()
    })  # fmt: skip
    for path, (text, tree) in parsed.items():
        all_nodes = list(ast.walk(tree))
        _check(tree, all_nodes, path, names)
        codes[module_name(path)] = _compile(tree, path)
        nodes += count_nodes(all_nodes)
        lines += len(text.splitlines())
    return Inspected(nodes=nodes, lines=lines, codes=codes)


def module_name(path: str) -> str:
    """`a/b.py` as `a.b`, and `a/__init__.py` as `a`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def count_nodes(nodes: Sequence[ast.AST]) -> int:
    """Number of AST nodes; a docstring (its statement and its constant) and expression contexts do not count."""
    contexts = sum(isinstance(node, ast.expr_context) for node in nodes)
    docstrings = sum(isinstance(node, _DOCUMENTED) and _has_docstring(node) for node in nodes)
    return len(nodes) - contexts - 2 * docstrings


def _has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str())), *_]:
            return True
    return False


def _parse(path: str, content: bytes) -> tuple[str, ast.Module]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Rejected("not-utf-8", path, content[: error.start].count(b"\n") + 1) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text, ast.parse(text, filename=path)
    except SyntaxError as error:
        raise Rejected("syntax-error", path, error.lineno) from error
    except ValueError as error:  # a NUL character, in some versions
        raise Rejected("syntax-error", path, None) from error
    except (RecursionError, MemoryError) as error:  # how the parser says that it is nested too deep
        raise Rejected("too-deep", path, None) from error


def _compile(tree: ast.Module, path: str) -> CodeType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:  # for instance a return outside a function
        raise Rejected("syntax-error", path, error.lineno) from error
    except ValueError as error:
        raise Rejected("syntax-error", path, None) from error
    except (RecursionError, MemoryError) as error:
        raise Rejected("too-deep", path, None) from error


def _check(tree: ast.Module, nodes: Sequence[ast.AST], path: str, names: module_names.ModuleNames) -> None:
    try:
        shadowed = module_names.shadowed(tree)
    except RecursionError as error:
        raise Rejected("too-deep", path, None) from error
    rules = _Rules(nodes, module_name(path), names, shadowed)
    for node in nodes:
        reason = rules.broken_by(node)
        if reason is not None:
            raise Rejected(reason, path, getattr(node, "lineno", None))


class _Rules:
    """The rules for the nodes of one module."""

    def __init__(
        self,
        nodes: Sequence[ast.AST],
        module: str,
        names: module_names.ModuleNames,
        shadowed: frozenset[int],
    ) -> None:
        self._own = names.tops
        self._names = names
        self._modules = names.bound_in(module)
        self._shadowed = shadowed
        bound = set(_bound_names(nodes))
        self._denied = DENIED_NAMES - bound
        self._attribute_functions = ATTRIBUTE_FUNCTIONS - bound
        self._called = frozenset(
            id(node.func)
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ATTRIBUTE_FUNCTIONS
        )
        self._bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        """Expressions of which only an attribute is used."""
        self._bases |= {
            id(node.args[0]) for node in nodes if isinstance(node, ast.Call) and self._reads_attribute(node)
        }
        self._class_imports = {
            id(statement)
            for node in nodes
            if isinstance(node, ast.ClassDef)
            for statement in ast.walk(node)
            if isinstance(statement, ast.Import | ast.ImportFrom)
        }

    def broken_by(self, node: ast.AST) -> str | None:
        """The reason to reject this node, or None."""
        if _holds_double_underscore(node):
            return "double-underscore"
        reason = None
        if isinstance(node, ast.Name):
            is_denied = node.id in self._denied and id(node) not in self._called
            reason = "name-not-allowed" if is_denied or self._is_module_value(node) else None
        elif isinstance(node, ast.Attribute):
            reason = self._attribute(node)
        elif isinstance(node, ast.Call):
            reason = self._call(node)
        elif isinstance(node, ast.MatchClass):
            is_denied = not (DENIED_ATTRIBUTES | DENIED_NAMES).isdisjoint(node.kwd_attrs)
            reason = "attribute-not-allowed" if is_denied else None
        elif isinstance(node, ast.Import):
            allowed = all(self._may_import(alias.name) for alias in node.names) and id(node) not in self._class_imports
            reason = None if allowed else "import-not-allowed"
        elif isinstance(node, ast.ImportFrom):
            reason = None if self._may_import_from(node) else "import-not-allowed"
        return reason

    def _may_import(self, module: str) -> bool:
        top = module.partition(".")[0]
        return top in self._own or module in {"math", "numpy"} or numpy_surface.is_allowed(module)

    def _is_module_value(self, node: ast.Name) -> bool:
        """Whether a module is used as a value, by which its attributes would be reached unseen."""
        if not isinstance(node.ctx, ast.Load) or id(node) in self._bases or id(node) in self._shadowed:
            return False
        return any(map(self._names.is_module, self._modules.get(node.id, ())))

    def _may_import_from(self, node: ast.ImportFrom) -> bool:
        if id(node) in self._class_imports:
            return False
        if node.level or node.module is None or node.module == "__future__":
            return True
        if not self._may_import(node.module):
            return False
        if not numpy_surface.is_numpy(node.module):
            return True
        names = [alias.name for alias in node.names]
        return "*" not in names and all(numpy_surface.is_allowed(f"{node.module}.{name}") for name in names)

    def _reads_attribute(self, node: ast.Call) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(value=str()), *_], keywords=[]):
                return name in self._attribute_functions
        return False

    def _call(self, node: ast.Call) -> str | None:
        if isinstance(node.func, ast.Name) and node.func.id in self._attribute_functions:
            return self._attribute_call(node)
        names = format_fields.attributes(node)
        if any(map(_is_double_underscore, names)):
            return "double-underscore"
        return None if DENIED_ATTRIBUTES.isdisjoint(names) else "attribute-not-allowed"

    def _attribute_call(self, node: ast.Call) -> str | None:
        match node.args:
            case [_, ast.Constant(value=str() as name), *_] if not node.keywords:
                return "double-underscore" if _is_double_underscore(name) else self._attribute(node)
        return "name-not-allowed"

    def _attribute(self, node: ast.Attribute | ast.Call) -> str | None:
        """Check an attribute, written with a dot or as a call of `getattr` and its like."""
        names: list[str] = []
        value: ast.expr = node
        while step := self._read(value):
            value, name = step
            names.append(name)
        if names[0] in DENIED_ATTRIBUTES:
            return "attribute-not-allowed"
        if not isinstance(value, ast.Name) or value.id not in self._modules:
            return None
        found = self._names.resolved(self._modules[value.id], names[::-1])
        if not all(numpy_surface.is_allowed(dotted) for dotted in found if numpy_surface.is_numpy(dotted)):
            return "attribute-not-allowed"
        is_base = id(node) in self._bases or id(value) in self._shadowed
        return None if is_base or not any(map(self._names.is_module, found)) else "name-not-allowed"

    def _read(self, node: ast.expr) -> tuple[ast.expr, str] | None:
        """What an expression reads an attribute of, and the attribute's name; None: it is of another kind."""
        match node:
            case ast.Attribute(value=value, attr=name):
                return value, name
            case ast.Call(args=[value, ast.Constant(value=str() as name), *_]) if self._reads_attribute(node):
                return value, name
        return None


def _holds_double_underscore(node: ast.AST) -> bool:
    """Whether an identifier of the node is one, whatever the node's kind; string constants are no identifiers."""
    if isinstance(node, ast.Constant) or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
        return False
    for value in vars(node).values():
        if isinstance(value, str) and _is_double_underscore(value):
            return True
        is_names = isinstance(value, list) and value and isinstance(value[0], str)  # for instance of `global a, b`
        if is_names and any(map(_is_double_underscore, value)):
            return True
    return False


def _is_double_underscore(name: str) -> bool:
    return "__" in name and any(part.startswith("__") for part in name.split("."))


def _bound_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Names that the module gives a value of its own somewhere."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
