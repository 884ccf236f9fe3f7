"""Tables never break a word, and give up columns before anything that people need."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.layout import fitting_table

COLUMNS = ["run", "fitness", "tokens", "description"]
ROW = ["0123456789ab", "0.936836", "34411", "the cost of open room at some knots"]


def lines(width: int, **options: object) -> list[str]:
    table = fitting_table(COLUMNS, [ROW], width=width, **options)  # type: ignore[arg-type] - options of the function
    buffer = io.StringIO()
    Console(file=buffer, width=max(width, table.width or 0)).print(table)
    return buffer.getvalue().splitlines()


@given(st.integers(1, 120))
def test_no_word_is_broken_however_narrow_the_terminal_is(width: int) -> None:
    text = "\n".join(lines(width))
    for word in (*ROW[:3], *ROW[3].split()):
        assert word in text


@given(st.integers(1, 120))
def test_spare_columns_are_left_out_before_the_table_is_too_wide(width: int) -> None:
    shown = lines(width, spare_columns=["tokens", "description"])
    assert "0.936836" in "\n".join(shown)
    if max(map(len, shown)) > width:
        assert not any("tokens" in line or "cost" in line for line in shown)


def test_a_table_of_single_lines_gives_up_a_column_sooner_than_wrap_one() -> None:
    natural = max(map(len, lines(200)))
    assert any("34411" in line for line in lines(natural, spare_columns=["tokens"], one_line=True))
    assert not any("34411" in line for line in lines(natural - 1, spare_columns=["tokens"], one_line=True))
    assert any("34411" in line for line in lines(natural - 1, spare_columns=["tokens"]))
