"""Deriving a database in a container of its own: what the original holds, and a new file without what is kept back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from orchestrator.domain.frames import MAX_HEAD_BYTES, Frame
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.policies import Limits, Purpose
from orchestrator.domain.sql import Schema
from orchestrator.errors import InputError, PolicyError, ProtocolError
from orchestrator.evaluation.database_files import DatabaseFile
from orchestrator.evaluation.descriptions import Dropped, parse_survey
from orchestrator.evaluation.requests import open_session
from orchestrator.ports import Sandbox, Session, SessionRequest

_PIECE_BYTES = 4 << 20
_MAX_DROPPED = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What an original holds that can be named."""

    schema: Schema
    """Names, types and keys."""
    body: bytes = field(repr=False)
    """The same as JSON."""
    unnamed_columns: int
    """Columns of its tables beside them, which no query and no rule can name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A complete database file, untrusted in all that it holds."""

    content: bytes = field(repr=False)
    sha256: str
    """64 hex digits, computed here."""
    dropped: Dropped


class Derivation:
    """One container with one original in it."""

    def __init__(self, session: Session, source: DatabaseFile, limits: Limits) -> None:
        """Use a session that has been sent the original."""
        self._session = session
        self._source = source
        self._limits = limits

    def survey(self) -> Survey:
        """Everything in the original.

        Raises:
            InputError: It cannot be read as a database.
            ProtocolError: What came is not understood.
            SandboxError: The sandbox failed.
        """
        frame = self._ask(Frame({"type": "survey"}), "surveyed")
        unnamed = frame.head.get("unnamed_columns", 0)
        if type(unnamed) is not int or unnamed < 0:
            msg = f"a survey has {unnamed!r:.40} columns without a name"
            raise ProtocolError(msg)
        return Survey(schema=parse_survey(frame.body), body=frame.body, unnamed_columns=unnamed)

    def derive(self, keep: Mapping[str, Sequence[str]] | None) -> Derived:
        """A new database.

        Args:
            keep: Table or view to the columns to be seen; None: everything.

        Raises:
            InputError: It cannot be made from this original.
            ProtocolError: As `survey`.
            SandboxError: As `survey`.
        """
        if keep is not None and len(json.dumps(keep)) > MAX_HEAD_BYTES // 2:
            msg = f"database {str(self._source.path)!r} has too many or too long names for a rule that hides columns"
            raise InputError(msg)
        head = self._ask(Frame({"type": "derive", "keep": keep}), "derived").head
        size = head.get("size")
        if type(size) is not int or not 0 < size <= self._limits.tmpfs_bytes:
            msg = f"a derived database of {size!r} bytes was announced"
            raise ProtocolError(msg)
        content = bytearray()
        while len(content) < size:
            piece = self._receive("piece")
            if piece.head.get("offset") != len(content) or not 0 < len(piece.body) <= size - len(content):
                msg = f"a piece of {len(piece.body)} bytes at {piece.head.get('offset')!r} is not the next one"
                raise ProtocolError(msg)
            content += piece.body
        sha256 = hashlib.sha256(content).hexdigest()
        if head.get("sha256") != sha256:
            msg = "a derived database is not the one that was announced"
            raise ProtocolError(msg)
        return Derived(content=bytes(content), sha256=sha256, dropped=parse_dropped(head.get("dropped")))

    def _ask(self, question: Frame, answer: str) -> Frame:
        self._session.send(question)
        return self._receive(answer)

    def _receive(self, expected: str) -> Frame:
        frame = self._session.receive()
        if frame is None:
            outcome = self._session.finish(Ending.NO_RESULT)
            msg = (
                f"database {str(self._source.path)!r} could not be rebuilt within the limits of purpose 'derive':"
                f" {outcome.ending.value} ({outcome.detail}); check the file, or grant more"
            )
            raise InputError(msg)
        if frame.type == "failed":
            self._session.finish(Ending.ERROR)
            reason = " ".join(str(frame.head.get("message")).split())[:300]
            msg = f"database {str(self._source.path)!r} cannot be used: {reason}"
            raise InputError(msg)
        if frame.type != expected:
            msg = f"a frame of type {frame.type!r:.80} came where {expected!r} was due"
            raise ProtocolError(msg)
        return frame


@contextmanager
def deriving(sandbox: Sandbox, source: DatabaseFile, *, run_id: str, attempt_id: str) -> Iterator[Derivation]:
    """A container that holds the original.

    Raises:
        PolicyError: The policy grants no purpose `derive`.
        PrerequisiteError: Engine or image missing, or a limit is unproven.
        SandboxError: The engine failed.
    """
    limits = derive_limits(sandbox)
    request = SessionRequest(purpose=Purpose.DERIVE, run_id=run_id, attempt_id=attempt_id)
    with open_session(sandbox, request) as session:
        for name in sorted(source.files):
            content = source.files[name]
            for offset in range(0, max(1, len(content)), _PIECE_BYTES):
                head = {"type": "file", "path": name, "offset": offset, "size": len(content)}
                session.send(Frame(head, content[offset : offset + _PIECE_BYTES]))
        yield Derivation(session, source, limits)
        session.finish(Ending.OK)


def derive_limits(sandbox: Sandbox) -> Limits:
    """What a `derive` container gets.

    Raises:
        PolicyError: Nothing.
    """
    grant = sandbox.policy.purposes.get(Purpose.DERIVE)
    if grant is None:
        msg = f"policy {sandbox.policy.name!r} grants nothing to purpose 'derive'; add it under 'purposes'"
        raise PolicyError(msg)
    return grant.limits


def parse_dropped(entries: object) -> Dropped:
    """What a deriving container says that it left out, checked for form.

    Raises:
        ProtocolError: It is not a list of `[kind, name, reason]`.
    """
    if not isinstance(entries, list) or len(entries) > _MAX_DROPPED:
        msg = "what was left out is not a list, or too long a one"
        raise ProtocolError(msg)
    checked = []
    for entry in entries:
        match entry:
            case [str() as kind, str() as name, str() as reason]:
                checked.append((kind, name, reason))
            case _:
                msg = f"what was left out is not told as [kind, name, reason]: {entry!r:.80}"
                raise ProtocolError(msg)
    return tuple(checked)
