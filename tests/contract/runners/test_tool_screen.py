"""The static screen of analysis tools: what it refuses, why and where; and what honest tools may write."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evaluation.tool_claims import MAX_MESSAGE
from orchestrator.methods.robophd.naive import naive_package

OUTPUT = "tool_output/analysis.md"
Findings = list[tuple[int, str]]
Screen = Callable[..., Findings]

IMPORTS = [
    "socket", "subprocess", "ctypes", "multiprocessing", "threading", "importlib", "pickle", "marshal", "shutil",
    "urllib.request", "http.client", "ssl", "signal", "resource", "asyncio", "tempfile", "inspect", "gc",
    "builtins", "code", "runpy", "mmap", "fcntl", "pty", "atexit", "codecs", "posix", "_thread", "_io", "numpy", "os.x",
]  # fmt: skip
REFUSED = [
    ("from os import system", "imports 'os.system'", 1),
    ("from os import path, environ", "imports 'os.environ'", 1),
    ("from socket import socket", "imports 'socket'", 1),
    ("from math import *", "imports everything from 'math'", 1),
    ("from pathlib import os", "imports 'pathlib.os'", 1),
    ("from json import codecs as c", "imports 'json.codecs'", 1),
    ("from sqlite3 import _sqlite3", "imports 'sqlite3._sqlite3'", 1),
    ("from . import helper", "imports '.' relatively; a tool's files import each other by name", 1),
    ("import os\nos.system('ls')", "uses 'os.system'", 2),
    ("import os as o\n\no.fork()", "uses 'os.fork'", 3),
    ("import os\nprint(os.environ['HOME'])", "uses 'os.environ'", 2),
    ("import os\nos.path.os.remove('x')", "uses 'os.path.os'", 2),
    ("from os import path\npath.sys", "uses 'os.path.sys'", 2),
    ("import os\nf = os", "uses the module 'os' as a value", 2),
    ("import os\nf = os.path", "uses the module 'os.path' as a value", 2),
    ("import json\nf(json)", "uses the module 'json' as a value", 2),
    ("import sys\nsys.modules['os']", "uses 'sys.modules'", 2),
    ("import sys\nsys._getframe()", "uses 'sys._getframe'", 2),
    ("import sys\nsys.addaudithook(print)", "uses 'sys.addaudithook'", 2),
    ("import random\nrandom._os.listdir('/')", "uses 'random._os'", 2),
    ("import operator\noperator.attrgetter('a')", "uses 'operator.attrgetter'", 2),
    ("import string\nstring.Formatter()", "uses 'string.Formatter'", 2),
    ("import logging\nlogging.FileHandler('x')", "uses 'logging.FileHandler'", 2),
    ("from types import FunctionType", "imports 'types.FunctionType'", 1),
    ("import json\njson.decoder.re.enum.sys", "uses 'json.decoder'", 2),
    ("import sqlite3\nsqlite3.dbapi2.time", "uses 'sqlite3.dbapi2'", 2),
    ("from json import decoder", "imports 'json.decoder'", 1),
    ("import typing\ntyping.get_type_hints(f)", "uses 'typing.get_type_hints'", 2),
    ("from typing import ForwardRef", "imports 'typing.ForwardRef'", 1),
    ("x.modules['os']", "reads the attribute 'modules'", 1),
    ("import io\nio.open('x')", "uses 'io.open'", 2),
    ("exec('1')", "uses 'exec'", 1),
    ("x = [eval]", "uses 'eval'", 1),
    ("compile('1', '', 'eval')", "uses 'compile'", 1),
    ("__import__('os')", "uses '__import__'", 1),
    ("__builtins__['open']", "uses '__builtins__'", 1),
    ("globals()", "uses 'globals'", 1),
    ("getattr(x, name)", "calls 'getattr' with a name that is not written out", 1),
    ("getattr(x, '__globals__')", "reads the attribute '__globals__'", 1),
    ("g = getattr", "uses the function 'getattr' as a value", 1),
    ("o = open", "uses the function 'open' as a value", 1),
    ("().__class__.__base__", "reads the attribute '__base__'", 1),
    ("f.__globals__", "reads the attribute '__globals__'", 1),
    ("e.__traceback__", "reads the attribute '__traceback__'", 1),
    ("e.tb_frame.f_back", "reads the attribute 'f_back'", 1),
    ("c.enable_load_extension(True)", "reads the attribute 'enable_load_extension'", 1),
    ("p.symlink_to('/etc/passwd')", "reads the attribute 'symlink_to'", 1),
    ("'{0.__self__}'.format(x)", "holds the name of an internal attribute in the text '{0.__self__}'", 1),
    ("x = 'f_globals'", "holds the name of an internal attribute in the text 'f_globals'", 1),
    ("x = '__subclasses__'", "holds the name of an internal attribute in the text '__subclasses__'", 1),
    ("match x:\n    case A(__globals__=g):\n        pass", "reads the attribute '__globals__'", 2),
    ("open('notes.txt', 'w')", f"writes the file 'notes.txt', and its output is '{OUTPUT}'", 1),
    ("open(file='/etc/x', mode='a')", f"writes the file '/etc/x', and its output is '{OUTPUT}'", 1),
    ("open('tool_output/../x', 'x')", f"writes the file 'tool_output/../x', and its output is '{OUTPUT}'", 1),
    ("open('database.sqlite', 'r+b')", f"writes the file 'database.sqlite', and its output is '{OUTPUT}'", 1),
    ("open(OUT, mode)", "opens a file in a mode that is not written out", 1),
    ("open(*['x', 'w'])", "opens a file in a mode that is not written out", 1),
    ("open('x', **o)", "opens a file in a mode that is not written out", 1),
    (
        "from pathlib import Path\nOUT = Path('a') / 'b.md'\nOUT.write_text('x')",
        f"writes the file 'a/b.md', and its output is '{OUTPUT}'",
        3,
    ),
    ("import pathlib\npathlib.Path('b').open('w')", f"writes the file 'b', and its output is '{OUTPUT}'", 2),
    ("import os\nopen(os.path.join('a', 'b'), 'w')", f"writes the file 'a/b', and its output is '{OUTPUT}'", 2),
    ("def f(:", "is no valid Python: 'invalid syntax'", 1),
    ("x = 1\n\nx = = 2", "is no valid Python: 'invalid syntax'", 3),
    (b"x = '\xff'", "is no UTF-8 text", 1),
    ("x = '\0'", "is no valid Python: 'it holds a NUL character'", 1),
    ("# coding: utf-7\nx = 1", "is no valid Python: 'it asks for the encoding utf-7'", 1),
    ("# coding: latin-1\nx = 1", "is no valid Python: 'it asks for the encoding iso-8859-1'", 1),
    ("# coding: nonsense\nx = 1", "is no valid Python: 'unknown encoding: nonsense'", 1),
    ("x = " + "(" * 1000 + ")" * 1000, "is no valid Python: 'too many nested parentheses'", 1),
    ("x = " + "-" * 100_000 + "1", "is nested too deep to be read", 1),
    ("import \N{GREEK SMALL LETTER ALPHA}", r"imports '\u03b1'", 1),
    ("import " + "a" * 300, f"imports '{'a' * 80}...'", 1),
]
HONEST = [
    """
    from __future__ import annotations
    import argparse, collections.abc, csv, datetime, functools, itertools, json, math, os, re, sqlite3, statistics, sys
    from collections import Counter, defaultdict
    from dataclasses import dataclass, field
    from datetime import date, datetime as moment, time, timezone
    from operator import itemgetter
    from pathlib import Path
    from typing import Any

    OUTPUT = Path("tool_output") / "analysis.md"

    @dataclass
    class Table:
        name: str
        rows: int = 0
        columns: list[str] = field(default_factory=list)

        def __post_init__(self):
            self.kind = self.__class__.__name__

        def __repr__(self) -> str:
            'As self.__class__.__name__ has it.'
            return f"{type(self).__name__}({self.name!r})"

    def quoted(name):
        return '"' + name.replace('"', '""') + '"'

    def main(argv=None):
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--rows", type=int, default=5)
        options = parser.parse_args(argv)
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        connection = sqlite3.connect("file:database.sqlite?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        tables = [Table(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        pattern = re.compile(r"^\\d+$")
        rows = getattr(options, "rows", 5)
        try:
            text = json.dumps([table.name for table in sorted(tables, key=itemgetter(0) if False else str)])
        except Exception as error:
            print(f"failed: {type(error).__name__}: {error}", file=sys.stderr)
            sys.exit(1)
        os.makedirs("tool_output", exist_ok=True)
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        with open(OUTPUT, "w", encoding="utf-8") as file:
            file.write(text)
        with OUTPUT.open("a") as file:
            file.write("the end")
        OUTPUT.write_text(OUTPUT.read_text())

    if __name__ == "__main__":
        main()
    """,
    """
    import logging
    import os.path
    import types
    import helper
    log = logging.getLogger(__name__)
    log.warning("on %s", types.SimpleNamespace(a=1))
    from helper import table_names as names
    with open(os.path.join("tool_output", "analysis.md"), "w") as out, open("database.sqlite", "rb") as raw:
        out.write(helper.text(raw.read(16)))
    for name in ("a", "b"):
        with open(f"tool_output/{name}.md", mode="w") as part:
            part.write(name)
    """,
]


@pytest.fixture(scope="module")
def module(assembled: Mapping[str, Path]) -> Iterator[ModuleType]:
    """The runner's own module, which needs no process for itself."""
    sys.path.insert(0, str(assembled["tool"]))
    try:
        yield importlib.import_module("screen")
    finally:
        sys.path.remove(str(assembled["tool"]))
        for name in ("rules", "screen", "writing"):
            del sys.modules[name]


@pytest.fixture
def screen(module: ModuleType) -> Screen:
    """(line, message) of what is refused of one file."""

    def run(source: str | bytes, output: str = OUTPUT) -> Findings:
        raw = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
        found = module.screen({"tools/analyze.py": raw, "tools/helper.py": b""}, output)
        assert {finding.file for finding in found} <= {"tools/analyze.py"}
        return [(finding.line, finding.message) for finding in found]

    return run


@pytest.mark.parametrize("name", IMPORTS)
def test_what_a_tool_does_not_need_is_not_imported(screen: Screen, name: str) -> None:
    assert screen(f"import json\nimport {name}\n") == [(2, f"imports '{name}'")]
    assert screen(f"def f():\n    from {name} import x\n") == [(2, f"imports '{name}'")]


@pytest.mark.parametrize(("source", "message", "line"), REFUSED, ids=[str(case[0])[:40] for case in REFUSED])
def test_what_breaks_a_rule_is_found_with_its_place(
    screen: Screen, source: str | bytes, message: str, line: int
) -> None:
    assert (line, message) in screen(source)


@pytest.mark.parametrize("letter", ["x", "é", "表", "\U00020000", "\\", "'", "\u202e"])
def test_no_message_is_longer_than_the_trusted_side_takes(screen: Screen, letter: str) -> None:
    """Whatever stands in the source: a message that is too long would be taken for a fault of ours."""
    long = letter * 300
    name = long if long.isidentifier() else "x" * 300
    text, format_text = repr(long), repr(long + "{0.__globals__}")
    source = f"""
import {name}, json
from {name} import y
from json import {name}
from .{name} import z
json.{name}
open({text}, "w")
p = [{format_text}]
getattr(f, {name})
match f:
    case C(__{name}__=1): pass
f.__{name}__
"""
    found = screen(source.replace("getattr(f, ", "getattr(json, "), output="tool_output/" + "表" * 100)
    assert len(found) >= 7
    assert all(message.isprintable() and len(message) <= MAX_MESSAGE for _, message in found), found


def test_everything_is_found_in_the_order_of_the_lines(screen: Screen) -> None:
    assert screen("import socket, ssl\neval('1')\nimport os\nos.fork()\n") == [
        (1, "imports 'socket'"),
        (1, "imports 'ssl'"),
        (2, "uses 'eval'"),
        (4, "uses 'os.fork'"),
    ]


@pytest.mark.parametrize("source", HONEST)
def test_an_honest_tool_passes(screen: Screen, source: str) -> None:
    assert screen(textwrap.dedent(source)) == []


def test_the_package_that_runs_begin_with_passes(module: ModuleType) -> None:
    package = naive_package()
    assert module.screen(dict(package.tool_files), package.manifest.output) == []


def test_a_file_named_like_a_module_of_the_library_is_refused(module: ModuleType) -> None:
    found = module.screen({"tools/analyze.py": b"import threading\n", "tools/threading.py": b""}, OUTPUT)
    assert [(finding.file, finding.line, finding.message) for finding in found] == [
        ("tools/threading.py", 1, "is named like the module 'threading' of the standard library")
    ]


def test_a_tool_that_prints_writes_no_file(screen: Screen) -> None:
    assert screen("open('tool_output/analysis.md', 'w')", "stdout") == [
        (1, "writes the file 'tool_output/analysis.md', and its output is 'stdout'")
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_to_an_end(module: ModuleType, content: bytes) -> None:
    for finding in module.screen({"tools/a.py": content}, OUTPUT):
        assert finding.line >= 1
        assert finding.message.isprintable()
        assert len(finding.message) < 400
