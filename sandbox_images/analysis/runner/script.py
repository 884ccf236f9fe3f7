"""The agent's script, run as `__main__` in a process of its own, with everything imported that shall be warm.

This is the child's side: it sees a fresh working directory, `/dev/null` to read from and one pipe to print to. Nothing
of the runner is left for it to import, and its tracebacks name the agent's own files by their names only.
"""

from __future__ import annotations

import builtins
import io
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TextIO


def run(script: str, output: int, runner: Path) -> int:
    """Run `script`, a file in the current directory, and return its exit code.

    Args:
        script: Relative path.
        output: Descriptor that everything printed goes to, stdout and stderr in order.
        runner: Directory of the runner's modules, which the script must not find.
    """
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whole lines leave at once, so that nothing printed is lost in a kill
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    _forget(runner)
    folder = Path.cwd()
    sys.argv = [script]
    sys.path.insert(0, str((folder / script).parent))
    sys.excepthook = excepthook = _Excepthook(folder, runner)
    threading.excepthook = excepthook.for_thread
    module = ModuleType("__main__")
    vars(module).update({"__file__": script, "__builtins__": builtins})
    sys.modules["__main__"] = module
    source = Path(script).read_bytes()
    lines = source.decode(errors="replace").splitlines(keepends=True)
    linecache.cache[script] = (len(source), None, lines, script)  # tracebacks find it from any directory
    try:
        exec(compile(source, script, "exec", dont_inherit=True), vars(module))
    except SystemExit as end:
        return _exit_code(end)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _forget(runner: Path) -> None:
    """Take the runner's modules away, so that a file of the agent with the same name is the one that is imported."""
    sys.path[:] = [entry for entry in sys.path if Path(entry) != runner]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent == runner:
            del sys.modules[name]
    sys.path_importer_cache.clear()


def _exit_code(end: SystemExit) -> int:
    """As the interpreter has it: None is 0, a number is itself, and anything else is printed and gives 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    sys.stderr.write(f"{end.code}\n")
    return 1


class _Excepthook:
    """Prints tracebacks without the runner's frames and without the directories that the files lie in."""

    def __init__(self, folder: Path, runner: Path) -> None:
        self._runner = runner
        libraries = [Path(entry) for entry in sys.path if entry and Path(entry) != folder]
        # The longest first: site-packages lies below the standard library.
        self._prefixes = [f"{path}/" for path in sorted([folder, *libraries], key=lambda path: -len(str(path)))]

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and Path(trace.tb_frame.f_code.co_filename).parent == self._runner:
            trace = trace.tb_next
        self._print(traceback.format_exception(kind, error, trace), sys.stderr)

    def for_thread(self, arguments: threading.ExceptHookArgs) -> None:
        """The same for a thread, whose own end is the interpreter's business."""
        if arguments.exc_value is not None and arguments.exc_type is not SystemExit:
            name = "?" if arguments.thread is None else arguments.thread.name
            sys.stderr.write(f"Exception in thread {name}:\n")
            self(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)

    def _print(self, parts: Iterable[str], stream: TextIO) -> None:
        stream.writelines(self._shorten(line) for line in "".join(parts).splitlines(keepends=True))
        stream.flush()

    def _shorten(self, line: str) -> str:
        start = line.find('File "')
        if start < 0 or line[:start].strip(" |+-"):
            return line
        head, path = line[: start + 6], line[start + 6 :]
        for prefix in self._prefixes:
            if path.startswith(prefix):
                return head + path[len(prefix) :]
        return line
