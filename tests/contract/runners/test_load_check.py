"""The load check of candidate programs: what is rejected, why and where; and what honest programs may write."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Launch

F = "\ndef f(x):\n    return 1.0\n"
FUNCTIONS = {"f": {"arguments": [{"name": "x", "dtype": "int64"}], "returns": {"dtype": "float64"}}}

REJECTED = [
    ("import os", "import-not-allowed", 1),
    ("\nimport sys as math", "import-not-allowed", 2),
    ("import numpy, os", "import-not-allowed", 1),
    ("from os import path", "import-not-allowed", 1),
    ("import scipy", "import-not-allowed", 1),
    ("import math.os", "import-not-allowed", 1),
    ("import numpy.f2py", "import-not-allowed", 1),
    ("import numpy.lib.npyio", "import-not-allowed", 1),
    ("import numpy.ctypeslib as c", "import-not-allowed", 1),
    ("from numpy import load", "import-not-allowed", 1),
    ("from numpy import *", "import-not-allowed", 1),
    ("from numpy import testing", "import-not-allowed", 1),
    ("from numpy.lib import format", "import-not-allowed", 1),
    ("from numpy._core import multiarray", "import-not-allowed", 1),
    ("def g():\n    import os", "import-not-allowed", 2),
    ("open('a')", "name-not-allowed", 1),
    ("x = [open]", "name-not-allowed", 1),
    ("eval('1')", "name-not-allowed", 1),
    ("exec('1')", "name-not-allowed", 1),
    ("compile('1', '', 'eval')", "name-not-allowed", 1),
    ("input()", "name-not-allowed", 1),
    ("breakpoint()", "name-not-allowed", 1),
    ("globals()", "name-not-allowed", 1),
    ("locals()", "name-not-allowed", 1),
    ("vars()", "name-not-allowed", 1),
    ("g = getattr", "name-not-allowed", 1),
    ("getattr(f, 'a' + 'b')", "name-not-allowed", 1),
    ("import math\ngetattr(*[math, 'pi'])", "name-not-allowed", 2),
    ("getattr(f, '__globals__')", "double-underscore", 1),
    ("setattr(f, '__code__', 1)", "double-underscore", 1),
    ("import numpy as np\ngetattr(np, 'load')", "attribute-not-allowed", 2),
    ("__import__('os')", "double-underscore", 1),
    ("print(__file__)", "double-underscore", 1),
    ("f.__globals__", "double-underscore", 1),
    ("class A:\n    def __init__(self): pass", "double-underscore", 2),
    ("def g(__x): pass", "double-underscore", 1),
    ("f(__x=1)", "double-underscore", 1),
    ("def g():\n    global __x", "double-underscore", 2),
    ("import math as __m", "double-underscore", 1),
    ("try: pass\nexcept ValueError as __e: pass", "double-underscore", 2),
    ("match 1:\n    case __x: pass", "double-underscore", 2),
    ("match 1:\n    case int(__class__=x): pass", "double-underscore", 2),
    ("import numpy as np\nnp.load('a')", "attribute-not-allowed", 2),
    ("import numpy\nnumpy.fromfile('a')", "attribute-not-allowed", 2),
    ("import numpy.random\nnumpy.memmap('a')", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.DataSource()", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.genfromtxt('a')", "attribute-not-allowed", 2),
    ("import numpy as np\nx = np.save", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.f2py", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.ctypeslib", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.lib.npyio.os.system('ls')", "attribute-not-allowed", 2),
    ("import numpy as np\nnp._core.multiarray", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.testing.rundocs()", "attribute-not-allowed", 2),
    ("import numpy.linalg as la\nla._linalg.os", "attribute-not-allowed", 2),
    ("import numpy as np\nnp.zeros(3).tofile('a')", "attribute-not-allowed", 2),
    ("x = 1\nx.dump('a')", "attribute-not-allowed", 2),
    ("(i for i in []).gi_frame.f_back", "attribute-not-allowed", 1),
    ("import numpy as np\nn = np; n.ma.core.inspect.os", "name-not-allowed", 2),
    ("import numpy as np\nx = [np]", "name-not-allowed", 2),
    ("import numpy as np\nfor n in (np,): n.load", "name-not-allowed", 2),
    ("import numpy as np\ndef g(n=np): return n.load", "name-not-allowed", 2),
    ("import numpy as np\ndef g(np=np): return np.load", "name-not-allowed", 2),
    ("import numpy as np\nx = [n for n in np]", "name-not-allowed", 2),
    ("import numpy as np\nx = [np for np in [np]]", "name-not-allowed", 2),
    ("import numpy as np\nx = [0 for {}[np] in [1]]", "name-not-allowed", 2),
    ("import numpy as np\ndef g():\n    global np\n    return np", "name-not-allowed", 4),
    ("import numpy as np\ndef g(np):\n    def h():\n        global np\n        return np", "name-not-allowed", 5),
    ("def g():\n    a = 1\n    def h():\n        nonlocal a\n        import numpy as a\n    h()\n    return a",
     "name-not-allowed", 7),
    ("import numpy as np\nif (n := np): pass", "name-not-allowed", 2),
    ("import numpy as np\nprint(f'{np}')", "name-not-allowed", 2),
    ("import numpy as np\nmatch np:\n    case n: pass", "name-not-allowed", 2),
    ("import numpy as np\nla = np.linalg", "name-not-allowed", 2),
    ("import numpy as np\nla = getattr(np, 'linalg')", "name-not-allowed", 2),
    ("import numpy as np\ngetattr(getattr(np, 'ma'), 'core')", "attribute-not-allowed", 2),
    ("import numpy as np\ngetattr(np, 'ma').core", "attribute-not-allowed", 2),
    ("from numpy import ma\nx = (ma, 1)", "name-not-allowed", 2),
    ("import numpy.linalg as m\nimport numpy.ma as m\nm.core", "attribute-not-allowed", 3),
    ("class A:\n    import numpy as np\nA.np.ma.core", "import-not-allowed", 2),
    ("match 1:\n    case object(exec=e): pass", "attribute-not-allowed", 2),
    ("match 1:\n    case object(gi_frame=e): pass", "attribute-not-allowed", 2),
    ("import numpy as np\n'{0.os}'.format(np)", "name-not-allowed", 2),
    ("'{0.gi_frame}'.format(1)", "attribute-not-allowed", 1),
    ("'{0:{1.f_back}}'.format(1, 2)", "attribute-not-allowed", 1),
    ("str.format('{0.__class__}', 1)", "double-underscore", 1),
    ("'{a[0].__class__}'.format_map({'a': [1]})", "double-underscore", 1),
    ("def f(:", "syntax-error", 1),
    ("return 1", "syntax-error", 1),
    ("x = 1\n\0", "syntax-error", None),
    ("x = '\ud800'", "not-utf-8", 1),
    ("x = " + "(" * 150 + ")" * 150 + "\ny = " + "-" * 100_000 + "1", "too-deep", None),
    ("x = " + "+".join(["1"] * 50_000), "too-deep", None),
]  # fmt: skip

ALLOWED = [
    "from __future__ import annotations",
    "import numpy as np, math",
    "from math import *",
    "import numpy.linalg\nimport numpy.random as r\nr.default_rng(1)",
    "from numpy.lib.stride_tricks import sliding_window_view",
    "import numpy as np\nnp.lib.stride_tricks.sliding_window_view(np.arange(3), 2)",
    "from numpy.polynomial import Polynomial",
    "import numpy as np\nx = np.random.rand(3) + np.fft.fft([1, 2, 3]).real + np.linalg.norm([1]) + np.float64(1)",
    "import numpy as np\nx = np.ma.masked_array([1]) if False else np.testing_does_not_exist if False else 1",
    "open = [1, 2]\nx = open[0]",
    "def g(input, vars):\n    return input + vars",
    "x = 'a string may say __class__, open() and import os'",
    '"""So may a docstring: __init__."""',
    "x = _private = 1",
    "class A:\n    load = save = 1\n    def run(self): return self.load",
    "def g(): pass\ngetattr(g, 'count', 0)\nhasattr(g, 'count')\ng.count = 1",
    "print('hello')",
    "x = sorted({3: 1}.items(), key=lambda pair: pair[1])",
    "x: int = 1\nassert isinstance(x, int)\ny = f'{x:>5}'",
    "match 3:\n    case int(real=r): pass",
    "import numpy.random as r\ndef g(r): return r\nx = [r for r in range(3)]",
    "import numpy.random as r\ndef g(x):\n    r = x - 1\n    return (lambda: r)() + r",
    "from numpy import zeros, random\nx = list(map(abs, zeros(3)))\ny = [zeros, random.rand]",
    "x = '{:.3f} {0[0]} {a.real}'.format\ny = '{:.3f} {a.real:>{w}}'.format(1.0, a=1, w=3)",
    "import math\nm = math",
    "import numpy as np\nx = np.float64\ny: np.ndarray = np.linalg.norm([1.0])\nhasattr(np, 'isclose')",
]


@pytest.fixture(scope="module")
def inspection(assembled: Mapping[str, Path]) -> Iterator[ModuleType]:
    """The runner's own module, which needs no process for itself."""
    sys.path.insert(0, str(assembled["python"]))
    try:
        yield importlib.import_module("inspection")
    finally:
        sys.path.remove(str(assembled["python"]))
        for name in ("format_fields", "inspection", "module_names", "numpy_surface"):
            del sys.modules[name]


