"""`evolvarium compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.bootstrap.compare import named_runs, require_comparable
from orchestrator.bootstrap.places import existing_places
from orchestrator.bootstrap.runs import run_store
from orchestrator.cli.compare_documents import ComparisonDocument
from orchestrator.cli.compare_reading import read_group
from orchestrator.cli.files import require_output_name, require_target, write_text
from orchestrator.cli.options import Force, Home, Json, Output
from orchestrator.cli.plain_help import PlainCommand
from orchestrator.cli.terminal import Rows, Terminal, inert, json_line, one_line, visible

if TYPE_CHECKING:
    from typer._click import Context

_WITH = "--with"
_EXAMPLE = "evolvarium compare latest --with previous"
_PAGE, _DOCUMENT, _PICTURE = "compare.md", "compare.json", "best_so_far"


class GroupsCommand(PlainCommand):
    """A command whose option `--with` takes all names up to the next option."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As the base class, once each of these names has a `--with` of its own."""
        if not ctx.resilient_parsing and _lacks_others(args):
            ctx.fail(f"{_WITH} is missing: it names the runs of group B; for example, `{_EXAMPLE}`")
        spread: list[str] = []
        is_within = False
        for position, argument in enumerate(args):
            if argument == "--":
                spread += args[position:]
                break
            if argument == _WITH:
                is_within = True
                if _is_option([*args, "--"][position + 1]):
                    ctx.fail(f"{_WITH} takes the runs of group B, and none follows it")
            elif _is_option(argument):
                is_within = False
                spread.append(argument)
            else:
                spread += [_WITH, argument] if is_within else [argument]
        return super().parse_args(ctx, spread)


def _lacks_others(args: list[str]) -> bool:
    """Whether runs are named, but none of group B, and no help is asked for."""
    has_others = any(argument == _WITH or argument.startswith(f"{_WITH}=") for argument in args)
    return not has_others and "--help" not in args and not all(map(_is_option, args))


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Group A: ids, beginnings of ids, `latest`, `previous`, or files with one of these on each line.",
        ),
    ],
    others: Annotated[
        list[str], typer.Option(_WITH, metavar="RUN...", help="Group B, likewise: all names up to the next option.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap's resamples.")] = 0,
    different_data: Annotated[
        bool,
        typer.Option("--allow-different-data", help="Compare programs that were measured on other hidden data, too."),
    ] = False,
    output: Output = None,
    force: Force = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Compare two groups of runs of one task.

    For the best of every run, on the split that guides the search and on those it never saw: mean and standard
    deviation (n - 1) of each group, the difference of the means with its percentile bootstrap interval, and the
    Mann-Whitney test, exact where no two values are equal. Runs that have not ended are left out and named. With -o, a
    folder receives these tables (compare.md), the best so far against evaluations and what was spent (best_so_far.png
    and .svg: median and band), and the document (compare.json). Needs no engine.

    For example: evolvarium compare latest --with previous
    """
    require_output_name(output, command="compare")
    store = run_store(existing_places(home))
    first = read_group(store, named_runs(store, runs), "group A")
    other = read_group(store, named_runs(store, others), "group B")
    accepted = require_comparable(
        [run.conditions() for run in first.runs],
        [run.conditions() for run in other.runs],
        different_data=different_data,
    )
    planned = [] if output is None else _planned(output, force=force)
    from orchestrator.cli.compare_measures import comparison_document  # noqa: PLC0415 - SciPy takes a second to load
    from orchestrator.cli.compare_tables import comparison_tables  # noqa: PLC0415 - comes with it

    files = [str(path) for path in planned]
    document = comparison_document(first, other, seed=seed, accepted=accepted, files=files)
    tables = comparison_tables(document)
    if output is not None:
        _write(document, tables, output, force=force)
    terminal = Terminal(as_json=as_json)
    terminal.note(*(f"note: {warning}" for warning in document.warnings))
    terminal.result(document, *tables, *([f"written to {output}"] if output is not None else []))


def _planned(folder: Path, *, force: bool) -> list[Path]:
    written = [folder / name for name in (_PAGE, _DOCUMENT, f"{_PICTURE}.png", f"{_PICTURE}.svg")]
    for path in written:
        require_target(path, force=force)
    return written


def _write(document: ComparisonDocument, tables: list[Rows], folder: Path, *, force: bool) -> None:
    from orchestrator.cli import compare_figures, figures  # noqa: PLC0415 - matplotlib takes a second, only for -o

    parts = [
        f"# Comparison on {one_line(document.task, 80)}\n",
        *(table.markdown() for table in tables),
        f"## Best so far\n\n![Median and band of the best so far of both groups]({_PICTURE}.png)\n",
        *(["## Notes\n", *(f"- {visible(warning)}\n" for warning in document.warnings)] if document.warnings else []),
    ]
    write_text(folder / _PAGE, inert("\n".join(parts)), force=force)
    write_text(folder / _DOCUMENT, json_line(document) + "\n", force=force)
    figures.write(compare_figures.best_so_far_bands(document), folder / _PICTURE, force=force)
