"""Protocols between the layers; a docstring here is the contract that every adapter is tested against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.conversation import Conversation, Reply, Sampling, ToolSpec, Usage
from orchestrator.domain.data_access import Access
from orchestrator.domain.frames import Frame
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.policies import Limits, MountRole, Policy, Purpose
from orchestrator.domain.sql import Description, QueryResult
from orchestrator.domain.tool_runs import ToolRun
from orchestrator.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Everything a caller may say about a container; images and settings follow from the policy."""

    purpose: Purpose
    run_id: str
    attempt_id: str
    """The journal id of the step it belongs to, for instance `i1-c07`."""
    mounts: Mapping[MountRole, str] = field(default_factory=dict)
    """Role to volume digest, as `Sandbox.import_volume` returned it."""
    limits: Limits | None = None
    """None: the policy's. Otherwise none may be over the policy's."""


class Session(Protocol):
    """One live container, used once. Not thread-safe, except `cancel`."""

    @property
    def image_digest(self) -> str:
        """Digest of the image it runs."""
        ...

    def send(self, frame: Frame) -> None:
        """Send a frame; a container that has ended swallows it, and `receive` tells.

        Raises:
            SandboxError: The engine failed.
            Cancelled: `cancel` was called.
        """
        ...

    def receive(self) -> Frame | None:
        """The next frame, or None once the container has ended, broke the framing, or met a limit.

        Waits at most until the wall or CPU limit. After None, `finish` tells the ending.

        Raises:
            SandboxError: The engine failed.
            Cancelled: `cancel` was called.
        """
        ...

    def cap_cpu(self, total_seconds: float) -> None:
        """Let the container use at most this much CPU time in all, from now on; never more than its limits."""
        ...

    def finish(self, claim: Ending = Ending.OK) -> Outcome:
        """Kill, inspect, remove and audit the container; idempotent.

        Args:
            claim: What the frames said, as far as the caller understood them. A limit event overrides it; `ok`
                needs that no event contradicts it.

        Raises:
            SandboxError: The engine failed, or the container ended through no fault of its code.
        """
        ...

    def cancel(self) -> None:
        """Kill the container from another thread; pending calls raise `Cancelled`."""
        ...


class Sandbox(Protocol):
    """Runs untrusted code. Thread-safe."""

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        ...

    def session(self, request: SessionRequest) -> AbstractContextManager[Session]:
        """A virgin container whose `ready` frame has been consumed; killed and removed on every way out.

        Raises:
            PolicyError: The purpose has no grant, a mount is not granted, or a limit is over the policy's.
            PrerequisiteError: Engine or image missing, or a limit is unproven.
            SandboxError: The engine failed.
        """
        ...

    def import_volume(self, files: Mapping[str, bytes], *, run_id: str) -> str:
        """Put files into a volume named by their digest, unless it is there; returns the digest.

        Raises:
            SandboxError: The engine failed.
        """
        ...

    def has_volume(self, digest: str) -> bool:
        """Whether a volume with this content is there, so that a mount can name it without importing it again.

        Raises:
            SandboxError: The engine failed, or `digest` is none.
        """
        ...

    def warm(self, request: SessionRequest, count: int) -> None:
        """Keep up to `count` virgin containers ready for requests of this purpose, mounts and limits."""
        ...

    def live_containers(self, run_id: str) -> int:
        """How many containers of this run exist, in any state.

        Raises:
            SandboxError: The engine failed.
        """
        ...

    def close(self) -> None:
        """Remove every container this sandbox made; idempotent."""
        ...


class AuditLog(Protocol):
    """An append-only hash chain. Thread-safe, and safe across processes."""

    def append(self, record: AuditRecord) -> None:
        """Add a record; durable when this returns.

        Raises:
            AuditError: The log cannot be written.
        """
        ...


class Evaluator(Protocol):
    """Scores candidates on one task and split. Thread-safe."""

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:
        """Formally evaluate a candidate.

        Raises:
            SandboxError: The sandbox failed; the candidate stays unscored.
            EvaluatorError: The task's own code failed; the candidate stays unscored.
            Cancelled: An operator asked to stop.
        """
        ...


