"""What candidates, experiments, queries and tools are run with; behind each is the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.data_access import Access
from orchestrator.domain.outcomes import Outcome
from orchestrator.domain.sql import Description, QueryResult
from orchestrator.domain.tool_runs import ToolRun
from orchestrator.domain.verdicts import Verdict


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
