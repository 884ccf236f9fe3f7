"""Sections as text: cutting, varying, judging and stitching them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.llm.offline.evolver.sections import (
    LIBRARY_ORDER,
    Section,
    cut_sections,
    library,
    section_at,
    stitch,
    written_bytes,
)
from tests.unit.offline_evolver.host import FOREIGN


def foreign(text: str = FOREIGN) -> Section:
    return cut_sections(text)["trends"]


def test_the_library_is_sound_and_each_section_has_its_parameters() -> None:
    assert list(library()) == list(LIBRARY_ORDER)
    for section in library().values():
        assert section.is_sound(), section.name
        assert section.parameters, section.name


def test_sections_are_cut_out_as_they_were_stitched_in() -> None:
    tool = stitch([*library().values(), foreign()], max_bytes=1000)
    assert cut_sections(tool) == {**library(), "trends": foreign()}
    assert written_bytes(tool) == 1000
    ast.parse(tool)


def test_sections_come_in_the_librarys_order_and_foreign_ones_last() -> None:
    tool = stitch([foreign(), library()["pitfalls"], library()["ddl"]], max_bytes=1000)
    assert list(cut_sections(tool)) == ["ddl", "pitfalls", "trends"]


def test_a_tool_without_marks_has_no_sections() -> None:
    assert cut_sections("import sqlite3\nprint('section')\n") == {}
    assert written_bytes("import sqlite3\n") is None


def test_a_section_without_an_end_is_none_and_of_two_of_a_name_the_first_counts() -> None:
    other = FOREIGN.replace("over", "under")
    assert cut_sections(f"{FOREIGN}\n{other}")["trends"] == foreign()
    assert cut_sections(FOREIGN.removesuffix("# end of section")) == {}
    assert list(cut_sections(f"# section: begun\n{FOREIGN}")) == ["trends"]


def test_a_varied_section_has_other_numbers_in_its_mark_and_its_constant_and_nowhere_else() -> None:
    varied = foreign().varied({"years": 10})
    assert varied.text == FOREIGN.replace("5", "10")
    assert varied.parameters == {"years": 10}
    assert varied.varied({"years": 5}) == foreign()


@given(st.dictionaries(st.sampled_from(["limit", "longest", "nonsense"]), st.integers(-9, 10**9)))
def test_a_varied_section_of_the_library_is_sound_and_is_cut_out_with_its_parameters(changes: dict[str, int]) -> None:
    varied = library()["enumerations"].varied(changes)
    assert varied.is_sound()
    assert cut_sections(varied.text) == {"enumerations": varied}
    assert set(varied.parameters) == {"limit", "longest"}
    assert all(1 <= value <= 1_000_000 for value in varied.parameters.values())


def test_a_parameter_without_its_constant_keeps_its_number() -> None:
    text = FOREIGN.replace("TRENDS_YEARS = 5", "YEARS = 5")
    assert foreign(text).varied({"years": 10}).text == text


@pytest.mark.parametrize(
    "text",
    [
        FOREIGN.replace("    return", "    return ("),
        FOREIGN.replace("    return", '    return """'),
        FOREIGN.replace("def section_trends", "def section_other"),
        FOREIGN.replace("TRENDS_YEARS = 5", "rows = 5"),
        FOREIGN.replace("TRENDS_YEARS = 5", "print(1)"),
        FOREIGN.replace("TRENDS_YEARS = 5", "import os"),
        FOREIGN.replace("    return", "    exec('x')\n    return"),
        FOREIGN.replace("    return", "    import socket\n    return"),
        FOREIGN.replace("    return", "    x = 1\n" * 9000 + "    return"),
        FOREIGN.replace("    return", "        x = 1\n      y = 1\n    return"),
        FOREIGN.replace("def section_trends", "def rows(a):\n    return 1\n\n\ndef section_trends"),
    ],
)
def test_a_section_that_would_spoil_others_is_not_sound(text: str) -> None:
    assert not foreign(text).is_sound()


@pytest.mark.parametrize("name", ["rowid", "query", "max", "sample"])
def test_a_section_that_gives_a_shared_name_another_meaning_is_not_sound(name: str) -> None:
    shared = {"rowid": "ROWID_NAMES", "query": "QUERY_STEPS", "max": "MAX_BYTES", "sample": "SAMPLE_ROWS"}[name]
    text = FOREIGN.replace("trends", name).replace("TRENDS_YEARS", shared)
    assert not cut_sections(text)[name].is_sound()
    assert cut_sections(text.replace(shared, f"{name.upper()}_OTHER"))[name].is_sound()


def test_a_foreign_section_with_functions_of_its_own_is_sound() -> None:
    assert foreign(
        FOREIGN.replace("# end", '\n\ndef _trends_more(x):\n    """Text\nat the margin."""\n    return x\n# end')
    ).is_sound()


def test_the_section_of_a_line_is_found() -> None:
    tool = stitch([library()["ddl"], library()["pitfalls"]], max_bytes=1000)
    lines = tool.split("\n")
    assert section_at(tool, lines.index("def section_pitfalls(connection, schema):") + 1) == "pitfalls"
    assert section_at(tool, 1) is None
    assert section_at(tool, lines.index("def main():") + 1) is None
