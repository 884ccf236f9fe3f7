"""The JSON documents on removals that can be tried first."""

from __future__ import annotations

from orchestrator.cli.documents import Document


class PrunePreviewDocument(Document):
    """`sandbox prune --dry-run`: what would be removed, whichever home on the engine it came from."""

    containers: list[str]
    """Ids."""
    volumes: list[str]
    """Names; further ones may follow once these are gone."""
    kept_containers: int
    """Containers of owners that live, or whose lease runs."""


class OldImageDocument(Document):
    """An image of ours that this home's lock does not name."""

    id: str
    role: str
    """A role, or `interpreter`, from which the images of a home are made."""
    tags: list[str]
    """Empty: nothing names it any more."""
    size_bytes: int
    """With what it shares with other images."""


class ImagesPruneDocument(Document):
    """`images prune`."""

    dry_run: bool
    removed: list[OldImageDocument]
    """With `dry_run`: what would be removed."""
    kept: list[OldImageDocument]
    """Old as well, but the engine says that a container or another image needs them."""
    of_other_homes: int
    """Images with the tag of another home; they stay without `--other-homes`."""
