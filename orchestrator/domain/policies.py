"""What each kind of untrusted code may see, use and spend, and which language models may be asked.

What must never be granted (a network, capabilities, privileges, host paths, devices, the engine's socket, environment
variables) has no field here.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from orchestrator.domain.data_access import DataRule
from orchestrator.domain.frames import MAX_BODY_BYTES, PREFIX
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.releases import ReleaseRules
from orchestrator.domain.written_settings import WrittenSettings

MIB = 1 << 20


class Purpose(StrEnum):
    """Each container serves one."""

    CANDIDATE = "candidate"
    """One program under formal evaluation."""
    ANALYSIS = "analysis"
    """One experiment of an agent."""
    EVALUATOR = "evaluator"
    """A task's own evaluator, with its hidden data."""
    IMPORT = "import"
    """The writing of data into a volume."""
    SQL = "sql"
    """Queries against one database."""
    DERIVE = "derive"
    """The rebuilding of one database without what the data rules keep back."""
    TOOL = "tool"
    """One run of a generated analysis tool on one database."""


class MountRole(StrEnum):
    """What may be mounted, by role; the source is always a volume of ours, named by content digest."""

    TASK = "task"
    """Evaluator code and hidden data, read-only, at `/task`."""
    PUBLIC = "public"
    """Public task data, read-only, at `/work/data`."""
    TARGET = "target"
    """The volume an `import` container fills, writable, at `/target`."""
    DATABASE = "database"
    """One imported database, read-only, at `/data`."""


class Runtime(StrEnum):
    """OCI runtimes we know how to prove."""

    RUNC = "runc"
    """The engine's own: system calls that pass our filter reach the host's kernel."""
    RUNSC = "runsc"
    """gVisor: a kernel in user space stands between the code and the host's."""


class ProvenLimit(StrEnum):
    """What the doctor's probes can show to be in force."""

    MEMORY = "memory"
    """`memory_bytes` ends what wants more."""
    PIDS = "pids"
    """No more than `pids` processes and threads come into being."""
    CPU = "cpu"
    """Many processes together get no more than `cpus`."""
    NETWORK = "network"
    """No protocol has a way out."""
    TMPFS = "tmpfs"
    """Writable places are full at `tmpfs_bytes` and at `tmpfs_inodes`."""
    READ_ONLY = "read-only"
    """Nothing else can be written."""
    KILL = "kill"
    """Processes that refuse to end are gone soon after their deadline."""


