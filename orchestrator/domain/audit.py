"""The record every container run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One container run; strings are digests, names or our own words, never the content that ran."""

    run_id: str
    attempt_id: str
    purpose: str
    container_id: str
    image_digest: str
    runtime: str
    policy_digest: str
    uid: int
    limits: Mapping[str, Any]
    mounts: Mapping[str, str]
    """Role to volume digest."""
    input_digest: str
    """SHA-256 over all frames sent in, in order."""
    output_digest: str
    """SHA-256 over all frames received, in order."""
    ending: str
    """An `Ending`, or `sandbox-error` / `cancelled`."""
    detail: str
    exit_code: int | None
    wall_seconds: float
    cpu_seconds: float | None
    memory_peak_bytes: int | None
    started_at: str
    """ISO 8601, UTC."""
