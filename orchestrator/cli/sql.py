"""`evolvarium sql`."""

from __future__ import annotations

import typer

from orchestrator.cli.sql_ask import ask
from orchestrator.cli.sql_bench import bench
from orchestrator.cli.sql_check import check
from orchestrator.cli.sql_evolve import evolve
from orchestrator.cli.sql_sweep import sweep

sql_app = typer.Typer(
    help="Ask databases in plain words, measure how well that goes, and check queries against a policy.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
sql_app.command("ask")(ask)
sql_app.command("check")(check)
sql_app.command("bench")(bench)
sql_app.command("sweep")(sweep)
sql_app.command("evolve")(evolve)
