"""What a search method may know of a task; nothing in here is secret."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.domain.candidates import FileTree


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """The public face of a task package."""

    name: str
    description: str
    """Shown to models, as it stands."""
    initial: FileTree
    """The initial program; its paths are the files a candidate has."""
    entry: str
    """The path of the module that is evaluated, for instance `program.py`; one of the paths of `initial`."""
    fitness: str
    """The metric that selection maximises; in every scored verdict."""
    features: tuple[str, ...]
    """The metrics that span the grid, each in [0, 1]; in every scored verdict."""
    has_public_data: bool
    """Whether analyses find the task's public data in `data/`."""
