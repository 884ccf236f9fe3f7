"""`evolvarium images`."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.bootstrap.bench import image_store
from orchestrator.bootstrap.places import find_places
from orchestrator.cli.installation_documents import ImageDocument, ImagesDocument
from orchestrator.cli.options import Home, Json
from orchestrator.cli.terminal import Rows, Terminal
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
    with image_store(find_places(home, None)) as store:
        states = store.list()
    _print(Terminal(as_json=as_json), states)


@images_app.command("verify")
def verify(home: Home = None, as_json: Json = False) -> None:
    """Read every file of every image and compare with the lock; exit code 3 when something differs."""
    with image_store(find_places(home, None)) as store:
        store.verify(deep=True)
        states = store.list()
    _print(Terminal(as_json=as_json), states)


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
