"""What packages' tools gave, kept for later questions below the home."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.tool_runs import ToolRun
from orchestrator.errors import PrerequisiteError
from orchestrator.evaluation.private import private_folder, read_private, write_private
from orchestrator.ports import Database, DatabaseTools

FOLDER: Final = "analyses"
_FORMAT: Final = 1
_MAX_BYTES = 64 << 20


class _Kept(BaseModel):
    """An analysis that is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    sha256: str
    """Of the text in UTF-8; an analysis that a disk has damaged is made again."""
    text: str


class KeptAnalyses:
    """`ports.DatabaseTools` for one question, which keeps what tools gave, but not what they failed at.

    Everything an analysis depends on is in its key: the package, the content of the database as the policy shows it,
    and the image. Many processes may share a home.
    """

    def __init__(self, inner: DatabaseTools, home: Path, image: str) -> None:
        """Nothing is read yet.

        Args:
            inner: Runs tools.
            home: The installation's state directory.
            image: Digest of the image that tools run in.
        """
        self._inner = inner
        self._folder = home / FOLDER
        self._image = image
        self.was_kept = False
        """Whether the last analysis was there already."""

    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:
        """As `ports.DatabaseTools`; a tool that is to be observed runs, and nothing is kept of it.

        Raises:
            PrerequisiteError: The folder cannot be used, or an analysis cannot be written.
        """
        path = private_folder(self._folder) / f"{self._key(package, database)}.json"
        text = None if observe else _read(path)
        self.was_kept = text is not None
        if text is not None:
            return ToolRun(text=text, failure=None)
        run = self._inner.analyse(package, database, attempt_id=attempt_id, observe=observe)
        if run.text is not None and not observe:
            _write(path, run.text)
        return run

    def _key(self, package: AgentPackage, database: Database) -> str:
        parts = [_FORMAT, package.digest, database.digest, self._image]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _read(path: Path) -> str | None:
    """The text; None: there is none, or what is there is no such file of ours."""
    try:
        content = read_private(path, _MAX_BYTES)
        kept = None if content is None else _Kept.model_validate_json(content)
    except (PrerequisiteError, ValidationError):
        return None
    return None if kept is None or kept.sha256 != _digest(kept.text) else kept.text


def _write(path: Path, text: str) -> None:
    try:
        path.unlink(missing_ok=True)  # it was not there, or is damaged
    except OSError as error:
        msg = f"cannot remove {str(path)!r}, which holds no analysis: {error.strerror}; move it away"
        raise PrerequisiteError(msg) from error
    kept = _Kept(format=_FORMAT, sha256=_digest(text), text=text)
    write_private(path, kept.model_dump_json().encode())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
