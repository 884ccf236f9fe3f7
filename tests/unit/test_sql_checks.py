"""What `sql check` prints: what is kept back in few lines, and sizes in units that people use."""

from __future__ import annotations

from orchestrator.cli.sql_check import check_parts
from orchestrator.cli.sql_documents import HiddenColumn, SqlCheckDocument
from orchestrator.cli.terminal import Rows

REDACTED, DENIED = "data rule 1, redact *.email", "data rule 1, deny staff"


def document(*hidden: HiddenColumn, reads: dict[str, list[str]] | None = None) -> SqlCheckDocument:
    return SqlCheckDocument(
        database="web_shop",
        policy="web_shop",
        allowed=True,
        refused_by=None,
        reason="",
        ordered=False,
        reads=reads or {},
        hidden=list(hidden),
        max_rows=10_000,
        max_bytes=4_194_304,
        query_seconds=10,
    )


def hidden(table: str, *columns: str, rule: str = REDACTED) -> list[HiddenColumn]:
    return [HiddenColumn(table=table, column=column, rule=rule) for column in columns]


def kept_back(shown: SqlCheckDocument) -> Rows:
    """The table of what is kept back."""
    (table,) = [part for part in check_parts(shown) if isinstance(part, Rows)]
    return table


def test_limits_are_given_in_units_that_people_use() -> None:
    assert check_parts(document())[-1] == ("A query may give and take at most 10,000 rows, 4 MiB, 10 s of computing.")


def test_columns_of_a_table_that_one_rule_keeps_back_are_one_line() -> None:
    table = kept_back(document(*hidden("staff", "id", "name", rule=DENIED), *hidden("customers", "email", "old_email")))
    assert table.title == "Kept back of web_shop: 4 columns"
    assert table.rows == [["staff", "id, name", DENIED], ["customers", "email, old_email", REDACTED]]


def test_a_long_list_is_cut_and_says_where_all_of_it_is() -> None:
    many = [one for number in range(30) for one in hidden(f"t{number}", "email", "old_email")]
    table = kept_back(document(*many))
    assert [row[0] for row in table.rows] == [f"t{number}" for number in range(10)]
    assert table.title == "Kept back of web_shop: 60 columns, 20 of them shown (--json shows all)"


def test_of_a_wide_table_some_columns_are_named() -> None:
    table = kept_back(document(*hidden("wide", *(f"c{number}" for number in range(40)), rule=DENIED)))
    assert table.rows == [["wide", "c0, c1, c2, c3, c4, c5, c6, c7 and 32 more", DENIED]]
    assert table.title == "Kept back of web_shop: 40 columns, 8 of them shown (--json shows all)"
