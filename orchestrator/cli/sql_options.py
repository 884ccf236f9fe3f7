"""Options that the commands of `evolvarium sql` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import finite, path_given


class CriticMode(StrEnum):
    """What the critic is shown."""

    UNGROUPED = "ungrouped"
    GROUPED = "grouped"


class CriticScores(StrEnum):
    """How many scores it gives."""

    ONE = "one"
    FOUR = "four"


DatabaseFile = Annotated[
    Path,
    typer.Option("--db", parser=path_given, metavar="FILE", help="SQLite database; only a container opens it."),
]
GeneratorModel = Annotated[
    str,
    typer.Option(
        "--model", help="Writes the queries: `offline`, `anthropic/NAME`, `openai/NAME`, or a model of a --models file."
    ),
]
CriticModel = Annotated[
    str | None,
    typer.Option("--critic-model", help="Judges them; default: the same model.", show_default=False),
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=2**63 - 1, help="Seeds every random choice; default 0.", show_default=False)
]
Rounds = Annotated[
    int | None, typer.Option(min=1, max=32, help="At most so many rounds; default 3.", show_default=False)
]
Candidates = Annotated[
    int | None, typer.Option(min=1, max=256, help="Candidates of a round; default 16.", show_default=False)
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, max=2, help="Of the generator; default 0.8.", show_default=False, callback=finite),
]
Mode = Annotated[
    CriticMode | None,
    typer.Option("--critic-mode", help="Show the critic every candidate, or one for each result.", show_default=False),
]
Scores = Annotated[
    CriticScores | None,
    typer.Option("--critic-scores", help="Ask it for one score, or for four.", show_default=False),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any setting of docs/text-to-sql.md; may be repeated.", show_default=False
    ),
]
BudgetUsd = Annotated[
    float | None,
    typer.Option(min=0, help="Stop before spending more than this.", show_default=False, callback=finite),
]
BudgetTokens = Annotated[
    int | None, typer.Option(min=0, help="Stop before using more tokens than this.", show_default=False)
]
QuerySeconds = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=600,
        help="Computing time of a predicted query; at most half of what the policy grants, the gold query's limit.",
        callback=finite,
    ),
]
QuestionsAtOnce = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=256, help="Questions at once; default: one per processor.", show_default=False
    ),
]
