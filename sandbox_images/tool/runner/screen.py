"""The static screen: what a tool's source shows before any of it runs.

Defence in depth: it keeps honest tools to their job and tells auditors what a dishonest one reaches for. Somebody will
get around it, and then holds a Python interpreter in a sealed container.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import writing
from rules import ATTRIBUTE_FUNCTIONS, DENIED_ATTRIBUTES, DENIED_NAMES, DUNDERS, HOMONYMS, MODULES
from shown import shown

_DUNDER = re.compile(r"__\w+__")
_FIELD = re.compile(r"[.\[](__\w+__)")
"""How the text of a format reads an attribute."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that no tool may have."""

    file: str
    line: int
    message: str


def screen(files: Mapping[str, bytes], output: str) -> list[Finding]:
    """Everything that is refused, in the order of files and lines; empty: nothing is.

    Args:
        files: Path to content of every file of the tool.
        output: The file that it writes, or `stdout`.
    """
    own = frozenset(PurePosixPath(path).stem for path in files)
    found: set[Finding] = set()
    for path, content in files.items():
        stem = PurePosixPath(path).stem
        if stem in sys.stdlib_module_names:
            found.add(Finding(path, 1, f"is named like the module {shown(stem)} of the standard library"))
        found.update(Finding(path, line, message) for line, message in _of_file(content, own, output))
    return sorted(found)


def _of_file(content: bytes, own: frozenset[str], output: str) -> Iterator[tuple[int, str]]:
    try:
        tree = _parse(content)
    except SyntaxError as error:  # also an encoding that is unknown
        yield error.lineno or 1, f"is no valid Python: {shown(error.msg)}"
    except UnicodeDecodeError as error:
        yield content[: error.start].count(b"\n") + 1, "is no UTF-8 text"
    except (RecursionError, MemoryError):
        yield 1, "is nested too deep to be read"
    else:
        nodes = list(ast.walk(tree))
        rules = _Rules(nodes, own)
        for node in nodes:
            for message in rules.broken_by(node):
                yield getattr(node, "lineno", 1), message
        yield from writing.foreign_writes(nodes, output)


def _parse(content: bytes) -> ast.Module:
    """The tree that the interpreter would run.

    Raises:
        SyntaxError: It is no Python, or asks to be read in another encoding than it is screened in.
        UnicodeDecodeError: It is no text.
        RecursionError: It is too deep; or a `MemoryError`, as the parser has it.
    """
    text = content.decode("utf-8-sig")
    if "\0" in text:
        raise SyntaxError("it holds a NUL character")
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    if encoding not in ("utf-8", "utf-8-sig"):
        raise SyntaxError(f"it asks for the encoding {encoding}", (None, 1, None, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


class _Rules:
    """The rules for the nodes of one file."""

    def __init__(self, nodes: Sequence[ast.AST], own: frozenset[str]) -> None:
        self._own = own
        self._modules = dict(_modules(nodes))
        """Name in the file to the module it was imported as."""
        self._bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        self._called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}

    def broken_by(self, node: ast.AST) -> Iterator[str]:
        """What this node is refused for."""
        match node:
            case ast.Import(names=names):
                yield from (f"imports {shown(alias.name)}" for alias in names if not self._may_import(alias.name))
            case ast.ImportFrom():
                yield from self._import_from(node)
            case ast.Name(id=name, ctx=ast.Load()):
                yield from self._name(node, name)
            case ast.Attribute(attr=name):
                yield from self._attribute(node, name)
            case ast.Call(func=ast.Name(id=name)) if name in ATTRIBUTE_FUNCTIONS:
                yield from _attribute_call(node, name)
            case ast.Constant(value=str() as text):
                if _is_denied(text) or any(map(_is_denied, _FIELD.findall(text))):
                    yield f"holds the name of an internal attribute in the text {shown(text)}"
            case ast.MatchClass(kwd_attrs=names):
                yield from (f"reads the attribute {shown(name)}" for name in names if _is_denied(name))

    def _may_import(self, module: str) -> bool:
        return module in MODULES or module in self._own

    def _import_from(self, node: ast.ImportFrom) -> Iterator[str]:
        module = node.module or ""
        if node.level:
            yield f"imports {shown('.' * node.level + module)} relatively; a tool's files import each other by name"
        elif not self._may_import(module):
            yield f"imports {shown(module)}"
        elif module in MODULES and module != "__future__":
            for alias in node.names:
                if alias.name == "*":
                    yield f"imports everything from {shown(module)}"
                elif not _may_use(module, alias.name):
                    yield f"imports {shown(f'{module}.{alias.name}')}"

    def _name(self, node: ast.Name, name: str) -> Iterator[str]:
        if name in DENIED_NAMES:
            yield f"uses {shown(name)}"
        elif name in ATTRIBUTE_FUNCTIONS | {"open"} and id(node) not in self._called:
            yield f"uses the function {shown(name)} as a value"
        elif name in self._modules and id(node) not in self._bases:
            yield f"uses the module {shown(self._modules[name])} as a value"

    def _attribute(self, node: ast.Attribute, name: str) -> Iterator[str]:
        if _is_denied(name):
            yield f"reads the attribute {shown(name)}"
        module = self._module_of(node.value)
        if module is None:
            return
        dotted = f"{module}.{name}"
        if not _may_use(module, name):
            yield f"uses {shown(dotted)}"
        elif dotted in MODULES and id(node) not in self._bases:
            yield f"uses the module {shown(dotted)} as a value"

    def _module_of(self, node: ast.expr) -> str | None:
        """The allowed module that an expression names; None: it is something else."""
        match node:
            case ast.Name(id=name):
                return self._modules.get(name)
            case ast.Attribute(value=ast.Name(id=base), attr=name) if base in self._modules:
                dotted = f"{self._modules[base]}.{name}"
                return dotted if dotted in MODULES else None
        return None


def _modules(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """(name in the file, allowed module it stands for) of every import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                if module in MODULES:
                    yield alias.asname or module, module
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                if f"{node.module}.{alias.name}" in MODULES:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _may_use(module: str, name: str) -> bool:
    """Whether `name` of an allowed module is no way to another one."""
    dotted, names = f"{module}.{name}", MODULES[module]
    if names is not None:
        return name in names
    if dotted in MODULES or dotted in HOMONYMS or name == module or name in DUNDERS:
        return True
    return name not in sys.stdlib_module_names and not name.startswith("_") and not _is_submodule(module, name)


def _is_submodule(module: str, name: str) -> bool:
    """Whether a name of a package is one of its modules, in which everything that it imports can be had."""
    return name in _submodules(module)


@cache
def _submodules(module: str) -> frozenset[str]:
    folder = Path(sysconfig.get_path("stdlib"), *module.split("."))
    return frozenset(path.name.partition(".")[0] for path in folder.iterdir()) if folder.is_dir() else frozenset()


def _attribute_call(node: ast.Call, function: str) -> Iterator[str]:
    match node.args:
        case [_, ast.Constant(value=str() as name), *_]:
            if _is_denied(name):
                yield f"reads the attribute {shown(name)}"
        case _:
            yield f"calls {shown(function)} with a name that is not written out"


def _is_denied(name: str) -> bool:
    return name in DENIED_ATTRIBUTES or (_DUNDER.fullmatch(name) is not None and name not in DUNDERS)
