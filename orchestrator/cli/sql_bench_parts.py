"""What is shown of a bench: all of it, or what it ends with; shares are in percent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from orchestrator.bootstrap.sql.notices import few
from orchestrator.cli.ledger import dollars, ledger_rows, token_row
from orchestrator.cli.sql_documents import MetricShares, SqlBenchDocument
from orchestrator.cli.sql_tables import method_title, paper_tables, percent
from orchestrator.cli.states import state_in_words
from orchestrator.cli.terminal import Rows
from orchestrator.evaluation.sql_judge import Metric

_METRICS = [metric.value for metric in Metric]


def bench_parts(document: SqlBenchDocument) -> list[Rows | str]:
    """Everything that there is to show, its headline last."""
    return [*_separated(_parts(document)), "", *headline(document)]


def bench_end_parts(document: SqlBenchDocument) -> list[Rows | str]:
    """What a bench ends with: how often each method is right, the headline, and where there is more."""
    tables = [standing_rows(document), *([method_rows(document)] if document.answered else [])]
    return [*_separated(tables), "", *headline(document), *_more(document)]


def _more(document: SqlBenchDocument) -> list[str]:
    left = document.containers_left
    more = (
        f"`evolvarium show {document.run}` has all tables; `evolvarium show {document.run} --questions failed` lists "
        "the questions that failed, and `--questions all` every one."
    )
    return [*([] if left is None else [f"Containers left: {left}."]), more]


def headline(document: SqlBenchDocument) -> list[str]:
    """The one figure that stands for a bench, and what it leaves unsaid; nothing where nothing is answered."""
    if not document.answered:
        return [f"No question is answered yet ({document.state})."]
    method, shares = next(iter(document.methods.items()))
    strict, bird = shares["strict"], shares["bird"]
    so_far = f" so far, of {document.evaluable}" if document.answered < document.evaluable else ""
    left_out = document.questions - document.evaluable
    said = [
        f"{_title(document, method)} is right on {strict.right} of {strict.of} questions"
        f"{so_far}: {percent(strict.share)} % strict, {percent(bird.share)} % bird"
        + (f" ({left_out} more cannot be evaluated)." if left_out and not so_far else ".")
    ]
    missed = {name: count for name, count in document.not_reached.items() if count}
    if missed:
        counts = set(document.not_reached.values())
        under = (
            f"{counts.pop()} of {document.answered} questions under any method"
            if len(counts) == 1
            else ", ".join(
                f"{count} of {document.answered} questions under {_title(document, name)}"
                for name, count in missed.items()
            )
        )
        said.append(f"The budget did not reach {under}; they count as wrong in every share.")
    return said


def _separated(tables: Iterable[Rows]) -> list[Rows | str]:
    """With an empty line before each table but the first."""
    parts: list[Rows | str] = []
    for table in tables:
        parts += ["", table] if parts else [table]
    return parts


def _parts(document: SqlBenchDocument) -> Iterator[Rows]:
    yield standing_rows(document)
    if document.answered:
        yield method_rows(document)
        yield from paper_tables(document)
    yield _spent_rows(document)
    yield from ledger_rows(document.ledger)


def standing_rows(document: SqlBenchDocument) -> Rows:
    """What was asked, and what of it counts."""
    gold = document.gold_as_prediction
    left_out: list[list[object]] = [
        [f"left out: {name}", f"{len(ids)}: {few(ids)}"] for name, ids in _left_out(document).items()
    ]
    rows: list[list[object]] = [
        ["data set", f"{document.dataset} {document.digest[:19]}"],
        ["questions", document.questions],
        ["evaluable", document.evaluable],
        *left_out,
        ["answered", _answered(document)],
        ["gold as prediction", ", ".join(f"{name} {percent(gold[name].share)}" for name in _METRICS)],
        ["gold depends on the order of reading", document.nondeterministic],
        ["flags of right answers", _listed(document.flags) or None],
    ]
    return Rows(title=f"Bench {document.run}", columns=["what", "value"], rows=rows, cell_characters=120)


def method_rows(document: SqlBenchDocument) -> Rows:
    """How often each method is right, in every metric."""
    missed = any(document.not_reached.values())
    rows: list[list[object]] = [
        [
            _title(document, method),
            *(_counted(shares, metric) for metric in _METRICS),
            *([document.not_reached.get(method, 0)] if missed else []),
        ]
        for method, shares in document.methods.items()
    ]
    return Rows(
        title="Right answers: percent, and how many of how many",
        columns=["method", *_METRICS, *(["not reached by the budget"] if missed else [])],
        rows=rows,
    )


def _answered(document: SqlBenchDocument) -> str:
    """How many questions were answered, and how many no method got to, which are judged as wrong."""
    missed = min(document.not_reached.values(), default=0)
    if not missed:
        return str(document.answered)
    return f"{document.answered - missed}; {missed} that the budget did not reach count as wrong"


def _left_out(document: SqlBenchDocument) -> dict[str, list[str]]:
    """Ids by why they have left the denominator."""
    found: dict[str, list[str]] = {}
    for one in document.left_out:
        found.setdefault(one.standing, []).append(one.id)
    return found


def _spent_rows(document: SqlBenchDocument) -> Rows:
    endings = [
        f"{method}: {', '.join(f'{n} {e}' for e, n in ends.items())}" for method, ends in document.endings.items()
    ]
    unchanged = [one.name for one in document.databases if one.unchanged]
    rows: list[list[object]] = [
        ["state", state_in_words(document.state, document.pause)],
        ["models", ", ".join(f"{role} {name}" for role, name in document.models.items())],
        ["endings", "; ".join(endings) or None],
        ["unreadable critiques", sum(document.unreadable.values())],
        ["requests", document.requests],
        ["calls lost in crashes", document.lost],
        token_row(document.usage),
        ["US dollars", dollars(document.usage)],
        ["SQLite", document.sqlite],
        ["policy", f"{document.policy['name']} {document.policy['digest'][:19]}"],
        ["columns kept back", sum(one.hidden for one in document.databases)],
        ["databases unchanged", f"{len(unchanged)} of {len(document.databases)}" if unchanged else "not compared yet"],
    ]
    if document.containers_left is not None:
        rows.append(["containers left", document.containers_left])
    return Rows(title="What it took", columns=["what", "value"], rows=rows, cell_characters=120)


def _counted(shares: MetricShares, metric: str) -> str:
    share = shares[metric]
    return f"{percent(share.share)} ({share.right}/{share.of})"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _title(document: SqlBenchDocument, method: str) -> str:
    return method_title(method, document.settings["candidates"])
