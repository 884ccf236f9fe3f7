"""What `compare` writes of figures and names."""

from __future__ import annotations

import pytest

from orchestrator.cli.compare_documents import (
    BandDocument,
    ComparisonDocument,
    ConditionDocument,
    RunGroup,
    SampleDocument,
    SplitComparison,
)
from orchestrator.cli.compare_figures import best_so_far_bands
from orchestrator.cli.compare_tables import alike, comparison_tables
from orchestrator.cli.layout import fitting_table

SAMPLE = SampleDocument(n=3, mean=0.1234567, sd=0.01234567, median=0.1234567, min=0.1123456, max=0.1323456)


def document(*, rows: list[tuple[float, float, float, float]]) -> ComparisonDocument:
    """A comparison on two splits, with a band of these rows."""
    figures = {"initial": 0.2345678, "a": SAMPLE, "b": SAMPLE, "missing": [], "points": -0.0123456, "low": -0.5}
    figures |= {"high": 0.25, "u": 4.5, "pairs": 9, "p": 0.123456, "p_method": "exact"}
    splits = [
        SplitComparison.model_validate(figures | {"split": name, "seen": name == "train"})
        for name in ("train", "out_of_domain")
    ]
    digests = [f"sha256:{digit * 64}" for digit in "ab"]
    return ComparisonDocument(
        task="symbolic_regression/PO0",
        quality="nmse",
        label="normalised mean squared error",
        unit="",
        lower_is_better=True,
        a=RunGroup(runs=[], left_out=[]),
        b=RunGroup(runs=[], left_out=[]),
        conditions=[ConditionDocument(name="policy_digest", a=digests[:1], b=digests[1:])],
        splits=splits,
        bands=[BandDocument(group="a", spent="evaluations", band="min-max", rows=rows)],
        seed=0,
        resamples=10_000,
        level=0.95,
        warnings=[],
        files=[],
    )


def test_no_first_column_breaks_at_80_columns() -> None:
    for table in comparison_tables(document(rows=[])):
        made = fitting_table(
            table.columns, [table.cells(row) for row in table.rows], width=80, spare_columns=table.spare_columns
        )
        assert made.width is not None
        assert made.width <= 80, table.title
        longest = max((len(table.cells(row)[0]) for row in table.rows), default=0)
        assert (made.columns[0].width or 0) >= longest, table.title


def test_the_title_has_the_label_and_the_split_that_guides_the_search() -> None:
    (table, *_) = comparison_tables(document(rows=[]))
    assert table.title == (
        "symbolic_regression/PO0: normalised mean squared error of the best (lower is better); "
        "split train guides the search"
    )
    assert [row[0] for row in table.rows] == ["train", "", "out_of_domain", ""]
    assert table.markdown().startswith(f"## {table.title}\n")


def test_a_difference_and_its_interval_have_equally_many_decimals() -> None:
    row = comparison_tables(document(rows=[]))[1].rows[0]
    assert list(row[1:3]) == ["worse by 0.012346", "-0.500000 to 0.250000"]


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([1.0, -2.25, 3.5], ["1.00000", "-2.25000", "3.50000"]),
        ([0.0, -1e-9, 1.0], ["0.00000", "0.00000", "1.00000"]),
        ([4e-7, -1.0, 1.0], ["0.0000004", "-1.0000000", "1.0000000"]),
        ([1e-12, 2e-12], ["1.00000e-12", "2.00000e-12"]),
        ([1234567.0, 0.5], ["1.23457e+06", "5.00000e-01"]),
        ([0.0, 0.0], ["0.00000", "0.00000"]),
    ],
    ids=str,
)
def test_numbers_beside_each_other_are_written_alike(values: list[float], written: list[str]) -> None:
    assert alike(values) == written


@pytest.mark.parametrize(
    ("lowest", "scale", "ending"),
    [(1e-5, "log", "so far, log scale"), (1e-2, "linear", "so far"), (0.0, "linear", "so far")],
    ids=["five orders", "two orders", "zero"],
)
def test_bands_over_many_orders_have_a_logarithmic_axis(lowest: float, scale: str, ending: str) -> None:
    (axes,) = best_so_far_bands(document(rows=[(0, 1, 1, 1), (5, 0.1, lowest, 0.5)])).axes
    assert (axes.get_yscale(), axes.get_ylabel()) == (scale, f"best normalised mean squared error {ending}")
