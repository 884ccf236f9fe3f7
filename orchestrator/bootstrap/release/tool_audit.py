"""What a package's tool does, for an operator who has to say whether it may run: screened, run and watched, sealed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orchestrator.bootstrap.bench import Bench, open_bench, stops_as_cancelled
from orchestrator.bootstrap.places import writable_home
from orchestrator.bootstrap.release.concerns import concerns_of
from orchestrator.bootstrap.sql.opening import OpenFor, require_file
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.data_access import find_rule
from orchestrator.domain.policies import Purpose
from orchestrator.domain.records import to_record
from orchestrator.domain.tool_runs import ToolFinding, ToolObservation, ToolRun
from orchestrator.errors import PolicyError, PrerequisiteError
from orchestrator.evaluation.database_tools import SandboxDatabaseTools
from orchestrator.evaluation.databases import DatabaseStore, Domain
from orchestrator.sql.demo import DATABASE as DEMO
from orchestrator.sql.demo import write_demo


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """The tool on one database."""

    database: str
    run: ToolRun
    concerns: tuple[str, ...]
    """What an operator should look at, one line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAudit:
    """Everything that was found."""

    package: str
    """Digest."""
    image: str
    """Digest of the image it ran in."""
    policy: str
    findings: tuple[ToolFinding, ...]
    """Of the static screen."""
    runs: tuple[AuditedRun, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found and every run gave a text."""
        return not self.findings and all(one.run.failure is None and not one.concerns for one in self.runs)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "package": self.package,
            "image": self.image,
            "policy": self.policy,
            "is_clean": self.is_clean,
            "findings": [to_record(finding) for finding in self.findings],
            "runs": [_run_document(one) for one in self.runs],
        }


def audit_tool(package: AgentPackage, databases: Sequence[Path], opener: OpenFor) -> ToolAudit:
    """Screen a tool, run it although the screen refuses it, and watch what it does.

    What is watched is told from inside the tool's own process, so a hostile tool can leave things out; what the sandbox
    says of its end, and what it could not do at all, it cannot.

    Args:
        package: Untrusted.
        databases: SQLite files to run it on; none: a small web shop made for this.
        opener: Of the caller.

    Raises:
        EvolvariumError: As `open_database`; policies that grant no tool refuse it.
    """
    run_id = f"audit-tool-{secrets.token_hex(6)}"
    if not databases and find_rule(opener.policy.data, DEMO) is None:
        msg = (
            f"no data rule of policy {opener.policy.name!r} names {DEMO!r}, the shop that tools are tried on; give a "
            "database that it names with --db, or take `--policy default`"
        )
        raise PolicyError(msg)
    for path in databases:
        require_file(path)
    with ExitStack() as stack:
        paths = list(databases) or [_demo(stack)]
        with stops_as_cancelled(opener.token):
            bench = stack.enter_context(open_bench(opener.places, opener.policy, opener.token, opener.note))
            runs = tuple(_watched(package, paths, bench, run_id, opener))
            image = bench.images.digest(opener.policy.purposes[Purpose.TOOL].image)
    return ToolAudit(
        package=package.digest,
        image=image,
        policy=opener.policy.digest(),
        findings=next((one.run.findings for one in runs if one.run.findings), ()),
        runs=runs,
    )


def _watched(
    package: AgentPackage, paths: Sequence[Path], bench: Bench, run_id: str, opener: OpenFor
) -> Iterator[AuditedRun]:
    store = DatabaseStore(bench.sandbox, home=writable_home(opener.places), image_digest=bench.images.digest)
    tools = SandboxDatabaseTools(bench.sandbox, run_id=run_id)
    for path in paths:
        with store.open(path, path.stem, Domain.TOOL, run_id=run_id) as database:
            opener.note(f"running the tool on {path.stem}, watched")
            run = tools.analyse(package, database, attempt_id=f"audit/{path.stem}", observe=True)
        yield AuditedRun(database=path.stem, run=run, concerns=concerns_of(package, run))


def _run_document(one: AuditedRun) -> dict[str, Any]:
    run = one.run
    return {
        "database": one.database,
        "failure": None if run.failure is None else run.failure.value,
        "detail": run.detail,
        "characters": None if run.text is None else len(run.text),
        "concerns": list(one.concerns),
        "containers": [
            {
                "ending": outcome.ending.value,
                "wall_seconds": round(outcome.wall_seconds, 3),
                "cpu_seconds": None if outcome.cpu_seconds is None else round(outcome.cpu_seconds, 4),
                "memory_peak_bytes": outcome.memory_peak_bytes,
            }
            for outcome in run.outcomes
        ],
        "observed": None if run.observation is None else _observed(run.observation),
    }


def _observed(seen: ToolObservation) -> Mapping[str, Any]:
    return {
        "imports": list(seen.imports),
        "opened": list(seen.opened),
        "sql": list(seen.sql),
        "events": dict(seen.events),
        "omitted": seen.omitted,
    }


def _demo(stack: ExitStack) -> Path:
    try:
        folder = stack.enter_context(TemporaryDirectory(prefix="evolvarium-audit-"))
        return write_demo(Path(folder) / "demo").database
    except OSError as error:
        msg = (
            f"cannot make the database that tools are tried on: {error.strerror or error}; free disk space, name "
            "another folder with $TMPDIR, or give a database with --db"
        )
        raise PrerequisiteError(msg) from error
