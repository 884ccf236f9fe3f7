"""What `evolvarium show` does with a bench: all of it, a list of its questions, or one question."""

from __future__ import annotations

from orchestrator.bootstrap.spending import read_ledger
from orchestrator.bootstrap.sql.one_question import read_question
from orchestrator.bootstrap.sql.results import read_bench
from orchestrator.cli.sql_bench_parts import bench_parts
from orchestrator.cli.sql_question_summaries import Which, question_document, questions_document
from orchestrator.cli.sql_question_tables import question_parts, questions_parts
from orchestrator.cli.sql_summaries import bench_document
from orchestrator.cli.terminal import Terminal
from orchestrator.errors import InputError
from orchestrator.ports import Journal


def show_bench(
    terminal: Terminal,
    run_id: str,
    journal: Journal,
    *,
    question: str | None = None,
    which: Which | None = None,
    with_gold: bool = False,
) -> None:
    """Print a bench, some of its questions, or one.

    Args:
        terminal: Where to.
        run_id: Of the bench.
        journal: Of it.
        question: Id of one question; None: not one.
        which: Questions to list; None: no list.
        with_gold: Show the question's gold query, too.

    Raises:
        InputError: Options that exclude each other, or as `read_question`.
        RunStateError: The run is damaged, or there is no such question.
    """
    view = read_bench(run_id, journal)
    k = view.settings.candidates
    if question is not None:
        if which is not None:
            msg = f"--questions lists questions and {question!r} is one; give one of them"
            raise InputError(msg)
        one = question_document(view, read_question(view, journal, question, with_gold=with_gold))
        terminal.result(one, *question_parts(one, k))
        return
    if with_gold:
        msg = f"--gold belongs to one question; give its id: `evolvarium show {run_id} ID --gold`"
        raise InputError(msg)
    if which is not None:
        listed = questions_document(view, which)
        terminal.result(listed, *questions_parts(listed, k, [method.value for method in view.choices.methods]))
        return
    document = bench_document(view, ledger=read_ledger(journal))
    terminal.result(document, *bench_parts(document))
