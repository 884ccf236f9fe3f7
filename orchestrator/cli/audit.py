"""`evolvarium audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.bootstrap.places import existing_places
from orchestrator.cli.installation_documents import AuditDocument, AuditHeadDocument
from orchestrator.cli.options import Home, Json
from orchestrator.cli.releasing import audit_package
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.errors import AuditError
from orchestrator.storage.audit import AuditChain
from orchestrator.storage.audit_report import parse_head

audit_app = typer.Typer(
    help="Check what ran, under which policy, in the signed chain of audit records.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@audit_app.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option(
            help="The head that `audit head` printed earlier, kept elsewhere; shows truncation.", show_default=False
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Walk the whole chain; exit code 1 when it is broken, 3 when there is none or it cannot be examined.

    Without --head, entries cut off at the end cannot be detected.
    """
    outside_head = None if head is None else parse_head(head)
    report = AuditChain(existing_places(home).home).verify(outside_head)
    document = AuditDocument(
        intact=report.is_intact,
        records=report.records,
        head=report.head,
        signatures=report.signatures.value,
        broken_index=report.broken_index,
        reason=report.reason,
        torn_bytes=report.torn_bytes,
        outside_head_found=report.expected_head_found,
        remarks=list(report.remarks),
    )
    rows: list[list[object]] = [
        ["intact", document.intact],
        ["records that verify", document.records],
        ["head", document.head],
        ["signatures", document.signatures],
        ["first broken record", document.broken_index],
        ["why", document.reason],
    ]
    rows += [["remark", remark] for remark in document.remarks]
    table = Rows(title="Audit chain", columns=["what", "value"], rows=rows, cell_characters=1000)
    Terminal(as_json=as_json).result(document, table)
    if report.is_broken:
        raise typer.Exit(1)
    if not report.is_intact:
        raise typer.Exit(AuditError.exit_code)


audit_app.command("tool")(audit_package)


@audit_app.command("head")
def head(home: Home = None, as_json: Json = False) -> None:
    """Print the signed head of the chain, whole, to be kept outside of this machine."""
    document = AuditHeadDocument.model_validate(AuditChain(existing_places(home).home).export_head())
    lines = [f"{name}: {getattr(document, name)}" for name in ("records", "head", "signature")]
    Terminal(as_json=as_json).result(document, *lines, document.public_key.rstrip("\n"))
