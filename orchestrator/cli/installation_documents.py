"""The JSON documents on this installation: engine, images, audit chain, policies and tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.cli.documents import Document


class FindingDocument(Document):
    """One thing that `doctor` examined."""

    topic: str
    status: Literal["ok", "warning", "error"]
    """`warning`: works, with a weakness; `error`: something will not work until it is mended."""
    found: str
    remedy: str
    """Empty when the status is ok."""


class DoctorDocument(Document):
    """`doctor`."""

    ready: bool
    """No finding is an error."""
    findings: list[FindingDocument]


class ImageDocument(Document):
    """One image."""

    role: str
    status: str
    """`locked` when it is built and equals its lock."""
    locked: str | None
    """Image id in the lock; null: not built."""
    found: str | None
    """Image id that its tag names in the engine now; null: none."""
    detail: str
    """What differs; empty when nothing does."""


class ImagesDocument(Document):
    """`images build`, `images list` and `images verify`."""

    verified: bool
    """Every image listed is built and equals its lock."""
    images: list[ImageDocument]


class PruneDocument(Document):
    """`sandbox prune`: what was removed, whichever home on the engine it came from."""

    containers: list[str]
    """Ids of removed containers."""
    volumes: list[str]
    """Names of removed volumes."""
    kept_containers: int
    """Containers of owners that live, or whose lease runs."""


class AuditHeadDocument(Document):
    """`audit head`."""

    records: int
    head: str
    signature: str
    """Base64, Ed25519 over the text of `head`."""
    public_key: str
    """PEM."""


class AuditDocument(Document):
    """`audit verify`."""

    intact: bool
    records: int
    """Records that verify, from the first one on."""
    head: str | None
    """Hash of the last of them; null: there is none."""
    signatures: str
    """`valid`, `invalid`, `no-key` or `empty`."""
    broken_index: int | None
    reason: str | None
    torn_bytes: int
    outside_head_found: bool | None
    """null: none was given, so truncation of the end could not have been noticed."""
    remarks: list[str]


class PurposeDocument(Document):
    """What one purpose gets."""

    purpose: str
    serves: str
    words: list[str]
    settings: dict[str, object]
    """Body of the engine's create call; uid, name and what is in angle brackets differ per container."""


class DataRuleDocument(Document):
    """What may be read of some databases; of several rules the first that names a database counts."""

    number: int
    """From 1; refusals name it."""
    databases: list[str]
    """Ids, where `*` stands for any characters and `?` for one; likewise below."""
    tables: list[str]
    """Tables and views that may be read."""
    deny: list[str]
    """Kept back: `table.column`, or `table` for all of it."""
    redact: list[str]
    """Likewise, because it is personal."""
    max_rows: int
    """Of one result."""
    max_bytes: int
    """Of one result."""
    query_seconds: float
    """CPU time of one query."""
    words: list[str]


class PolicyDocument(Document):
    """`policy explain`."""

    name: str
    digest: str
    description: str
    purposes: list[PurposeDocument]
    """With --purpose that one alone."""
    refused: list[str]
    """Purposes that cannot run."""
    data: list[DataRuleDocument]
    """What may be read of which database; of one that no rule names nothing can be read."""
    models: list[str]
    """Which language models may be asked, where and in which role; empty: none but the offline engine."""
    disclosure: list[str]
    accepted_unproven: list[str]


class TaskDocument(Document):
    """`task check`: one task package."""

    name: str
    title: str | None
    """null: it is not well formed."""
    path: str
    splits: list[str]
    valid: bool
    problems: list[str]
    notes: list[str] = Field(default=[])
    """What is possible, but may not be meant: limits that the default policy tightens."""


class TasksDocument(Document):
    """`task list`, and `task check` of a family."""

    tasks: list[TaskDocument]


class NewTaskDocument(Document):
    """`task new`."""

    name: str
    path: str
    files: list[str]
