"""Untrusted text inside text that means something."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sql.quoting import (
    KEYWORDS,
    data_block,
    identifier,
    is_exact,
    json_line,
    one_line,
    text_literal,
    visible,
)
from tests.unit.sql.made import HOSTILE, LINE_ENDS, closes


@given(HOSTILE | st.lists(HOSTILE, max_size=4).map("\n".join))
def test_nothing_inside_a_block_can_end_it(text: str) -> None:
    assert closes(data_block(text, "sql"))
    assert "`" * (len(data_block(text)) - len(data_block(text).lstrip("`"))) not in text


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=60).map(lambda t: t.replace("\xa0", " ")))
def test_a_block_holds_plain_text_as_it_is(text: str) -> None:
    lines = data_block(text).split("\n")
    assert "\n".join(lines[1:-1]) == "".join(map(visible, text))


def test_a_block_shows_what_hides() -> None:
    assert data_block("a\r\nb\rc\u2028d\x1be\tf") == "```\na\nb\\rc\\u2028d\\x1be\tf\n```"
    assert data_block("ends\n") == "```\nends\n```"
    assert data_block("````\n~~~~~~~~\n") == "`````\n````\n~~~~~~~~\n`````"


def test_the_language_of_a_block_is_a_word() -> None:
    for info in ("sql\n", "a b", "`", "SQL", "x" * 17):
        with pytest.raises(ValueError, match="a short lower-case word"):
            data_block("", info)


@given(HOSTILE)
def test_json_on_one_line_shows_every_character_and_changes_none(text: str) -> None:
    line = json_line({text: [text]})
    assert json.loads(line) == {text: [text]}
    assert not LINE_ENDS.search(line)
    assert all(c.isprintable() or c in "\u200c\u200d" for c in line)


@given(st.sampled_from(sorted(KEYWORDS)) | HOSTILE.filter(lambda name: "\0" not in name and is_exact(name)))
def test_sqlite_reads_an_identifier_as_the_name_it_was(name: str) -> None:
    connection = sqlite3.connect(":memory:")
    quoted = identifier(name)
    connection.execute(f"CREATE TABLE t ({quoted} INT)")
    rows = connection.execute(f"SELECT {quoted}, t.{quoted} AS {quoted} FROM t")  # noqa: S608 - the very point
    assert rows.description[1][0] == name
    assert connection.execute("SELECT name FROM pragma_table_info('t')").fetchall() == [(name,)]


def test_a_name_is_quoted_only_where_it_must_be() -> None:
    assert [identifier(name) for name in ("city", "_x1", "größe", "order", "two words", "1st", 'a"b', "")] == [
        "city", "_x1", "größe", '"order"', '"two words"', '"1st"', '"a""b"', '""',
    ]  # fmt: skip


def test_a_name_with_a_line_end_is_shown_with_an_escape() -> None:
    assert identifier("a\nb") == r'"a\nb"'
    assert not is_exact("a\nb")


@given(HOSTILE.filter(lambda text: "\0" not in text))
def test_sqlite_reads_a_text_literal_as_the_text_it_was(text: str) -> None:
    assert sqlite3.connect(":memory:").execute(f"SELECT {text_literal(text)}").fetchone() == (text,)


@given(HOSTILE, st.integers(1, 50))
def test_one_line_is_one_line_and_short(text: str, characters: int) -> None:
    line = one_line(text, characters)
    assert len(line) <= characters
    assert not LINE_ENDS.search(line)
