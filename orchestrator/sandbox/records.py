"""What the audit chain keeps of a container: digests, names and figures, never the content that ran."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.outcomes import Outcome
from orchestrator.ports import SessionRequest
from orchestrator.sandbox.container import Container


def record_of(
    container: Container,
    request: SessionRequest,
    outcome: Outcome,
    *,
    policy_digest: str,
    ending: str,
    detail: str,
    started_at: float,
) -> AuditRecord:
    """The record of a container whose channel is closed.

    Args:
        container: That ran.
        request: What it was asked for.
        outcome: For its figures.
        policy_digest: Of the policy in force.
        ending: An `Ending`, or `sandbox-error` / `cancelled`.
        detail: One line of ours.
        started_at: Unix time of its first frame.
    """
    blueprint, channel = container.blueprint, container.channel
    return AuditRecord(
        run_id=request.run_id,
        attempt_id=request.attempt_id,
        purpose=blueprint.purpose.value,
        container_id=container.id,
        image_digest=blueprint.image_digest,
        runtime=blueprint.grant.runtime.value,
        policy_digest=policy_digest,
        uid=container.uid,
        limits=blueprint.limits.model_dump(mode="json"),
        mounts={role.value: digest for role, digest in sorted(blueprint.mounts.items())},
        input_digest=channel.input_digest,
        output_digest=channel.output_digest,
        ending=ending,
        detail=detail,
        exit_code=outcome.exit_code,
        wall_seconds=outcome.wall_seconds,
        cpu_seconds=outcome.cpu_seconds,
        memory_peak_bytes=outcome.memory_peak_bytes,
        started_at=datetime.fromtimestamp(started_at, UTC).isoformat(),
    )
