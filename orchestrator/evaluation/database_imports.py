"""From a database file to a read-only volume: derived, imported and described once, and remembered.

What is remembered under `<home>/databases/` is a cache: it is checked on reading, ignored when it is malformed, and of
use only while the volume it names is there. It is kept private, since names and examples may be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.domain.data_access import Access, DataRule, access_of
from orchestrator.domain.policies import Purpose
from orchestrator.domain.sql import Description, Schema
from orchestrator.errors import InputError, ProtocolError
from orchestrator.evaluation.database_files import NAME, DatabaseFile
from orchestrator.evaluation.derivation import Derived, deriving
from orchestrator.evaluation.descriptions import (
    Dropped,
    absent,
    columns_kept,
    parse_description,
    parse_survey,
    with_dropped,
    without_odd_names,
)
from orchestrator.evaluation.private import private_folder, read_private, write_private
from orchestrator.evaluation.query_containers import Described, Mounted, describe
from orchestrator.ports import Sandbox

FORMAT: Final = 3
"""Of what is remembered, and of how databases are derived; another number imports everything anew."""
_MAX_RECORD_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedDatabase:
    """A database that containers can mount."""

    volume: str
    """Digest of its volume."""
    sha256: str
    """Of the file in it, 64 hex digits."""
    original: Schema
    """Before anything was hidden: what a refusal may name."""
    description: Description
    access: Access
    absent: Mapping[str, str]
    """Folded name of each table and view that is in none of the two schemas, to why it was left out."""


class _Record(BaseModel):
    """What is remembered of an import."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[3]
    volume: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    is_whole: bool
    dropped: tuple[tuple[str, str, str], ...]
    sqlite_version: str
    surveyed: str
    """JSON, as the deriving container said it."""
    described: str
    """JSON, as the container that describes said it."""


class Importer:
    """Imports databases for one sandbox."""

    def __init__(self, sandbox: Sandbox, home: Path, images: Mapping[Purpose, str]) -> None:
        """Keep the places; nothing is imported yet.

        Args:
            sandbox: Where volumes and containers are.
            home: The installation's state directory.
            images: Digests of what `derive` and `sql` run.
        """
        self._sandbox = sandbox
        self._folder = home / "databases"
        self._images = {purpose.value: digest for purpose, digest in sorted(images.items())}

    def get(self, source: DatabaseFile, number: int, rule: DataRule, *, run_id: str) -> ImportedDatabase:
        """The database as a rule shows it.

        Args:
            source: The original.
            number: Of the rule, from 1.
            rule: What may be read.
            run_id: Of the containers that are needed.

        Raises:
            InputError: The file is no database, is damaged, or nothing of it may be read.
            PolicyError: The policy does not grant what is needed.
            PrerequisiteError: Engine or image missing, or the home folder cannot be used.
            SandboxError: The sandbox failed.
        """
        path = private_folder(self._folder) / f"{self._key(source, rule)}.json"
        record = self._remembered(path)
        if record is not None:
            try:
                return _database(record, number, rule)
            except ProtocolError:  # of another version, or damaged
                path.unlink(missing_ok=True)
        record = self._import(source, number, rule, run_id)
        path.unlink(missing_ok=True)
        write_private(path, record.model_dump_json().encode())
        return _database(record, number, rule)

    def _key(self, source: DatabaseFile, rule: DataRule) -> str:
        hiding = rule.model_dump(mode="json", include={"tables", "deny", "redact"})
        parts = [FORMAT, source.digest, hiding, self._images]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _remembered(self, path: Path) -> _Record | None:
        content = read_private(path, _MAX_RECORD_BYTES)
        if content is None:
            return None
        try:
            record = _Record.model_validate_json(content)
        except ValidationError:
            return None
        return record if self._sandbox.has_volume(record.volume) else None

    def _import(self, source: DatabaseFile, number: int, rule: DataRule, run_id: str) -> _Record:
        attempt = f"import-{source.digest[7:19]}"
        with deriving(self._sandbox, source, run_id=run_id, attempt_id=attempt) as derivation:
            survey = derivation.survey()
            if not survey.schema.tables:
                msg = f"database {str(source.path)!r} holds no table"
                raise InputError(msg)
            access = _access(number, rule, survey.schema)
            # A column that has no name escapes every rule, and a copy of the whole would have it.
            keep = columns_kept(survey.schema, access) if access.hidden or survey.unnamed_columns else None
            if keep is not None and not keep:
                msg = f"data rule {number} hides all of database {str(source.path)!r}; nothing could be asked of it"
                raise InputError(msg)
            derived = derivation.derive(keep)
        volume = self._sandbox.import_volume({NAME: derived.content}, run_id=run_id)
        described = self._describe(source, volume, derived, access, run_id)
        return _Record(
            format=FORMAT,
            volume=volume,
            sha256=derived.sha256,
            is_whole=keep is None,
            dropped=derived.dropped,
            sqlite_version=described.sqlite_version,
            surveyed=survey.body.decode(),
            described=described.body.decode(),
        )

    def _describe(self, source: DatabaseFile, volume: str, derived: Derived, access: Access, run_id: str) -> Described:
        mounted = Mounted(volume=volume, sha256=derived.sha256, readable=None, access=access)
        described = describe(self._sandbox, mounted, run_id=run_id, attempt_id=f"describe-{source.digest[7:19]}")
        if described.failure:
            msg = f"database {str(source.path)!r} cannot be described: {described.failure}"
            raise InputError(msg)
        return described


def _database(record: _Record, number: int, rule: DataRule) -> ImportedDatabase:
    original = parse_survey(record.surveyed.encode())
    dropped: Dropped = record.dropped
    description = parse_description(record.described.encode(), sqlite_version=record.sqlite_version, dropped=dropped)
    access = _access(number, rule, original)
    if not record.is_whole:
        access = with_dropped(access, original, description.schema, dropped)
    return ImportedDatabase(
        volume=record.volume,
        sha256=record.sha256,
        original=original,
        description=description,
        access=access,
        absent=absent(original, dropped),
    )


def _access(number: int, rule: DataRule, original: Schema) -> Access:
    return without_odd_names(access_of(number, rule, original), rule, original)
