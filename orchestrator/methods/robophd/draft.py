"""A package in the making: files in memory, which nothing but an evolver's tools reach."""

from __future__ import annotations

from orchestrator.domain.agent_packages import (
    INSTRUCTIONS_FILE,
    MANIFEST_FILE,
    MAX_TEXT_BYTES,
    MAX_TOOL_FILES,
    REASONING_FILE,
    TOOL_FOLDER,
    AgentPackage,
    is_tool_file,
)
from orchestrator.domain.candidates import FileTree
from orchestrator.errors import InputError
from orchestrator.search.tool_calls import ToolError, encoded, replaced_once


class Draft:
    """The files an evolver reads, writes and edits. Not thread-safe."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._files: dict[str, bytes] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The files there are."""
        return tuple(sorted(self._files))

    def read(self, file: str) -> str:
        """The text of a file.

        Raises:
            ToolError: There is no such file.
        """
        if file not in self._files:
            msg = f"there is no file {file[:80]!r} in the draft; it has {', '.join(self.names) or 'no file yet'}"
            raise ToolError(msg)
        return self._files[file].decode("utf-8")

    def write(self, file: str, content: str) -> int:
        """Write or replace a file; returns its size in bytes.

        Raises:
            ToolError: It does not belong to a package, comes before `reasoning.md` or is too long; nothing changes.
        """
        if file != REASONING_FILE and REASONING_FILE not in self._files:
            msg = f"write {REASONING_FILE} first: what you found, and what you are going to build and why"
            raise ToolError(msg)
        data = encoded(content, file=file[:80])
        if len(data) > MAX_TEXT_BYTES:
            msg = f"{file[:80]!r} would have {len(data)} bytes; at most {MAX_TEXT_BYTES} are allowed"
            raise ToolError(msg)
        self._check_name(file)
        files = {**self._files, file: data}
        try:
            FileTree(files)
        except InputError as error:
            raise ToolError(str(error)) from error
        self._files = files
        return len(data)

    def edit(self, file: str, old: str, new: str) -> int:
        """Replace the only occurrence of `old`; returns the file's new size in bytes.

        Raises:
            ToolError: `old` is empty, absent or occurs more than once, or as for `write`; nothing has changed.
        """
        return self.write(file, replaced_once(self.read(file), old, new, file=file))

    def _check_name(self, file: str) -> None:
        """Refuse what no package may hold at once, since nothing can be deleted."""
        if not is_tool_file(file):
            if file not in {REASONING_FILE, INSTRUCTIONS_FILE, MANIFEST_FILE}:
                msg = (
                    f"{file[:80]!r} does not belong to a package; its files are {REASONING_FILE}, {INSTRUCTIONS_FILE}, "
                    f"{MANIFEST_FILE} and {TOOL_FOLDER}/NAME.py, NAME of letters, digits and _"
                )
                raise ToolError(msg)
        elif file not in self._files and sum(map(is_tool_file, self._files)) >= MAX_TOOL_FILES:
            msg = f"the package has {MAX_TOOL_FILES} tool files already, which is the most; write into one of those"
            raise ToolError(msg)

    def restore(self, package: AgentPackage) -> None:
        """Become an earlier version again."""
        self._files = dict(package.tree)

    def package(self) -> AgentPackage:
        """The draft as a package.

        Raises:
            ToolError: It is none yet.
        """
        try:
            return AgentPackage.load(self._files)
        except InputError as error:
            raise ToolError(str(error)) from error
