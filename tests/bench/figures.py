"""What a benchmark finds, next to the target it is held to."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, computed_field

from orchestrator.cli.terminal import Rows


class Status(StrEnum):
    """How a figure stands to its target."""

    PASS = "pass"
    MISS = "miss"
    REPORTED = "reported"
    """There is no target."""


class Figure(BaseModel):
    """One measured number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    value: Annotated[float, Field(allow_inf_nan=False)]
    unit: str
    at_most: Annotated[float | None, Field(allow_inf_nan=False)] = None
    """The target; None: the figure is only reported."""
    detail: str = ""
    """How it was measured, and the numbers behind it."""

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def status(self) -> Status:
        """A value equal to the target passes."""
        if self.at_most is None:
            return Status.REPORTED
        return Status.PASS if self.value <= self.at_most else Status.MISS


class Machine(BaseModel):
    """Where it was measured, without any name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    processors: int
    """That this process may use."""
    load: float
    """Average number of running processes in the minute before; figures of a busy machine say little."""
    python: str
    engine: str
    runtime: str


class BenchDocument(BaseModel):
    """All figures of one `make bench`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: Machine
    figures: list[Figure]

    @property
    def has_miss(self) -> bool:
        """Whether any target is missed."""
        return any(figure.status is Status.MISS for figure in self.figures)

    def rows(self) -> Rows:
        """As a table."""
        rows = [
            [figure.what, _quantity(figure.value, figure.unit), _target(figure), figure.status.value, figure.detail]
            for figure in self.figures
        ]
        columns = ["what", "figure", "at most", "", "how"]
        return Rows(title=machine_line(self.machine), columns=columns, rows=rows, cell_characters=200)


def machine_line(machine: Machine) -> str:
    """A machine in one line."""
    return (
        f"{machine.processors} processors, load {machine.load:.1f} before, Python {machine.python}, "
        f"engine {machine.engine}, runtime {machine.runtime}"
    )


def _target(figure: Figure) -> str | None:
    return None if figure.at_most is None else _quantity(figure.at_most, figure.unit)


def _quantity(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if abs(value) < 100 else f"{value:.0f} {unit}"
