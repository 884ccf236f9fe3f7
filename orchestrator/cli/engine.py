"""`evolvarium sandbox` and `evolvarium doctor`."""

from __future__ import annotations

import typer

from orchestrator.bootstrap.bench import examined, pruned
from orchestrator.bootstrap.model_files import load_models
from orchestrator.bootstrap.model_findings import examine_models
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.cli.installation_documents import DoctorDocument, FindingDocument, PruneDocument
from orchestrator.cli.model_options import ModelsFile
from orchestrator.cli.options import DryRun, Home, Json, PolicyName
from orchestrator.cli.pruning_documents import PrunePreviewDocument
from orchestrator.cli.stopping import stoppable
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.errors import PrerequisiteError

sandbox_app = typer.Typer(help="Look after containers and volumes.", no_args_is_help=True, rich_markup_mode=None)


@sandbox_app.callback()
def sandbox() -> None:
    """Look after containers and volumes."""


@sandbox_app.command("prune")
def prune(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove containers that dead owners left, and imported data that no container uses, of every home on this engine.

    The engine knows no homes, so there is no --home: whatever installation of this program made it on this engine, it
    is removed once its owner is dead, and imported data only while no other owner lives. Nothing is lost that cannot be
    had again: data are imported anew when they are needed.
    """
    report = pruned(dry_run=dry_run)
    kind = PrunePreviewDocument if dry_run else PruneDocument
    document = kind(
        containers=list(report.containers), volumes=list(report.volumes), kept_containers=report.kept_containers
    )
    named = [f"- {name}" for name in (*document.containers, *document.volumes)] if dry_run else []
    Terminal(as_json=as_json).result(document, pruned_text(document), *named)


def pruned_text(document: PruneDocument | PrunePreviewDocument) -> str:
    """What was removed, or would be, and of whom."""
    act = "would remove" if isinstance(document, PrunePreviewDocument) else "removed"
    return (
        f"{act} {_counted(len(document.containers), 'container')} and {_counted(len(document.volumes), 'volume')}, "
        f"whichever home on this engine they came from; kept {_counted(document.kept_containers, 'container')} of "
        "living owners"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def doctor(policy: PolicyName = "default", models: ModelsFile = None, home: Home = None, as_json: Json = False) -> None:
    """Examine engine, limits, images, keys and disk space, with a remedy for each finding; exit code 3 on an error.

    Limits are proved by probes in real containers, once for each engine, runtime and configuration. With --models every
    model of the file is looked for at its server, which costs nothing; what is found of them comes first.
    """
    terminal = Terminal(as_json=as_json)
    places = find_places(home, None)
    found_policy = find_policy(places, policy)
    file = None if models is None else load_models(models)
    with stoppable() as token:
        of_models = [] if file is None else examine_models(file, found_policy, token)
    findings = [
        FindingDocument(topic=finding.topic, status=finding.status.value, found=finding.found, remedy=finding.remedy)
        for finding in [*of_models, *examined(places, found_policy, terminal.note)]
    ]
    document = DoctorDocument(ready=all(finding.status != "error" for finding in findings), findings=findings)
    rows = [[finding.topic, finding.status, finding.found, finding.remedy or None] for finding in findings]
    terminal.result(
        document,
        Rows(title="Findings", columns=["topic", "status", "found", "remedy"], rows=rows, cell_characters=300),
    )
    if not document.ready:
        raise typer.Exit(PrerequisiteError.exit_code)
