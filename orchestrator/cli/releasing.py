"""`evolvarium export`, `approve` and `audit tool`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.bootstrap.places import existing_places, find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.release.approvals import approve as sign
from orchestrator.bootstrap.release.approvals import public_key_of
from orchestrator.bootstrap.release.export import Exported, export_package
from orchestrator.bootstrap.release.folders import read_release
from orchestrator.bootstrap.release.tool_audit import audit_tool
from orchestrator.bootstrap.robophd.packages import load_package
from orchestrator.bootstrap.sql.opening import OpenFor
from orchestrator.cli.files import require_folder
from orchestrator.cli.options import Force, Home, Json, PolicyName, RunName, RuntimeName, path_given
from orchestrator.cli.release_documents import (
    ApprovalDocument,
    ExportDocument,
    PublicKeyDocument,
    ToolAuditDocument,
)
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.releases import MANIFEST
from orchestrator.errors import InputError
from orchestrator.runtime.counts import counted
from orchestrator.runtime.user_files import kind_at

_LISTED = 30
_NOTHING = {"imports": ["none beyond the preloaded"]}
"""What stands for an empty list: modules that the runner itself needs are loaded before a tool begins."""
PackageFolder = Annotated[
    Path, typer.Argument(parser=path_given, metavar="DIR", help="An exported package.", show_default=False)
]


def export(
    run: RunName,
    output: Annotated[Path, typer.Option("-o", "--output", parser=path_given, metavar="DIR", help="Where to; made.")],
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="A package's id; default: the champion.", show_default=False)
    ] = None,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write a package of an evolution into a folder: tool, instructions, digests, audit, bill of materials, licences.

    The tool is run once more for the audit, watched, in its sandbox. What is exported is static: `evolvarium answer`
    uses it without any of the code that evolves packages.
    """
    terminal = Terminal(as_json=as_json)
    places = find_places(home, None)
    require_folder(output)
    with stoppable() as token:
        opener = OpenFor(places=places, policy=find_policy(places, policy, runtime), token=token, note=terminal.note)
        exported = export_package(run, agent, output, opener, force=force, project=places.project)
    document = _exported(exported)
    terminal.result(
        document,
        f"Package {document.package} is in {document.folder} (manifest {document.manifest[:19]}).",
        f"Right on {document.select_right} of {counted(document.select_questions, 'question')} it was chosen by.",
        _verdict(document.audit),
    )


def audit_package(
    folder: PackageFolder,
    db: Annotated[
        list[Path] | None,
        typer.Option(
            parser=path_given,
            metavar="FILE",
            help="Run it on this SQLite database; may be repeated. Default: a small web shop made for this.",
            show_default=False,
        ),
    ] = None,
    policy: PolicyName = "default",
    runtime: RuntimeName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what a package's tool does: screened, then run in its sandbox and watched, whatever the screen says.

    DIR is an exported package, or a folder with agent.json. Exit code 1: something was found, the tool failed, or it
    did something that asks for a look.
    """
    terminal = Terminal(as_json=as_json)
    places = find_places(home, None)
    package = _package(folder)
    with stoppable() as token:
        opener = OpenFor(places=places, policy=find_policy(places, policy, runtime), token=token, note=terminal.note)
        document = ToolAuditDocument.model_validate(audit_tool(package, tuple(db or ()), opener).document())
    terminal.result(document, *audit_parts(document))
    if not document.is_clean:
        raise typer.Exit(1)


def approve(
    folder: Annotated[
        Path | None,
        typer.Argument(parser=path_given, metavar="DIR", help="An exported package.", show_default=False),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="The approver, as the policy names them.", show_default=False)
    ] = None,
    note: Annotated[str, typer.Option(help="For people.")] = "",
    key: Annotated[
        Path | None,
        typer.Option(
            parser=path_given,
            metavar="FILE",
            help="An Ed25519 key in PEM, mode 0600; default: the key that signs this home's audit chain.",
            show_default=False,
        ),
    ] = None,
    show_key: Annotated[bool, typer.Option("--show-key", help="Print the public key for a policy, and end.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Sign an exported package: a policy can ask for the approval of people it names before a package may answer."""
    terminal = Terminal(as_json=as_json)
    key_file = key or existing_places(home).home / "audit" / "key.pem"
    is_homes = key is None
    if show_key:
        shown = PublicKeyDocument(public_key=public_key_of(key_file, is_homes=is_homes))
        terminal.result(shown, shown.public_key)
        return
    if folder is None or by is None:
        msg = "give the package's folder and --by NAME, or --show-key"
        raise InputError(msg)
    approval = sign(folder, by=by, note=note, key_file=key_file, is_homes=is_homes)
    document = ApprovalDocument.model_validate(approval.model_dump(exclude={"signature"}))
    terminal.result(document, f"{document.by} approves of {folder} (manifest {document.manifest[:19]}).")


def _package(folder: Path) -> AgentPackage:
    try:
        is_exported = kind_at(folder / MANIFEST) != 0
    except OSError as error:
        msg = f"cannot read the package {str(folder)!r}: {error.strerror}; give a folder made by `export`"
        raise InputError(msg) from error
    return read_release(folder).package if is_exported else load_package(folder)


def _exported(exported: Exported) -> ExportDocument:
    manifest = exported.manifest
    return ExportDocument(
        folder=str(exported.folder),
        package=manifest.name,
        digest=manifest.package,
        manifest=manifest.digest,
        run=manifest.run,
        select_right=manifest.select.right,
        select_questions=manifest.select.questions,
        files=sorted([*manifest.files, MANIFEST]),
        audit=ToolAuditDocument.model_validate(exported.audit.document()),
    )


def audit_parts(document: ToolAuditDocument) -> list[Rows | str]:
    """An audit as people read it."""
    parts: list[Rows | str] = []
    if document.findings:
        rows = [[one["file"], one["line"], one["message"]] for one in document.findings]
        parts += [Rows(title="The static screen refuses", columns=["file", "line", "why"], rows=rows), ""]
    for run in document.runs:
        parts += [_run_rows(run), ""]
    return [*parts, _verdict(document)]


def _run_rows(run: dict[str, object]) -> Rows:
    rows: list[list[object]] = [["ending", run["failure"] or "ok"], ["detail", run["detail"] or None]]
    rows += [["to look at", concern] for concern in _listed(run["concerns"])]
    observed = run["observed"]
    if isinstance(observed, dict):
        for name in ("imports", "opened", "sql"):
            rows += [[name, entry] for entry in _listed(observed[name]) or _NOTHING.get(name, [])]
        rows += [["event", f"{name}: {count}"] for name, count in observed["events"].items()]
    containers = run["containers"]
    if isinstance(containers, list):
        rows += [
            ["container", f"{one['ending']}, {one['cpu_seconds']} s, {one['memory_peak_bytes']} bytes"]
            for one in containers
        ]
    return Rows(title=f"On {run['database']}", columns=["what", "value"], rows=rows, cell_characters=200)


def _listed(entries: object) -> list[str]:
    found = [str(entry) for entry in entries] if isinstance(entries, list) else []
    more = [f"and {len(found) - _LISTED} more (--json lists them)"] if len(found) > _LISTED else []
    return [*found[:_LISTED], *more]


def _verdict(document: ToolAuditDocument) -> str:
    if document.is_clean:
        return "The audit of its tool found nothing to look at."
    concerns = sum(len(run["concerns"]) for run in document.runs)
    findings = counted(len(document.findings), "finding")
    return f"The audit of its tool: {findings} of the screen, {counted(concerns, 'thing')} to look at."
