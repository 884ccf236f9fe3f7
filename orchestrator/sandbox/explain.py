"""What a policy grants: in plain words, and as the exact settings that the engine is given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.data_access import DataRule
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.model_rules import ModelRule
from orchestrator.domain.policies import Disclosure, Grant, Limits, MountRole, Policy, Purpose
from orchestrator.domain.sizes import size_words
from orchestrator.sandbox.settings import TARGETS, Blueprint, container_settings

EXAMPLE_UID = 1_234_567
_SERVES = {
    Purpose.CANDIDATE: "one program under formal evaluation",
    Purpose.ANALYSIS: "one experiment of an agent",
    Purpose.EVALUATOR: "a task's own evaluator, with its hidden data",
    Purpose.IMPORT: "the writing of data into a volume",
    Purpose.SQL: "queries against one database, of one trust domain",
    Purpose.DERIVE: "the rebuilding of one database, without what the policy keeps back",
    Purpose.TOOL: "one run of a generated analysis tool on one database",
}
_CONTENT = {
    MountRole.TASK: "the task's evaluator and hidden data",
    MountRole.PUBLIC: "the task's public data",
    MountRole.TARGET: "the volume it fills",
    MountRole.DATABASE: "one imported database",
}
_DERIVED = (
    "Generated SQL and tools, and gold queries as well, see a database that is rebuilt without what is kept back and"
    " without what depends on it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one purpose gets."""

    purpose: str
    serves: str
    words: tuple[str, ...]
    """One plain sentence each."""
    settings: Mapping[str, Any]
    """Body of the engine's create call; the uid, the name and what is in angle brackets differ per container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataExplanation:
    """What one data rule says."""

    number: int
    rule: DataRule
    words: tuple[str, ...]
    """One plain sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyExplanation:
    """What a policy says."""

    name: str
    digest: str
    description: str
    purposes: tuple[Explanation, ...]
    refused: tuple[str, ...]
    """Purposes that cannot run."""
    data: tuple[DataExplanation, ...]
    """Empty: no database can be read."""
    models: tuple[str, ...]
    """Which language models may be asked; one plain sentence for each rule. Empty: none but the offline engine."""
    disclosure: tuple[str, ...]
    """What of a verdict may reach a model; one plain sentence each."""
    accepted_unproven: tuple[str, ...]
    """Limits that are relied on without proof."""


def explain(policy: Policy) -> PolicyExplanation:
    """Everything a policy means, without an engine."""
    return PolicyExplanation(
        name=policy.name,
        digest=policy.digest(),
        description=policy.description,
        purposes=tuple(
            _explain_purpose(purpose, policy.purposes[purpose]) for purpose in Purpose if purpose in policy.purposes
        ),
        refused=tuple(purpose.value for purpose in Purpose if purpose not in policy.purposes),
        data=tuple(
            DataExplanation(number=number, rule=rule, words=_data(number, rule))
            for number, rule in enumerate(policy.data, 1)
        ),
        models=tuple(map(_models, policy.models)),
        disclosure=_disclosure(policy.disclosure),
        accepted_unproven=tuple(sorted(limit.value for limit in policy.accept_unproven)),
    )


def _explain_purpose(purpose: Purpose, grant: Grant) -> Explanation:
    volumes = {role: f"<volume with {_CONTENT[role]}>" for role in grant.mounts}
    blueprint = Blueprint(
        purpose=purpose,
        run_id="<run>",
        image_digest=f"<digest of image {grant.image}>",
        grant=grant,
        limits=grant.limits,
        volumes=volumes,
    )
    settings = container_settings(
        blueprint,
        name=f"evolvarium-{purpose.value}-<random>",
        uid=EXAMPLE_UID,
        labels={"<label>": "<run, purpose, owner and lease>"},
    )
    words = (
        f"It runs the locked image {grant.image!r} under the runtime {grant.runtime.value}, for {_SERVES[purpose]}.",
        (
            "It has no network, no capability and no way to gain a privilege, a user id of its own, a read-only root,"
            " namespaces of its own, and the system calls of our allow-list."
        ),
        "It receives and sends frames on its standard streams, and nothing else; its environment is fixed.",
        *_mounts(grant),
        *_limits(grant.limits, purpose),
    )
    return Explanation(purpose=purpose.value, serves=_SERVES[purpose], words=words, settings=_readable(settings))


