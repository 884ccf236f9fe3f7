"""The tool, run as `__main__` in a process of its own.

This is the child's side: it sees its working folder, `/dev/null` to read from and two pipes to print to. Nothing of the
runner is left for it to import, and its traceback names its own files as the working folder has them.
"""

from __future__ import annotations

import builtins
import io
import linecache
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from observation import Observer


def run(command: Sequence[str], streams: tuple[int, int], runner: Path, observed: int | None) -> int:
    """Run a tool in the current folder, and return its exit code.

    Args:
        command: Its file and its arguments.
        streams: Descriptors that stdout and stderr go to.
        runner: Folder of the runner's modules, which the tool must not find.
        observed: Descriptor that what it does is told to; None: nobody wants to know.
    """
    for wanted, descriptor in zip((1, 2), streams, strict=True):
        os.dup2(descriptor, wanted)
        os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    _forget(runner)
    folder, file = Path.cwd(), command[0]
    sys.argv = list(command)
    sys.path.insert(0, str((folder / file).parent))
    module = ModuleType("__main__")
    vars(module).update({"__file__": file, "__builtins__": builtins})
    sys.modules["__main__"] = module
    text = Path(file).read_text(encoding="utf-8-sig")  # as the screen has read it
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        code = compile(text, file, "exec", dont_inherit=True)
        if observed is not None:
            Observer(observed, folder).begin()
        exec(code, vars(module))
    except SystemExit as end:
        return _exit_code(end)
    except BaseException as error:
        _print(error, folder, runner)
        return 1
    return 0


def _forget(runner: Path) -> None:
    """Take the runner's modules away, so that a file of the tool with the same name is the one that is imported."""
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


def _print(error: BaseException, folder: Path, runner: Path) -> None:
    """The traceback without the runner's frames, and with no path but those of the tool's own files."""
    trace = error.__traceback__
    while trace is not None and Path(trace.tb_frame.f_code.co_filename).parent == runner:
        trace = trace.tb_next
    report = traceback.TracebackException(type(error), error, trace)
    seen: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [report]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        for frame in part.stack:
            frame.filename = _shortened(frame.filename, folder)
        if isinstance(getattr(part, "filename", None), str):  # of a syntax error
            part.filename = _shortened(part.filename, folder)
        waiting += [part.__cause__, part.__context__, *(part.exceptions or ())]
    sys.stderr.write("".join(report.format()))
    sys.stderr.flush()


def _shortened(file: str, folder: Path) -> str:
    """A path below the folder relative to it, any other by its name alone."""
    path = Path(file)
    return str(path.relative_to(folder)) if folder in path.parents else path.name if path.is_absolute() else file