class Limits(WrittenSettings):
    """Resource ceilings of one container; every field has a finite default."""

    wall_seconds: Annotated[float, Field(gt=0, le=3600)] = 300.0
    """Killed after this much wall time from its first frame on, measured outside the container.

    A backstop against code that waits. It should be several times `cpu_seconds`: where it is not, a busy machine counts
    as the code's failure, and scores depend on the load.
    """
    idle_seconds: Annotated[float, Field(gt=0, le=86400)] = 3600.0
    """A container that waits in the pool ends itself after this much time without a first frame."""
    cpu_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """CPU time of all its processes together, measured outside; what a program's running time is judged by."""
    load_cpu_seconds: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """The part of it that a candidate may use until it is loaded."""
    cpus: Annotated[float, Field(ge=0.01, le=64)] = 1.0
    """Processors it may keep busy at once; the kernel cannot enforce less than 0.01."""
    memory_bytes: Annotated[int, Field(ge=16 * MIB, le=64 << 30)] = 512 * MIB
    """Memory of all its processes together. Swap is off; what lies on its tmpfs counts as memory."""
    pids: Annotated[int, Field(ge=4, le=4096)] = 64
    """Processes and threads together."""
    tmpfs_bytes: Annotated[int, Field(ge=MIB, le=8 << 30)] = 32 * MIB
    """What it may write, in all writable places together; nothing outside of them is writable."""
    tmpfs_inodes: Annotated[int, Field(ge=16, le=1 << 20)] = 1024
    """Files and folders there."""
    output_bytes: Annotated[int, Field(ge=0, le=64 * MIB)] = MIB
    """What is kept of stdout and stderr outside the channel."""
    output_kill_bytes: Annotated[int, Field(ge=0, le=1 << 30)] = 16 * MIB
    """Killed with `output-limit` when it prints more than this outside the channel."""
    frame_head_bytes: Annotated[int, Field(ge=1024, le=MIB)] = 64 << 10
    """JSON part of one frame (message) over the channel, which is the only way in and out."""
    frame_body_bytes: Annotated[int, Field(ge=0, le=64 * MIB)] = 16 * MIB
    """Binary part of one frame."""
    channel_bytes: Annotated[int, Field(ge=1024, le=4 << 30)] = 1 << 30
    """All frames of one container together, in each direction."""

    def under_evaluator(self, evaluator: Limits) -> Limits:
        """These limits of a candidate, lowered so that it meets its own before it can drive an evaluator into one.

        What a candidate sends reaches the evaluator, wrapped into one more frame; and while it is slow the evaluator's
        time runs, too. The shortest frame has 20 bytes and grows by at most 33, so a quarter of a channel fits through
        the other's.
        """
        room = min(evaluator.frame_body_bytes, MAX_BODY_BYTES) - self.frame_head_bytes - PREFIX.size
        return self.model_copy(
            update={
                "wall_seconds": min(self.wall_seconds, evaluator.wall_seconds),
                "frame_body_bytes": max(0, min(self.frame_body_bytes, room)),
                "channel_bytes": max(1024, min(self.channel_bytes, evaluator.channel_bytes // 4)),
            }
        )


class Grant(WrittenSettings):
    """What one purpose gets."""

    image: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    """Role name of a locked image, never a reference to a registry."""
    runtime: Runtime = Runtime.RUNC
    """What runs the container; `--runtime` may tighten it for one command."""
    mounts: frozenset[MountRole] = frozenset()
    """Volumes it sees, by role."""
    limits: Limits = Limits()
    """Ceilings; a task may only lower them."""


class Disclosure(WrittenSettings):
    """What of a verdict may reach a model."""

    metric_digits: Annotated[int | None, Field(ge=1, le=17)] = None
    """Significant digits of metrics; null: unrounded."""
    failure_line: bool = True
    """Whether the line in the program is shown when it raises."""
    evaluator_messages: bool = True
    """Whether the task's fixed rejection messages are shown."""
    analysis_head_characters: Annotated[int, Field(ge=100, le=200_000)] = 12_000
    """How much of the beginning of an analysis's output is shown."""
    analysis_tail_characters: Annotated[int, Field(ge=0, le=200_000)] = 4_000
    """How much of its end, where it is longer."""


_ALLOWED_MOUNTS = {
    Purpose.CANDIDATE: frozenset[MountRole](),
    Purpose.ANALYSIS: frozenset({MountRole.PUBLIC}),
    Purpose.EVALUATOR: frozenset({MountRole.TASK}),
    Purpose.IMPORT: frozenset({MountRole.TARGET}),
    Purpose.SQL: frozenset({MountRole.DATABASE}),
    Purpose.DERIVE: frozenset[MountRole](),
    Purpose.TOOL: frozenset({MountRole.DATABASE}),
}


class Policy(WrittenSettings):
    """An access policy; a purpose it does not name cannot run."""

    version: Literal[1]
    """Of this format."""
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    """For messages and records."""
    description: Annotated[str, Field(max_length=500)] = ""
    """For people."""
    purposes: dict[Purpose, Grant]
    """What each purpose gets; one that is not named cannot run."""
    data: tuple[DataRule, ...] = ()
    """What may be read of which database; one that no rule names cannot be read."""
    models: tuple[ModelRule, ...] = ()
    """Which language models may be asked, where and what for; without a rule only the offline engine may be."""
    disclosure: Disclosure = Disclosure()
    """What of a verdict may reach a model."""
    release: ReleaseRules = ReleaseRules()
    """Which exported packages may answer."""
    accept_unproven: frozenset[ProvenLimit] = frozenset()
    """Limits that this policy accepts without proof, each by name."""

    @model_validator(mode="after")
    def _mounts_fit_their_purpose(self) -> Self:
        for purpose, grant in self.purposes.items():
            excess = grant.mounts - _ALLOWED_MOUNTS[purpose]
            if excess:
                msg = f"purpose {purpose.value!r} may not mount {sorted(role.value for role in excess)}"
                raise ValueError(msg)
        return self

    def digest(self) -> str:
        """`sha256:` and 64 hex digits over the canonical JSON; goes into every audit record."""
        document = self.model_dump(mode="json")
        for grant in document["purposes"].values():
            grant["mounts"].sort()
        document["accept_unproven"].sort()
        for rule in document["models"]:
            rule["roles"].sort()
        if not document["models"]:
            del document["models"]  # a policy from before there were such rules means the same now
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        return "sha256:" + hashlib.sha256(canonical).hexdigest()
