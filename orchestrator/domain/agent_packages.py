"""Agent packages: an analysis tool, instructions, and a manifest that says how the tool is run (RoboPhD, 3.2.1).

A package is a file tree of fixed form: `agent.json` (the manifest), `eval_instructions.md`, `tools/*.py`, and, where
its author left one, `reasoning.md`, which no model that answers questions ever sees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from orchestrator.domain.candidates import FileTree, check_path
from orchestrator.errors import InputError

MANIFEST_FILE = "agent.json"
INSTRUCTIONS_FILE = "eval_instructions.md"
REASONING_FILE = "reasoning.md"
TOOL_FOLDER = "tools"
DATABASE_FILE = "database.sqlite"
"""Under this name a tool finds the database in its working folder."""
STDOUT = "stdout"
MAX_TOOL_FILES = 16
MAX_TEXT_BYTES = 256 << 10
_TOOL_FILE = re.compile(rf"{TOOL_FOLDER}/[A-Za-z_][A-Za-z0-9_]*\.py")


class Manifest(BaseModel):
    """How a package's tool is run."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    version: Literal[1] = 1
    """Of this format."""
    command: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(min_length=1, max_length=16)]
    """The tool's file and its arguments; Python runs it in a folder where `tools/` and `database.sqlite` lie."""
    output: str
    """The file it writes, relative to that folder, or `stdout`."""

    @field_validator("command")
    @classmethod
    def _is_a_tool(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not _TOOL_FILE.fullmatch(command[0]):
            msg = f"the command begins with {command[0]!r}; it must begin with a file like 'tools/analyze.py'"
            raise ValueError(msg)
        bad = next((part for part in command[1:] if not part.isprintable()), None)
        if bad is not None:
            msg = f"argument {bad!r} holds characters that cannot be printed"
            raise ValueError(msg)
        return command

    @field_validator("output")
    @classmethod
    def _is_a_file(cls, output: str) -> str:
        if output == STDOUT:
            return output
        try:
            check_path(output)
        except InputError as error:
            raise ValueError(str(error)) from error
        if output.startswith(f"{TOOL_FOLDER}/") or output in {TOOL_FOLDER, DATABASE_FILE}:
            msg = (
                f"output {output!r} would replace what the tool is given; write for instance 'tool_output/analysis.md'"
            )
            raise ValueError(msg)
        return output


@dataclass(frozen=True, slots=True)
class AgentPackage:
    """A checked package; equal packages have equal digests."""

    tree: FileTree
    manifest: Manifest
    instructions: str

    @classmethod
    def load(cls, files: Mapping[str, bytes]) -> Self:
        """A package from its files.

        Raises:
            InputError: A file is missing, malformed, too long or does not belong to a package; it names the file.
        """
        tree = FileTree(files)
        _check_names(tree)
        manifest = _manifest(tree[MANIFEST_FILE])
        if manifest.command[0] not in tree:
            msg = f"{MANIFEST_FILE} runs {manifest.command[0]!r}, which is not among the files; add it, or run another"
            raise InputError(msg)
        for path in tree:
            _text(tree, path)
        return cls(tree, manifest, _text(tree, INSTRUCTIONS_FILE))

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over what makes a difference: everything but `reasoning.md`."""
        return FileTree({path: content for path, content in self.tree.items() if path != REASONING_FILE}).digest

    @property
    def tool_files(self) -> FileTree:
        """`tools/*.py`, what a container of the tool is given."""
        return FileTree({path: content for path, content in self.tree.items() if _TOOL_FILE.fullmatch(path)})

    @property
    def reasoning(self) -> str:
        """The author's account; empty: there is none. Untrusted."""
        return _text(self.tree, REASONING_FILE) if REASONING_FILE in self.tree else ""


def is_tool_file(path: str) -> bool:
    """Whether a package's file of this name is part of its tool."""
    return _TOOL_FILE.fullmatch(path) is not None


def manifest_bytes(manifest: Manifest) -> bytes:
    """A manifest as `agent.json`."""
    return (json.dumps(manifest.model_dump(mode="json"), indent=2) + "\n").encode()


def _check_names(tree: FileTree) -> None:
    missing = [path for path in (MANIFEST_FILE, INSTRUCTIONS_FILE) if path not in tree]
    if missing:
        msg = f"the package has no {missing[0]!r}; it needs {MANIFEST_FILE}, {INSTRUCTIONS_FILE} and tools/*.py"
        raise InputError(msg)
    tools = [path for path in tree if _TOOL_FILE.fullmatch(path)]
    strange = sorted(set(tree) - {MANIFEST_FILE, INSTRUCTIONS_FILE, REASONING_FILE, *tools})
    if strange:
        msg = f"{strange[0]!r} does not belong to a package; tools are Python files right below {TOOL_FOLDER}/"
        raise InputError(msg)
    if not 1 <= len(tools) <= MAX_TOOL_FILES:
        msg = f"the package has {len(tools)} tool files; it may have 1 to {MAX_TOOL_FILES}"
        raise InputError(msg)


def _text(tree: FileTree, path: str) -> str:
    content = tree[path]
    if len(content) > MAX_TEXT_BYTES:
        msg = f"{path!r} has {len(content)} bytes, at most {MAX_TEXT_BYTES} are allowed"
        raise InputError(msg)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path!r} is not UTF-8 at byte {error.start}"
        raise InputError(msg) from error
    if "\0" in text:
        msg = f"{path!r} holds a NUL character"
        raise InputError(msg)
    return text


def _manifest(content: bytes) -> Manifest:
    if len(content) > MAX_TEXT_BYTES:
        msg = f"{MANIFEST_FILE!r} has {len(content)} bytes, at most {MAX_TEXT_BYTES} are allowed"
        raise InputError(msg)
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        msg = f"{MANIFEST_FILE}: {place}: {first['msg']}"
        raise InputError(msg) from error
