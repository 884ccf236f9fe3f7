"""An agent's files, in memory: the candidate, and `analysis.py` beside it."""

from __future__ import annotations

from orchestrator.domain.candidates import FileTree
from orchestrator.errors import InputError, TaskError
from orchestrator.search.tool_calls import ToolError, encoded, replaced_once

ANALYSIS_FILE = "analysis.py"
DATA_FOLDER = "data"


class Workspace:
    """The files an agent reads, writes and edits. Not thread-safe: each island has its own."""

    def __init__(self, initial: FileTree, *, has_analysis: bool) -> None:
        """Begin with the initial program and no script.

        Raises:
            TaskError: The initial program uses a path that belongs to analyses.
        """
        taken = [path for path in initial if path == ANALYSIS_FILE or path.split("/")[0] == DATA_FOLDER]
        if taken:
            msg = f"the initial program has the file {taken[0]!r}, which is reserved for analyses; rename it"
            raise TaskError(msg)
        self.candidate = initial
        self.script: bytes | None = None
        """`analysis.py`; None: not written yet."""
        self.has_analysis = has_analysis

    @property
    def names(self) -> tuple[str, ...]:
        """The files there may be."""
        return (*self.candidate, *([ANALYSIS_FILE] if self.has_analysis else []))

    def read(self, file: str) -> str:
        """The text of a file.

        Raises:
            ToolError: There is no such file.
        """
        return self._content(file).decode("utf-8", errors="replace")

    def write(self, file: str, content: str) -> int:
        """Replace a file; returns its size in bytes.

        Raises:
            ToolError: There may be no such file, or the text is too long or not encodable; nothing has changed.
        """
        self._check_name(file)
        data = encoded(content, file=file)
        script = data if file == ANALYSIS_FILE else self.script
        tree = {**self.candidate, **({} if file == ANALYSIS_FILE else {file: data})}
        try:
            candidate = FileTree(tree)
            if script is not None:
                FileTree({**tree, ANALYSIS_FILE: script})  # what an analysis would get must be within bounds as well
        except InputError as error:
            raise ToolError(str(error)) from error
        self.candidate, self.script = candidate, script
        return len(data)

    def edit(self, file: str, old: str, new: str) -> int:
        """Replace the only occurrence of `old`; returns the file's new size in bytes.

        Raises:
            ToolError: `old` is empty, absent or occurs more than once, or as for `write`; nothing has changed.
        """
        return self.write(file, replaced_once(self.read(file), old, new, file=file))

    def for_analysis(self) -> FileTree:
        """Candidate and script together.

        Raises:
            ToolError: There is no script.
        """
        if self.script is None:
            msg = f"{ANALYSIS_FILE} does not exist yet; write it first"
            raise ToolError(msg)
        return FileTree({**self.candidate, ANALYSIS_FILE: self.script})

    def _content(self, file: str) -> bytes:
        self._check_name(file)
        if file != ANALYSIS_FILE:
            return self.candidate[file]
        if self.script is None:
            msg = f"{ANALYSIS_FILE} does not exist yet; write it first"
            raise ToolError(msg)
        return self.script

    def _check_name(self, file: str) -> None:
        if file not in self.names:
            msg = f"there is no file {file[:80]!r}; the files are {', '.join(self.names)}"
            raise ToolError(msg)
