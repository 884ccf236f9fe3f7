"""`evolvarium images`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.bootstrap.bench import image_store, images_pruned
from orchestrator.bootstrap.places import existing_places, find_places
from orchestrator.cli.installation_documents import ImageDocument, ImagesDocument
from orchestrator.cli.options import DryRun, Home, Json
from orchestrator.cli.pruning_documents import ImagesPruneDocument, OldImageDocument
from orchestrator.cli.terminal import Rows, Terminal
from orchestrator.sandbox.image_pruning import OldImage
from orchestrator.sandbox.images import ROLES, ImageState, ImageStatus

images_app = typer.Typer(
    help="Build, list and verify the images that sandboxes run.", no_args_is_help=True, rich_markup_mode=None
)


@images_app.command("build")
def build(
    roles: Annotated[
        list[str] | None, typer.Argument(metavar="[ROLE]...", help="Which images; default all.", show_default=False)
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="Start from IMAGE@sha256:DIGEST of a registry instead of the distribution's packages.",
            show_default=False,
        ),
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Fetch the distribution's packages anew.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Build what is missing or out of date, and lock its digest; quick when nothing is."""
    terminal = Terminal(as_json=as_json)
    with image_store(find_places(home, None)) as store:
        states = store.build(roles or ROLES, terminal.note, base=base, refresh=refresh)
    _print(terminal, states)


@images_app.command("list")
def list_images(home: Home = None, as_json: Json = False) -> None:
    """List the images and how they stand to their lock."""
    with image_store(existing_places(home)) as store:
        states = store.list()
    _print(Terminal(as_json=as_json), states)


@images_app.command("verify")
def verify(home: Home = None, as_json: Json = False) -> None:
    """Read every file of every image and compare with the lock; exit code 3 when something differs."""
    with image_store(existing_places(home)) as store:
        store.verify(deep=True)
        states = store.list()
    _print(Terminal(as_json=as_json), states)


@images_app.command("prune")
def prune(
    other_homes: Annotated[
        bool,
        typer.Option(
            "--other-homes", help="Also those with the tag of another home, which then has to build them again."
        ),
    ] = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Remove images of earlier builds, which this home's lock does not name; never one that a container uses."""
    terminal = Terminal(as_json=as_json)

    def tell(images: Sequence[OldImage]) -> None:
        rows = [[image.role, image.id[:19], ", ".join(image.tags) or None, image.size_bytes >> 20] for image in images]
        if rows:
            terminal.note(Rows(title="Old images", columns=["role", "id", "tags", "MiB"], rows=rows))

    report = images_pruned(existing_places(home), other_homes=other_homes, dry_run=dry_run, tell=tell)
    document = ImagesPruneDocument(
        dry_run=dry_run,
        removed=[_old_image(image) for image in report.removed],
        kept=[_old_image(image) for image in report.kept],
        of_other_homes=report.of_other_homes,
    )
    text = f"{'would remove' if dry_run else 'removed'} {len(document.removed)} images"
    if document.kept:
        text += f"; {len(document.kept)} stay, because a container or another image needs them"
    if document.of_other_homes:
        text += f"; {document.of_other_homes} with the tag of another home stay (see --other-homes)"
    terminal.result(document, text)


def _old_image(image: OldImage) -> OldImageDocument:
    return OldImageDocument(id=image.id, role=image.role, tags=list(image.tags), size_bytes=image.size_bytes)


def _print(terminal: Terminal, states: list[ImageState]) -> None:
    images = [
        ImageDocument(
            role=state.role, status=state.status.value, locked=state.locked, found=state.found, detail=state.detail
        )
        for state in states
    ]
    document = ImagesDocument(verified=all(state.status is ImageStatus.LOCKED for state in states), images=images)
    rows = [[image.role, image.status, image.locked, image.detail] for image in images]
    terminal.result(document, Rows(title="Images", columns=["role", "status", "locked", "detail"], rows=rows))
