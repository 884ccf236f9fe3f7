"""Which files a tool's source says that it writes, as far as that can be read off it."""

from __future__ import annotations

import ast
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from shown import shown

_WRITES = frozenset("wax+")
_WRITING_METHODS = frozenset({"touch", "write_bytes", "write_text"})
_MAX_DEPTH = 20


def foreign_writes(nodes: Sequence[ast.AST], output: str) -> Iterator[tuple[int, str]]:
    """(line, message) of each file that is opened for writing and is not the output.

    A path that is computed is let through: only the working folder can be written, and it ends with the container.
    """
    known = _constants(nodes)
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        mode, target = _opening(node)
        if mode is None:
            yield node.lineno, "opens a file in a mode that is not written out"
        elif target is not None and not _WRITES.isdisjoint(mode):
            path = _resolve(target, known)
            if path is not None and posixpath.normpath(path) != posixpath.normpath(output):
                yield node.lineno, f"writes the file {shown(path)}, and its output is {shown(output)}"


def _opening(node: ast.Call) -> tuple[str | None, ast.expr | None]:
    """(mode, file) of a call that opens a file; the mode is None where it is computed, the file where there is none."""
    match node.func:
        case ast.Name(id="open"):
            is_hidden = any(isinstance(part, ast.Starred) for part in node.args) or None in {
                k.arg for k in node.keywords
            }
            return None if is_hidden else _mode(node, 1), _argument(node, 0, "file")
        case ast.Attribute(value=value, attr="open"):
            return _mode(node, 0) or "r", value  # of any class: what is no mode is no matter of ours
        case ast.Attribute(value=value, attr=name) if name in _WRITING_METHODS:
            return "w", value
    return "r", None


def _mode(node: ast.Call, position: int) -> str | None:
    match _argument(node, position, "mode"):
        case None:
            return "r"
        case ast.Constant(value=str() as mode):
            return mode
    return None


def _argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    named = [keyword.value for keyword in node.keywords if keyword.arg == name]
    return node.args[position] if position < len(node.args) else named[0] if named else None


def _constants(nodes: Sequence[ast.AST]) -> Mapping[str, ast.expr]:
    """Names that are given a value once in the file, with it."""
    times = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    times.update(node.arg for node in nodes if isinstance(node, ast.arg))
    return {
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and times[node.targets[0].id] == 1
    }


def _resolve(node: ast.expr, known: Mapping[str, ast.expr], depth: int = _MAX_DEPTH) -> str | None:
    """The path that an expression means, or None: it cannot be read off the source."""
    if not depth:
        return None
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name) if name in known:
            return _resolve(known[name], known, depth - 1)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            parts = [left, right]
        case ast.Call(func=ast.Name(id="Path" | "PurePath" | "str"), args=parts) if parts:
            pass
        case ast.Call(func=ast.Attribute(attr="Path" | "join"), args=parts) if parts and _is_path(node):
            pass
        case _:
            return None
    resolved = [_resolve(part, known, depth - 1) for part in parts]
    return posixpath.join(*(part or "" for part in resolved)) if None not in resolved else None


def _is_path(node: ast.Call) -> bool:
    """Whether a method call is one of `pathlib.Path(...)` and `os.path.join(...)`."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="pathlib"), attr="Path"):
            return True
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr="join"):
            return True
        case ast.Attribute(value=ast.Name(id="path"), attr="join"):
            return True
    return False