def _mounts(grant: Grant) -> tuple[str, ...]:
    if not grant.mounts:
        return ("It sees no data but what its frames bring.",)
    return tuple(
        f"It sees {_CONTENT[role]} at {TARGETS[role]}, {'writable' if role is MountRole.TARGET else 'read-only'}."
        for role in sorted(grant.mounts)
    )


def _limits(limits: Limits, purpose: Purpose) -> tuple[str, ...]:
    loading = f"It may use {limits.load_cpu_seconds:g} s of CPU time until it is loaded."
    cpus = "1 CPU" if limits.cpus == 1 else f"{limits.cpus:g} CPUs"
    return (
        (
            f"It is killed {limits.wall_seconds:g} s after its first frame, or when its processes together have used"
            f" {limits.cpu_seconds:g} s of CPU time; it gets {cpus} at most."
        ),
        *([loading] if purpose is Purpose.CANDIDATE else []),
        (
            f"It has {size_words(limits.memory_bytes)} of memory without swap, at most {limits.pids} processes and"
            f" threads, and {size_words(limits.tmpfs_bytes)} in at most {limits.tmpfs_inodes} files on its tmpfs,"
            " counted as memory."
        ),
        (
            f"Of what it prints {size_words(limits.output_bytes)} are kept, and"
            f" {size_words(limits.output_kill_bytes)} kill it."
        ),
        (
            f"A frame has at most {size_words(limits.frame_head_bytes)} of head and"
            f" {size_words(limits.frame_body_bytes)} of body, all frames together {size_words(limits.channel_bytes)}."
        ),
        f"Unused it ends itself after {limits.idle_seconds:g} s.",
    )


def _data(number: int, rule: DataRule) -> tuple[str, ...]:
    names = "every database" if "*" in rule.databases else f"databases named {_names(rule.databases)}"
    tables = "all tables and views" if "*" in rule.tables else f"the tables and views named {_names(rule.tables)} alone"
    hidden = [(rule.deny, "denied"), (rule.redact, "redacted because it is personal")]
    return (
        f"Of {names}{' that no rule before it names' if number > 1 else ''}, {tables} may be read.",
        *(f"Kept back is {_names(patterns)}, {why}." for patterns, why in hidden if patterns),
        *([_DERIVED] if any(patterns for patterns, _ in hidden) or "*" not in rule.tables else []),
        (
            f"One result holds at most {rule.max_rows} rows and {size_words(rule.max_bytes)}, what is over it is cut"
            f" and flagged; one query computes for at most {rule.query_seconds / 2:g} s if it"
            f" was generated, and a gold query for {rule.query_seconds:g} s."
        ),
    )


def _names(patterns: Sequence[str]) -> str:
    *most, last = [repr(pattern) for pattern in patterns]
    return f"{', '.join(most)} and {last}" if most else last


def _models(rule: ModelRule) -> str:
    names = "every model" if "*" in rule.models else f"models named {_names(rule.models)}"
    where = "anywhere" if "*" in rule.base_urls else f"at {_names(rule.base_urls)}"
    roles = [role.value for role in ModelRole if role in rule.roles]
    what = "in every role" if len(roles) == len(ModelRole) else f"as {' and '.join(roles)}"
    return f"{names[:1].upper()}{names[1:]} may be asked {where}, {what}."


def _disclosure(disclosure: Disclosure) -> tuple[str, ...]:
    digits = disclosure.metric_digits
    return (
        "A model sees metrics unrounded."
        if digits is None
        else f"A model sees {digits} significant digits of metrics.",
        f"It {'sees' if disclosure.failure_line else 'does not see'} the line in which its program failed.",
        f"It {'sees' if disclosure.evaluator_messages else 'does not see'} the task's fixed rejection messages.",
        (
            f"Of what an analysis prints it sees the first {disclosure.analysis_head_characters} and the last"
            f" {disclosure.analysis_tail_characters} characters."
        ),
    )


def _readable(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the system call filter as a document instead of a string."""
    host = dict(settings["HostConfig"])
    host["SecurityOpt"] = [
        {"seccomp": json.loads(option.removeprefix("seccomp="))} if option.startswith("seccomp=") else option
        for option in host["SecurityOpt"]
    ]
    return {**settings, "HostConfig": host}
