"""The JSON documents of `export`, `approve`, `answer` and `audit tool`."""

from __future__ import annotations

from typing import Any

from orchestrator.cli.documents import Document, UsageDocument


class ToolAuditDocument(Document):
    """`audit tool`: what a package's tool is and was seen to do."""

    package: str
    """Digest."""
    image: str
    """Digest of the image it ran in."""
    policy: str
    """Digest."""
    is_clean: bool
    """Whether the screen found nothing, every run gave a text, and nothing in it asks for a look."""
    findings: list[dict[str, Any]]
    """Of the static screen: file, line, message."""
    runs: list[dict[str, Any]]
    """One for each database: failure, detail, concerns, containers, and what was observed (imports, opened, sql,
    events). Observations are told from inside the tool's process; containers are measured from outside. `imports` has
    only modules beyond those that the runner had loaded before the tool began."""


class ExportDocument(Document):
    """`export`."""

    folder: str
    package: str
    """Id in its run."""
    digest: str
    """Of the package."""
    manifest: str
    """Digest of the manifest: what an approval is of."""
    run: str
    select_right: int
    select_questions: int
    files: list[str]
    audit: ToolAuditDocument


class ApprovalDocument(Document):
    """`approve`."""

    by: str
    at: str
    note: str
    manifest: str
    """Digest of the manifest that was approved of."""
    public_key: str
    """Of the approver, as policies name it."""


class PublicKeyDocument(Document):
    """`approve --show-key`."""

    public_key: str


class PackageAnswerDocument(Document):
    """`answer`."""

    question: str
    database: str
    digest: str
    """Of the volume that was asked, without what the policy hides."""
    package: str
    """Id in its run."""
    manifest: str
    """Digest of the package's manifest."""
    approved_by: list[str]
    """Whose approvals the policy asked for and found."""
    answered: bool
    """Whether the answer ran to its end; a result without rows is one. It says nothing of whether the answer is right:
    nobody but the answering model has looked at it, and there is no critic."""
    ending: str
    """`answered`, `no-query`, `over-budget`, or `budget`: the model's context had no room to verify it further."""
    sql: str
    status: str | None
    """How running it ended; null: there was no query."""
    message: str
    columns: list[str]
    rows: list[list[int | float | str | None]]
    """The first rows; long cells are cut."""
    row_count: int
    truncated: bool
    attempts: list[dict[str, Any]]
    """Every request: phase, temperature, verdict, sql, status, rows."""
    analysis: str
    """Who made it: `tool`, `hybrid` (a model, since the tool failed), or `none`."""
    analysis_kept: bool
    """Whether it was kept from an earlier question."""
    tool_failure: str | None
    model: str
    seed: int
    policy: str
    hidden: int
    """Columns that the policy keeps back."""
    same_image: bool
    """Whether the tool ran in an image with the file tree that the package was chosen with."""
    requests: int
    usage: UsageDocument