@pytest.mark.parametrize(("source", "reason", "line"), REJECTED)
def test_a_program_that_breaks_a_rule_is_rejected_with_its_place(
    inspection: ModuleType, source: str, reason: str, line: int | None
) -> None:
    raw = (source + F).encode("utf-8", errors="surrogatepass")
    with pytest.raises(inspection.Rejected) as rejected:
        inspection.inspect({"program.py": raw}, "program.py")
    assert (rejected.value.reason, rejected.value.file, rejected.value.line) == (reason, "program.py", line)


@pytest.mark.parametrize("source", ALLOWED)
def test_an_honest_program_passes(inspection: ModuleType, source: str) -> None:
    assert inspection.inspect({"program.py": (source + F).encode()}, "program.py").nodes > 0


def test_honest_programs_are_loaded(launch: Launch) -> None:
    files = {f"part{number}.py": source for number, source in enumerate(ALLOWED)}
    imports = "".join(f"import {name.removesuffix('.py')}\n" for name in files)
    runner = launch("python")
    assert (
        runner.start(files | {"program.py": imports + F}, entry="program.py", functions=FUNCTIONS).type == "inspected"
    )
    loaded = runner.receive()
    assert loaded is not None
    assert loaded.type == "loaded", loaded


@pytest.mark.parametrize("name", ["numpy.py", "math.py", "numpy/linalg.py", "__future__.py"])
def test_a_module_that_would_hide_an_allowed_one_is_rejected(inspection: ModuleType, name: str) -> None:
    with pytest.raises(inspection.Rejected) as rejected:
        inspection.inspect({"program.py": F.encode(), name: b""}, "program.py")
    assert (rejected.value.reason, rejected.value.file) == ("module-name-not-allowed", name)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import part\npart.np.ma.core", "attribute-not-allowed"),
        ("import part as p\np.np.load('a')", "attribute-not-allowed"),
        ("from part import np\nnp.load('a')", "attribute-not-allowed"),
        ("from part import np as q\nq.ma.core", "attribute-not-allowed"),
        ("from part import *\nnp.load('a')", "attribute-not-allowed"),
        ("from .part import np\nnp.load('a')", "attribute-not-allowed"),
        ("from pkg import inner\ninner.np.load('a')", "attribute-not-allowed"),
        ("import pkg.inner\npkg.inner.np.load('a')", "attribute-not-allowed"),
        ("import part\np = part", "name-not-allowed"),
        ("import pkg\np = pkg.inner", "name-not-allowed"),
    ],
)
def test_numpy_is_followed_through_the_programs_own_modules(inspection: ModuleType, program: str, reason: str) -> None:
    files = {
        "program.py": (program + F).encode(),
        "part.py": b"import numpy as np\n",
        "pkg/__init__.py": b"from . import inner\n",
        "pkg/inner.py": b"from part import np\nfrom part import *\n",
    }
    with pytest.raises(inspection.Rejected) as rejected:
        inspection.inspect(files, "program.py")
    assert (rejected.value.reason, rejected.value.file, rejected.value.line) == (reason, "program.py", 2)


