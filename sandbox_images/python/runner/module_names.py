"""Which names of a program stand for modules, followed through its own modules.

Only imports bind modules to names, since the load check refuses modules as plain values; so this is exact but for names
that a program also gives other values at the same level, which count as modules there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy_surface

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_NAMING = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
)  # fmt: skip
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class ModuleNames:
    """Names bound by imports, for every module of a program."""

    def __init__(self, trees: Mapping[str, tuple[ast.Module, bool]]) -> None:
        """Read all imports.

        Args:
            trees: Dotted name of each of the program's own modules to its tree and whether it is a package.
        """
        packages = {name.rpartition(".")[0] for name in trees if "." in name}
        self._own = frozenset(trees) | packages
        self.tops = frozenset(name.partition(".")[0] for name in trees)
        """First parts of the names of the program's own modules."""
        self._bound: dict[str, dict[str, set[str]]] = {name: {} for name in self._own}
        imports = {name: list(_imports(tree, name, is_package)) for name, (tree, is_package) in trees.items()}
        changed = True
        while changed:  # until what modules import from one another is known
            known = self._size()
            for name, found in imports.items():
                for source, imported, alias in found:
                    self._bind(name, source, imported, alias)
            changed = self._size() != known

    def bound_in(self, module: str) -> Mapping[str, Set[str]]:
        """Name in the module to the dotted names of all modules and objects of NumPy that it is imported as."""
        return self._bound[module]

    def resolved(self, bases: Set[str], names: Sequence[str]) -> Set[str]:
        """All that `base.name.name...` may be in NumPy or as a module of the program; empty: it is some object."""
        found = set(bases)
        for name in names:
            found = {
                inner
                for dotted in found
                for inner in ({f"{dotted}.{name}"} if numpy_surface.is_numpy(dotted) else self._members(dotted, name))
            }
        return found

    def is_module(self, dotted: str) -> bool:
        """Whether it is a module, of NumPy or of the program."""
        return dotted in self._own or (numpy_surface.is_numpy(dotted) and numpy_surface.is_allowed_module(dotted))

    def _size(self) -> int:
        return sum(len(targets) for names in self._bound.values() for targets in names.values())

    def _members(self, module: str, name: str) -> Set[str]:
        inner = {f"{module}.{name}"} & self._own
        return inner | self._bound.get(module, {}).get(name, set())

    def _bind(self, module: str, source: str, imported: str | None, alias: str) -> None:
        names = self._bound[module]
        if imported == "*":
            for name, targets in list(self._bound.get(source, {}).items()):
                names.setdefault(name, set()).update(targets)
            return
        found: Set[str] = {source} if imported is None else self.resolved({source}, [imported])
        known = {target for target in found if numpy_surface.is_numpy(target) or target in self._own}
        if known:
            names.setdefault(alias, set()).update(known)


def shadowed(tree: ast.Module) -> frozenset[int]:
    """Ids of the `ast.Name` nodes that mean a function's own parameter or variable, and so nothing imported."""
    found: set[int] = set()
    _shadow(tree, frozenset(), found)
    return frozenset(found)


def _imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, str | None, str]]:
    """(module named, name imported from it or None for itself, name it gets)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.name, None, alias.asname) if alias.asname else (top, None, top)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, module, is_package)
            for alias in node.names:
                yield source, alias.name, alias.asname or alias.name


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    up = node.level - is_package
    return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])


def _shadow(node: ast.AST, local: frozenset[str], found: set[int]) -> None:
    """Collect names below `node` that mean one of `local`."""
    if isinstance(node, ast.Name):
        if node.id in local:
            found.add(id(node))
    elif isinstance(node, _Function):
        body = node.body if isinstance(node.body, list) else [node.body]
        _shadow_body(node, body, (local - _declared(body)) | _locals(node.args, body), local, found)
    elif isinstance(node, ast.ClassDef):
        _shadow_body(node, node.body, local - _declared(node.body), local, found)
    elif isinstance(node, _Comprehension):
        _shadow_comprehension(node, local, found)
    else:
        for child in ast.iter_child_nodes(node):
            _shadow(child, local, found)


def _shadow_body(
    node: ast.AST, body: Sequence[ast.AST], inside: frozenset[str], outside: frozenset[str], found: set[int]
) -> None:
    """Defaults, decorators, bases and annotations are evaluated outside."""
    own = set(map(id, body))
    for child in ast.iter_child_nodes(node):
        _shadow(child, inside if id(child) in own else outside, found)


def _shadow_comprehension(node: _Comprehension, local: frozenset[str], found: set[int]) -> None:
    first = node.generators[0].iter  # evaluated outside
    targets = {
        name.id
        for clause in node.generators
        for name in ast.walk(clause.target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    _shadow(first, local, found)
    for child in ast.iter_child_nodes(node):
        for part in ast.iter_child_nodes(child) if isinstance(child, ast.comprehension) else [child]:
            if part is not first:
                _shadow(part, local | targets, found)


def _locals(arguments: ast.arguments, body: Sequence[ast.AST]) -> frozenset[str]:
    """Names that a function gives values of its own, and that nothing below it imports or takes from outside."""
    names = {argument.arg for argument in ast.walk(arguments) if isinstance(argument, ast.arg)}
    for node in _scope(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, _NAMING) and node.name is not None:
            names.add(node.name)
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return frozenset(names - imported - _declared(body))


def _declared(body: Sequence[ast.AST]) -> frozenset[str]:
    """Names that a scope declares global or nonlocal."""
    declared = (node for node in _scope(body) if isinstance(node, ast.Global | ast.Nonlocal))
    return frozenset(name for node in declared for name in node.names)


def _scope(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of one scope: what functions, classes and comprehensions inside it hold is theirs."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef | _Comprehension):
            waiting.extend(ast.iter_child_nodes(node))
