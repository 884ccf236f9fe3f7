"""Help is read at 80 columns: sentences are whole, and arguments have plain names."""

from __future__ import annotations

import re

import pytest
import typer
import typer.main
from typer._click import Context

from orchestrator.cli.app import app
from orchestrator.cli.engine import pruned_text
from orchestrator.cli.installation_documents import PruneDocument
from orchestrator.cli.plain_help import argument_name, first_sentence
from orchestrator.cli.pruning_documents import PrunePreviewDocument


def helps(width: int = 80) -> dict[str, str]:
    """Help text of every command and group by its path."""
    found: dict[str, str] = {}

    def add(path: str, command: object) -> None:
        context = Context(command, info_name=path, terminal_width=width)  # type: ignore[arg-type]
        found[path] = command.get_help(context)  # type: ignore[attr-defined]
        for name, inner in getattr(command, "commands", {}).items():
            add(f"{path} {name}", inner)

    add("evolvarium", typer.main.get_command(app))
    return found


def test_no_sentence_in_a_list_of_commands_is_cut_off() -> None:
    lists = {path: text.partition("\nCommands:\n")[2] for path, text in helps().items() if "\nCommands:\n" in text}
    assert {"evolvarium", "evolvarium runs", "evolvarium task"} <= set(lists)
    for path, text in lists.items():
        assert "..." not in text, path
        assert max(map(len, text.splitlines())) <= 80, path


def test_arguments_in_usage_lines_have_plain_names() -> None:
    found = helps()
    usages = {path: " ".join(text.partition("\n\n")[0].split()) for path, text in found.items()}
    assert usages["evolvarium run"] == "Usage: evolvarium run [OPTIONS] TASK"
    assert usages["evolvarium show"] == "Usage: evolvarium show [OPTIONS] RUN [ID]"
    assert usages["evolvarium report"] == "Usage: evolvarium report [OPTIONS] RUN..."
    assert usages["evolvarium compare"] == "Usage: evolvarium compare [OPTIONS] RUN..."
    assert usages["evolvarium evaluate"] == "Usage: evolvarium evaluate [OPTIONS] TASK PROGRAM"
    assert usages["evolvarium task new"] == "Usage: evolvarium task new [OPTIONS] NAME"
    assert not [usage for usage in usages.values() if re.search(r"[{}]|\[\[|\.\.\.\.", usage)]


def test_what_o_writes_without_an_id_is_documented() -> None:
    assert "Without ID, -o writes the best" in " ".join(helps()["evolvarium show"].split())


@pytest.mark.parametrize(
    ("piece", "name"),
    [("{TASK}", "TASK"), ("{program}", "PROGRAM"), ("[[ID]]", "[ID]"), ("{RUN...}...", "RUN..."),
     ("[[ROLE]...]...", "[ROLE]..."), ("{FILE|NAME}", "FILE|NAME"), ("[RUN]", "[RUN]")],
)  # fmt: skip
def test_marks_around_a_name_are_no_more_than_needed(piece: str, name: str) -> None:
    assert argument_name(piece) == name


def test_a_sentence_ends_at_its_first_stop_and_not_at_a_point_within() -> None:
    assert first_sentence("Read report.md; then stop. More.\n\nText") == "Read report.md."
    assert first_sentence("One\n  line") == "One line."
    assert first_sentence("") == ""


def test_pruning_says_that_it_concerns_the_whole_engine() -> None:
    assert "of every home on this engine" in " ".join(helps()["evolvarium sandbox"].split())
    assert "there is no --home" in " ".join(helps()["evolvarium sandbox prune"].split())
    few = PruneDocument(containers=["1"], volumes=[], kept_containers=2)
    assert pruned_text(few) == (
        "removed 1 container and 0 volumes, whichever home on this engine they came from; kept 2 containers of living "
        "owners"
    )
    preview = PrunePreviewDocument(containers=[], volumes=["v"], kept_containers=0)
    assert pruned_text(preview).startswith("would remove 0 containers and 1 volume, whichever home")


def test_commands_stand_in_the_order_in_which_a_newcomer_needs_them() -> None:
    text = helps()["evolvarium"].partition("\nCommands:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^  ([a-z]+)", text, re.MULTILINE)
    expected = [
        "doctor", "images", "task", "run", "resume", "show", "report", "runs", "evaluate", "sql", "policy", "audit",
        "sandbox",
    ]  # fmt: skip
    assert [name for name in names if name in expected] == expected
    assert names[-1] == "sandbox", "a new command has its place in the order, too"