class Database(Protocol):
    """One database in one trust domain: its containers run queries of no other database and no other domain.

    Predicted and gold SQL are two domains. Thread-safe; queries of one object may wait for each other.
    """

    @property
    def name(self) -> str:
        """Id in its data set."""
        ...

    @property
    def digest(self) -> str:
        """Of the volume that is mounted, the hidden columns taken away already."""
        ...

    @property
    def description(self) -> Description:
        """Schema and values as generated SQL may see them."""
        ...

    @property
    def access(self) -> Access:
        """What is kept back, and the limits of one query."""
        ...

    def query(self, sql: str, *, attempt_id: str, reverse: bool = False) -> QueryResult:
        """Run one query through the gate, the policy and the sandbox. Failing in any way is a status.

        Args:
            sql: Untrusted.
            attempt_id: The journal id of the step it belongs to.
            reverse: Give unordered rows in another order (`reverse_unordered_selects`), to see whether it matters.

        Raises:
            SandboxError: The sandbox failed; the query has no result.
            Cancelled: An operator asked to stop.
        """
        ...

    def query_all(self, queries: Sequence[str], *, attempt_id: str) -> list[QueryResult]:
        """The results of many queries in their order, each as `query` gives it; quicker than one by one.

        Raises:
            SandboxError: As `query`.
            Cancelled: As `query`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisResult:
    """What an agent's experiment printed, and how it ended."""

    output: bytes
    """stdout and stderr in order, bounded by the policy's output limit; untrusted."""
    omitted_bytes: int
    """How much was cut out of the middle."""
    outcome: Outcome


class Analyst(Protocol):
    """Runs an agent's experiments. Thread-safe."""

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:
        """Run `analysis.py` of `files` in a fresh container; the other files lie beside it.

        Raises:
            SandboxError: The sandbox failed.
            Cancelled: An operator asked to stop.
        """
        ...


class DatabaseTools(Protocol):
    """Runs packages' analysis tools. Thread-safe."""

    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:
        """Run a package's tool on a database, twice, each time in a fresh container that sees nothing but both.

        The database is what `database.digest` names: read-only, and without what the policy keeps back. Failing in any
        way is a value.

        Args:
            package: Untrusted; the static screen comes first.
            database: Of any domain; no query is run through it.
            attempt_id: The journal id of the step it belongs to.
            observe: Report what the tool does as well, and run it although the screen refuses it: what it gave is then
                told beside the findings. For audits.

        Raises:
            PolicyError: The policy does not grant tools.
            SandboxError: The sandbox failed.
            Cancelled: An operator asked to stop.
        """
        ...


class LanguageModel(Protocol):
    """Answers conversations. Thread-safe, and holds no state that a reply depends on."""

    @property
    def name(self) -> str:
        """For records, for instance `offline` or `anthropic/NAME`."""
        ...

    @property
    def context_tokens(self) -> int:
        """How long a conversation may grow."""
        ...

    @property
    def is_repeatable(self) -> bool:
        """Whether asking again gives the same reply at no cost, so that a call lost in a crash costs nothing."""
        ...

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        """Length of the conversation in the model's tokens, or an estimate that is not lower."""
        ...

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        """What `complete` may cost at most; `usd` is None where the price is unknown."""
        ...

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        """The model's next message.

        Raises:
            ModelError: No answer could be had.
            Cancelled: An operator asked to stop.
        """
        ...


class Reservation(AbstractContextManager["Reservation"], Protocol):
    """Spending set aside; leaving its block unsettled charges it in full and counts it as lost. Thread-safe."""

    def settle(self, actual: Spend) -> None:
        """Replace the reservation by what was really spent; what is over it is charged as well."""
        ...

    def release(self) -> None:
        """Give everything back: nothing was spent."""
        ...


class Ledger(Protocol):
    """What may be spent, what is set aside and what was spent. Thread-safe."""

    def reserve(self, amounts: Spend, account: Account) -> Reservation:
        """Set spending aside, at its worst case.

        Raises:
            BudgetExhausted: A ceiling does not cover it; nothing was set aside.
            InputError: Its price is unknown although there is a ceiling in US dollars.
        """
        ...

    def charge(self, amounts: Spend, account: Account, *, lost: bool = False) -> None:
        """Record what an earlier process spent, as its journal tells; ceilings do not stop it, since it is spent.

        Raises:
            InputError: Its price is unknown although there is a ceiling in US dollars.
        """
        ...


class Journal(Protocol):
    """A run's truth: records by key, in order, each written once. Thread-safe; durable when `put` returns."""

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The record of a key, or None."""
        ...

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """Write a record.

        Raises:
            RunStateError: The key has a record already, or the store cannot be written.
        """
        ...

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(key, record) of every key with this prefix, in the order of writing."""
        ...

    def put_blob(self, content: bytes) -> str:
        """Store content; returns its digest (`sha256:` and 64 hex digits). Idempotent."""
        ...

    def get_blob(self, digest: str) -> bytes:
        """Content by digest.

        Raises:
            RunStateError: Nothing has this digest.
        """
        ...
