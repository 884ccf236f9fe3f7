"""A task's own Python modules, parsed and never run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module that could be parsed."""

    path: str
    """In the package, for messages."""
    name: str
    """Dotted."""
    is_package: bool
    tree: ast.Module


def parsed(files: Mapping[str, bytes], folder: str) -> tuple[dict[str, Module], list[str]]:
    """Modules by path below `folder`, and what is wrong with those that cannot be parsed."""
    modules: dict[str, Module] = {}
    problems = []
    for path, source in files.items():
        if not path.endswith(".py"):
            continue
        place = f"{folder}/{path}"
        try:
            tree = ast.parse(source, place)
        except SyntaxError as error:
            problems.append(f"{place}{_line(error.lineno)}: is not Python: {error.msg}")
        except ValueError as error:  # null bytes
            problems.append(f"{place}: is not Python: {error}")
        except (RecursionError, MemoryError):
            problems.append(f"{place}: is nested too deeply for Python to read; make it flatter")
        else:
            name = path.removesuffix(".py").replace("/", ".")
            is_package = name == "__init__" or name.endswith(".__init__")
            dotted = name.removesuffix(".__init__")
            modules[path] = Module(path=place, name=dotted, is_package=is_package, tree=tree)
    return modules, problems


def _line(number: int | None) -> str:
    return "" if number is None else f", line {number}"


def at(module: Module, node: ast.expr | ast.stmt) -> str:
    """Where something stands, for messages."""
    return f"{module.path}, line {node.lineno}"


def name_of(node: ast.expr) -> str | None:
    """The last part of a name such as `typing.TYPE_CHECKING`; None: it is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def running(root: ast.AST, into: Callable[[ast.AST], bool] = lambda _: True) -> Iterator[ast.AST]:
    """A node and what lies below it, in the order of the text; not what only type checkers read.

    Args:
        root: Where to begin.
        into: Whether to look at an inner node at all.
    """
    waiting = [root]  # and no recursion, which deeply nested code would end
    while waiting:
        node = waiting.pop()
        yield node
        is_typing = isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING"
        below = node.orelse if isinstance(node, ast.If) and is_typing else list(ast.iter_child_nodes(node))
        waiting += [inner for inner in reversed(below) if into(inner)]