def test_a_program_may_use_numpy_through_its_own_modules(inspection: ModuleType) -> None:
    program = b"import part\nfrom part import np, size\nx = part.np.zeros(3) + np.ones(size(3))" + F.encode()
    part = b"import numpy as np\ndef size(n):\n    return n\n"
    assert inspection.inspect({"program.py": program, "part.py": part}, "program.py").nodes > 0


def test_the_rules_hold_for_every_module(launch: Launch) -> None:
    files = {"program.py": "import part" + F, "part.py": "\n\nimport os"}
    answer = launch("python").start(files, entry="program.py", functions=FUNCTIONS)
    assert answer.head == {"type": "rejected", "reason": "import-not-allowed", "file": "part.py", "line": 3}


def test_a_program_without_its_entry_is_rejected(launch: Launch) -> None:
    answer = launch("python").start({"other.py": F}, entry="program.py", functions=FUNCTIONS)
    assert answer.head == {"type": "rejected", "reason": "entry-missing", "file": "program.py", "line": None}


@pytest.mark.parametrize(
    ("source", "nodes", "lines"),
    [
        ("", 1, 0),
        ("x = 1\n", 4, 1),  # Module, Assign, Name, Constant; the context of the name does not count
        ('"""Docs."""\n\nx = 1', 4, 3),
        ('def f(x):\n    """Docs."""\n    return x\n', 6, 3),  # Module, FunctionDef, arguments, arg, Return, Name
        ("x = 1 + 2  # a comment\n", 7, 1),
    ],
)
def test_nodes_are_counted_without_docstrings_and_contexts(
    inspection: ModuleType, source: str, nodes: int, lines: int
) -> None:
    inspected = inspection.inspect({"program.py": b"", "part.py": source.encode()}, "program.py")
    assert (inspected.nodes, inspected.lines) == (nodes + 1, lines)


def test_nothing_of_the_program_runs_before_it_is_inspected(launch: Launch) -> None:
    runner = launch("python")
    answer = runner.start({"program.py": "print('ran')\nimport os" + F}, entry="program.py", functions=FUNCTIONS)
    assert answer.type == "rejected"
    assert runner.end() == (0, "")
