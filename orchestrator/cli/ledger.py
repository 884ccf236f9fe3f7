"""What was spent on language models, as JSON and as tables: the same for the runs of every method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.bootstrap.model_names import offline_model
from orchestrator.cli.documents import LedgerLine, UsageDocument
from orchestrator.cli.terminal import Rows
from orchestrator.domain.conversation import Usage
from orchestrator.runtime.counts import counted
from orchestrator.search.spending import Spending


def usage_document(usage: Usage) -> UsageDocument:
    """What language models cost."""
    return UsageDocument(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_input_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        usd=usage.usd,
    )


def ledger_lines(ledger: Sequence[Spending]) -> list[LedgerLine]:
    """A line for every role, model and island."""
    return [
        LedgerLine(
            role=one.account.role,
            model=one.account.model,
            island=one.account.island,
            requests=one.requests,
            usage=usage_document(one.usage),
            lost=one.lost,
            lost_usage=usage_document(one.lost_usage),
            in_flight=one.in_flight,
            in_flight_usage=usage_document(one.in_flight_usage),
        )
        for one in ledger
    ]


def all_tokens(usage: UsageDocument) -> int:
    """Tokens of all kinds together."""
    return usage.input_tokens + usage.cached_input_tokens + usage.cache_write_input_tokens + usage.output_tokens


def token_row(usage: UsageDocument) -> list[object]:
    """Tokens by kind, as a row of a table of names and values; kinds that few providers have only where there are any.

    Returns:
        What the numbers are, and the numbers.
    """
    kinds = [
        ("input", usage.input_tokens, True),
        ("cached", usage.cached_input_tokens, True),
        ("written to a cache", usage.cache_write_input_tokens, False),
        ("output", usage.output_tokens, True),
        ("of it reasoning", usage.reasoning_tokens, False),
    ]
    shown = [(name, count) for name, count, always in kinds if always or count]
    return [f"tokens: {', '.join(name for name, _ in shown)}", ", ".join(str(count) for _, count in shown)]


def dollars(usage: UsageDocument) -> str:
    """US dollars, to a hundredth of a cent."""
    return "unknown" if usage.usd is None else f"{usage.usd:.4f}"


def taken(models: Iterable[str], requests: int, usage: UsageDocument) -> list[str]:
    """What a question took of its models, in a sentence; nothing where they were the offline engine alone.

    Args:
        models: Names of all that were asked.
        requests: To them.
        usage: Of their replies.
    """
    if all(offline_model(name) is not None for name in models):
        return []
    tokens = counted(all_tokens(usage), "token")
    usd = "an unknown sum of US dollars" if usage.usd is None else f"{dollars(usage)} US dollars"
    return [f"It took {counted(requests, 'request')}, {tokens} and {usd}."]


def ledger_rows(lines: Sequence[LedgerLine], of_run: str | None = None) -> list[Rows]:
    """The ledger as a table; nothing where no model was asked.

    Args:
        lines: Of one run.
        of_run: Its id, where the table stands among those of others.
    """
    if not lines:
        return []
    columns = _columns(lines)
    rows = [[value for _, value in _cells(line, columns)] for line in lines]
    lost = sum(line.lost for line in lines)
    in_flight = sum(line.in_flight for line in lines)
    title = "Spent on models" if of_run is None else f"Run {of_run}: spent on models"
    if lost:
        title += f" ({counted(lost, 'call')} lost, which count at the most they can have cost)"
    if in_flight:
        title += f" ({counted(in_flight, 'call')} in flight, at the most it can cost)"
    return [Rows(title=title, columns=list(columns), rows=rows, cell_characters=120, spare_columns=["reasoning"])]


def _columns(lines: Sequence[LedgerLine]) -> list[str]:
    """What there is to say of any of them."""
    has = {
        "island": any(line.island is not None for line in lines),
        "written": any(line.usage.cache_write_input_tokens for line in lines),
        "reasoning": any(line.usage.reasoning_tokens for line in lines),
        "lost": any(line.lost for line in lines),
        "lost US dollars": any(line.lost for line in lines),
        "in flight": any(line.in_flight for line in lines),
        "in flight US dollars": any(line.in_flight for line in lines),
    }
    return [name for name, _ in _all_cells(lines[0]) if has.get(name, True)]


def _cells(line: LedgerLine, columns: Sequence[str]) -> list[tuple[str, object]]:
    return [(name, value) for name, value in _all_cells(line) if name in columns]


def _all_cells(line: LedgerLine) -> list[tuple[str, object]]:
    usage = line.usage
    return [
        ("role", line.role),
        ("model", line.model),
        ("island", line.island),
        ("requests", line.requests),
        ("input", usage.input_tokens),
        ("cached", usage.cached_input_tokens),
        ("written", usage.cache_write_input_tokens),
        ("output", usage.output_tokens),
        ("reasoning", usage.reasoning_tokens),
        ("US dollars", dollars(usage)),
        ("lost", line.lost),
        ("lost US dollars", dollars(line.lost_usage)),
        ("in flight", line.in_flight),
        ("in flight US dollars", dollars(line.in_flight_usage)),
    ]
