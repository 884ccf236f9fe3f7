"""`python plain EVALUATOR DATA SPLIT PROGRAM`: evaluates a program in this process and prints its metrics.

Only for programs one trusts: the benchmark runs the task's own initial program with it.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path

from evaluator_api import Program


def main() -> None:
    """Run the task's own evaluator on the program."""
    evaluator, data, split, program = sys.argv[1:]
    sys.path.insert(1, evaluator)
    source = Path(program).read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "program"}
    exec(compile(source, program, "exec"), namespace)  # noqa: S102 - a program of ours, that is what is measured
    functions = {name: value for name, value in namespace.items() if callable(value)}
    loaded = Program(functions, sum(1 for _ in ast.walk(ast.parse(source))))
    metrics = importlib.import_module("evaluate").evaluate(loaded, Path(data), split)
    sys.stdout.write(json.dumps(metrics))


if __name__ == "__main__":
    main()
