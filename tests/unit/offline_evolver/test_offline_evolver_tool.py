"""The tools that the evolver stitches together, run on real databases."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.llm.offline.evolver.sections import LIBRARY_ORDER, Section, library, stitch
from tests.unit.offline_evolver.databases import FENCED, SHOP, made, odd_databases
from tests.unit.offline_evolver.host import run_tool

ALLOWED = {"sqlite3", "json", "re", "math", "collections", "datetime", "statistics", "pathlib"}
WHOLE = stitch(list(library().values()), max_bytes=240_000)
ODD = (
    *("no-tables", "empty-table", "without-rowid", "rowid-names", "blobs", "infinite", "wide", "broken-view"),
    *("generated", "self-keys", "only-null", "full-text", "names", "not-utf-8"),
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return odd_databases(tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("shop")
    return analysed(WHOLE, made(folder / "shop.sqlite", SHOP), folder / "run").split("\n")


def analysed(tool: str, database: Path, folder: Path) -> str:
    ending, text = run_tool(tool, database, folder)
    assert ending == ""
    return text


def section(lines: list[str], title: str) -> list[str]:
    start = lines.index(f"## {title}") + 1
    return lines[start : next((n for n, line in enumerate(lines) if n > start and line.startswith("## ")), len(lines))]


@pytest.mark.parametrize("name", ODD)
def test_a_tool_copes_with_an_odd_database_the_same_way_twice_and_changes_nothing(
    name: str, odd: dict[str, Path], tmp_path: Path
) -> None:
    before = hashlib.sha256(odd[name].read_bytes()).hexdigest()
    first, second = (analysed(WHOLE, odd[name], tmp_path / run) for run in ("one", "two"))
    assert first == second
    assert "Sections that failed" not in first
    assert hashlib.sha256(odd[name].read_bytes()).hexdigest() == before
    assert {path.name for path in (tmp_path / "one" / "tool_output").iterdir()} == {"analysis.md"}


def test_odd_databases_are_all_tried(odd: dict[str, Path]) -> None:
    assert set(odd) == set(ODD)


def test_names_and_values_of_a_database_begin_no_heading_and_end_no_block(odd: dict[str, Path], tmp_path: Path) -> None:
    text = analysed(WHOLE, odd["names"], tmp_path / "run")
    headings = [line for line in text.split("\n") if line.startswith("## ")]
    assert len(headings) == len(set(headings))
    assert "## Heading" not in headings
    assert "- customer.city: 'Rome'" not in text.split("\n")
    assert FENCED not in text
    fences = [line for line in text.split("\n") if re.match("`{3,}", line)]
    assert fences
    assert all(opening == f"{closing}sql" for opening, closing in zip(fences[::2], fences[1::2], strict=True))


def test_a_table_of_300_columns_is_described_in_full_and_its_limits_are_scaled(
    odd: dict[str, Path], tmp_path: Path
) -> None:
    text = analysed(WHOLE, odd["wide"], tmp_path / "run")
    assert "- 300 columns: samples and lists are cut to 1/2 of their usual length" in text
    assert "- t.c299 (TEXT): 'last'" in text


def test_text_that_is_not_utf_8_and_characters_nobody_sees_are_shown_as_such(
    odd: dict[str, Path], tmp_path: Path
) -> None:
    text = analysed(WHOLE, odd["not-utf-8"], tmp_path / "run")
    assert "- t.a (TEXT): '\ufffdA\ufffd', '\\u202e'" in text
    assert "- t.b (TEXT): 'a\\x00b', 'x'" in text


def test_statements_and_sizes_are_told(shop: list[str]) -> None:
    text = "\n".join(section(shop, "DDL"))
    assert "CREATE TABLE purchase (\n  id INTEGER PRIMARY KEY,\n  customer_id INTEGER REFERENCES customer(id)," in text
    assert "CREATE VIEW members AS SELECT id, name FROM customer WHERE is_member = 'Y';" in text
    assert "- customer: 4 rows, 6 columns" in section(shop, "Row counts")
    assert "- members (view): 2 rows, 2 columns" in section(shop, "Row counts")


def test_columns_are_told_with_samples(shop: list[str]) -> None:
    lines = section(shop, "Columns and samples")
    assert "- customer.city (TEXT): 'Oslo', 'oslo', 'Bergen'" in lines
    assert "- customer.height_cm (REAL): 170.5, 181.0, 165.0" in lines
    assert "- staff.\"group\" (TEXT): 'A', 'B'" in lines
    assert "- members.name (TEXT): 'Ann', 'Cy '" in lines


def test_keys_are_told_declared_and_inferred_with_their_cardinality(shop: list[str]) -> None:
    lines = section(shop, "Keys and cardinalities")
    assert "- customer: primary key id; unique email" in lines
    assert "- purchase.customer_id -> customer.id: declared, many-to-one, up to 2 rows for one key" in lines
    inferred = "inferred from names and values, many-to-one, up to 2 rows for one key"
    assert f"- purchase.product_code -> product.code: {inferred}" in lines
    assert "- product_tag connects tag and product, many-to-many" in lines


def test_no_key_is_inferred_from_a_name_whose_values_do_not_fit(tmp_path: Path) -> None:
    script = """
        CREATE TABLE a (id INTEGER PRIMARY KEY);
        CREATE TABLE b (a_id INT);
        INSERT INTO a VALUES (1);
        INSERT INTO b VALUES (7), (8), (9);
    """
    database = made(tmp_path / "d.sqlite", script)
    assert "->" not in analysed(WHOLE, database, tmp_path / "run")


def test_values_of_columns_with_few_are_told_exactly_with_their_numbers(shop: list[str]) -> None:
    lines = section(shop, "Enumerations")
    assert "- customer.is_member: 'N' (2), 'Y' (2)" in lines
    assert "- customer.name: 'Ann' (1), 'Bo' (1), 'Cy ' (1), 'Di' (1)" in lines
    assert not any(line.startswith("- customer.email") for line in lines)


def test_ranges_are_told_of_numbers_and_dates(shop: list[str]) -> None:
    lines = section(shop, "Ranges")
    assert "- purchase.amount: 1 to 7, average 3.75" in lines
    assert "- purchase.bought: '2020-01-05' to '2021-12-31'" in lines


def test_formats_are_told_of_dates_codes_case_and_blanks(shop: list[str]) -> None:
    lines = section(shop, "Formats")
    assert "- purchase.bought: dates as YYYY-MM-DD, for instance '2020-01-05'" in lines
    assert "- product.added: dates with slashes, for instance '01/02/2020'" in lines
    assert "- product.code: codes like AA-999, for instance 'AB-100'; upper case" in lines
    assert "- customer.email: e-mail addresses, for instance 'ann@x.org'; lower case" in lines
    names = next(line for line in lines if line.startswith("- customer.name"))
    assert names.endswith("blanks at the beginning or end of 1 value, for instance 'Cy '")


def test_meanings_are_told_of_flags_units_and_hierarchies(shop: list[str]) -> None:
    lines = section(shop, "Semantic hints")
    assert "- customer.is_member: a yes/no flag, written 'N', 'Y'" in lines
    assert "- customer.height_cm: centimetres" in lines
    assert "- staff.first_name and staff.last_name: together the name of a person" in lines
    assert "- staff.boss refers to its own table: rows form a hierarchy" in lines


def test_rows_without_a_partner_are_counted(shop: list[str]) -> None:
    lines = section(shop, "Orphans")
    assert "- purchase.customer_id: 1 row without a partner in customer.id, for instance 9" in lines
    assert "- customer.id: 2 of 4 rows not referred to by purchase.customer_id" in lines


def test_pitfalls_are_told(shop: list[str]) -> None:
    lines = section(shop, "Pitfalls")
    price = "- product.price: numbers stored as text: use CAST(product.price AS REAL) to compare, sort or add them"
    assert price in lines
    city = "- customer.city: missing values are also written 'N/A'; the same value in several spellings, for instance"
    assert f"{city} 'Oslo', 'oslo'" in lines
    assert "- customer.email: 25 % NULL" in lines
    assert '- staff."group": the name must be quoted' in lines
    assert "- same column name, qualify it: product_tag.product_code, purchase.product_code" in lines


def test_a_large_table_is_sampled_over_its_whole_length_and_said_so(tmp_path: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) "
    script = f"CREATE TABLE t (id INTEGER PRIMARY KEY, kind TEXT, gap INT); {numbers} INSERT INTO t "
    script += "SELECT i, CASE WHEN i > 59990 THEN 'late' ELSE 'usual' END, nullif(i % 2, 0) FROM n"
    lines = analysed(WHOLE, made(tmp_path / "d.sqlite", script), tmp_path / "run").split("\n")
    assert "- t.id: 1 to 60000" in section(lines, "Ranges")
    assert "- t.kind: 'late', 'usual'" in section(lines, "Enumerations")
    assert "- t.gap: 50 % NULL (in a sample)" in section(lines, "Pitfalls")


def test_a_tool_imports_and_opens_nothing_but_what_a_tool_may() -> None:
    tree = ast.parse(WHOLE)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    sources = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported | sources <= ALLOWED
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"open", "exec", "eval", "compile", "__import__", "getattr", "setattr"}
    assert '"file:database.sqlite?" + mode' in WHOLE


def test_the_static_screen_of_the_sandbox_finds_nothing_in_a_tool() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import screen; "
        "print(screen.screen({'tools/analyze.py': sys.stdin.buffer.read()}, sys.argv[2]))"
    )
    runner = Path(__file__).parents[3] / "sandbox_images" / "tool" / "runner"
    done = subprocess.run(
        [sys.executable, "-B", "-c", script, str(runner), "tool_output/analysis.md"],
        input=WHOLE.encode(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"[]\n"


def test_a_section_that_fails_leaves_the_others_and_is_named(tmp_path: Path) -> None:
    broken = Section(
        name="broken",
        text="# section: broken\ndef section_broken(connection, schema):\n    return 1 / 0\n# end of section",
    )
    tool = stitch([library()["row_counts"], broken], max_bytes=9_000)
    text = analysed(tool, made(tmp_path / "d.sqlite", SHOP), tmp_path / "run")
    assert "Sections that failed: broken (ZeroDivisionError)" in text
    assert "- tag: 2 rows, 2 columns" in text


def test_an_analysis_keeps_to_its_bytes_and_says_what_is_left_out(odd: dict[str, Path], tmp_path: Path) -> None:
    text = analysed(stitch(list(library().values()), max_bytes=4_000), odd["wide"], tmp_path / "run")
    assert len(text.encode()) < 5_000
    assert re.search(r"^- \(\d+ more entries are left out here\)$", text, re.MULTILINE)


def test_a_file_that_is_no_database_ends_the_tool_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "d.sqlite").write_text("no database at all, but long enough to be read as one" * 20)
    ending, _ = run_tool(WHOLE, tmp_path / "d.sqlite", tmp_path / "run")
    assert "database.sqlite cannot be read as a SQLite database" in ending


def test_every_section_of_the_library_works_alone(tmp_path: Path) -> None:
    database = made(tmp_path / "d.sqlite", SHOP)
    for name in LIBRARY_ORDER:
        text = analysed(stitch([library()[name]], max_bytes=90_000), database, tmp_path / name)
        assert "Sections that failed" not in text
