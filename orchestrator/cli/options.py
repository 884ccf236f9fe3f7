"""Options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.policies import Runtime
from orchestrator.errors import InputError
from orchestrator.runtime.strict_yaml import shown
from orchestrator.runtime.user_files import kind_at
from orchestrator.search.final_choice import Rule


def finite(number: float | None) -> float | None:
    """A number that was given, which JSON and arithmetic can hold.

    Raises:
        InputError: It is `nan` or infinite.
    """
    if number is not None and not math.isfinite(number):
        msg = f"{number} is not a finite number; give one, or leave the option out"
        raise InputError(msg)
    return number


def path_given(text: str) -> Path:
    """A path that was given; an empty one, for instance of an unset variable, would mean the working directory.

    Raises:
        InputError: It is empty.
        BadParameter: No file can be there, or what is there cannot be looked at; the caller adds the option's name.
    """
    if not text:
        msg = "a path is empty; give a file or folder, or leave the option out ('.' is the working directory)"
        raise InputError(msg)
    try:
        kind_at(Path(text))
    except OSError as error:
        msg = f"{shown(text)}: {error.strerror}; give another path"
        raise typer.BadParameter(msg) from error
    return Path(text)


def data_given(data: Path | None, or_library: Path | None) -> Path | None:
    """What `--data` or `--or-library` names; None: neither was given.

    Raises:
        InputError: Both were given, or it does not exist.
    """
    given = {"--data": data, "--or-library": or_library}
    chosen = {option: path for option, path in given.items() if path is not None}
    if len(chosen) > 1:
        msg = "--or-library is another name of --data; give one of them"
        raise InputError(msg)
    for option, path in chosen.items():
        if not path.exists():
            msg = f"there is no {str(path)!r}; {option} takes a file, or the folder that holds it"
            raise InputError(msg)
        return path
    return None


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object (see docs/json.md) instead of tables.")]
Home = Annotated[
    Path | None,
    typer.Option(
        parser=path_given,
        help="Where runs, audit chain and hidden seeds live; default $EVOLVARIUM_HOME, else the XDG data directory.",
        show_default=False,
    ),
]
TaskRoot = Annotated[
    Path | None,
    typer.Option(parser=path_given, help="Folder of further task packages, searched first.", show_default=False),
]
PolicyName = Annotated[str, typer.Option("--policy", help="Name of a policy under policies/, or a YAML file.")]
RuntimeName = Annotated[
    Runtime | None,
    typer.Option(
        "--runtime",
        help="Run everything under this runtime; refused where it would loosen the policy. For gVisor (runsc) there is "
        "`--policy gvisor`.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        parser=path_given,
        help="File, or folder of files, for the task's splits that come from files (online_bin_packing: the "
        "OR-Library's binpack1.txt); makes them available.",
        show_default=False,
    ),
]
OrLibrary = Annotated[
    Path | None,
    typer.Option("--or-library", parser=path_given, help="Another name of --data.", show_default=False),
]
Choice = Annotated[
    Rule | None,
    typer.Option(
        "--choice",
        help="How the best is chosen: `fitness`, or by the task's error and size with `exact` or `paper`; default: as "
        "the task says.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the beginning of it, `latest` or `previous`.")]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="Name of a task package, or its folder.")]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, max=256, help="Evaluations and analyses at once; default: one per processor.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", parser=path_given, help="Where to write.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
PublicSeed = Annotated[
    bool,
    typer.Option("--public-seed", help="Generate the data from the published seed: comparable, but not secret."),
]
