"""All commands under one name."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.bootstrap.header import program_version
from orchestrator.cli.assessing import assess
from orchestrator.cli.audit import audit_app
from orchestrator.cli.compare import GroupsCommand, compare
from orchestrator.cli.engine import doctor, sandbox_app
from orchestrator.cli.estimate import estimate_app
from orchestrator.cli.evaluating import evaluate
from orchestrator.cli.images import images_app
from orchestrator.cli.package_answer import answer
from orchestrator.cli.plain_help import in_plain_words
from orchestrator.cli.policies import policy_app
from orchestrator.cli.releasing import approve, export
from orchestrator.cli.reporting import report
from orchestrator.cli.runs import runs_app, show
from orchestrator.cli.searching import resume_run, run
from orchestrator.cli.sql import sql_app
from orchestrator.cli.sql_final import final
from orchestrator.cli.tasks import task_app

_ORDER = (
    *("doctor", "images"),  # is it set up?
    *("task", "estimate", "run", "resume", "show", "report", "compare", "runs", "evaluate"),
    *("sql", "final", "export", "approve", "answer"),
    *("policy", "audit", "sandbox"),
)
"""As a newcomer needs them; Typer lists all commands before all groups."""

app = typer.Typer(
    help="Search for better programs with language models; everything they write runs only in sealed containers.",
    epilog=(
        "Exit codes: 0 done or scored, 1 the candidate failed or is below the threshold, no answer, a query refused, "
        "2 wrong input, 3 something is missing on this machine or the home cannot be written, 4 budget spent, 5 the "
        "sandbox failed or a model gave no answer, 6 the result cannot be written, 7 the provider of a model serves "
        "nobody and the run is paused, 130 interrupted."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"evolvarium {program_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")] = False,
) -> None:
    """Nothing of its own: the options above work before any command."""


app.command("doctor")(doctor)
app.add_typer(images_app, name="images")
task_app.command("assess")(assess)
app.add_typer(task_app, name="task")
app.add_typer(estimate_app, name="estimate")
app.command("run")(run)
app.command("resume")(resume_run)
app.command("show")(show)
app.command("report")(report)
app.command("compare", cls=GroupsCommand)(compare)
app.add_typer(runs_app, name="runs")
app.command("evaluate")(evaluate)
app.add_typer(sql_app, name="sql")
app.command("final")(final)
app.command("export")(export)
app.command("approve")(approve)
app.command("answer")(answer)
app.add_typer(policy_app, name="policy")
app.add_typer(audit_app, name="audit")
app.add_typer(sandbox_app, name="sandbox")
in_plain_words(app, order=_ORDER)
