"""What the commands print is inert, whatever a model or a program wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.documents import ErrorDetail, ErrorDocument
from orchestrator.cli.terminal import Rows, Terminal, inert, json_line, visible

HOSTILE = "\x1b]0;title\x07\x1b[2J\u202egnp.exe\r\x9b1m\udcff"
COMMANDS = ("::set-output name=a::b", "  ::error::x", "##[command]rm", "##vso[task.setvariable]x", "a ##[group]b")


@given(st.text(st.characters(codec=None), max_size=60))
def test_visible_text_is_printable_but_for_newlines_and_tabs(text: str) -> None:
    assert all(character in "\n\t" or character.isprintable() for character in visible(text))


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=60))
def test_visible_text_leaves_plain_text_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_a_command_to_a_ci_system(command: str) -> None:
    for line in inert(f"before\n{command}\nafter").splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert "##vso[" not in line


def test_a_comment_in_a_program_stays_as_it_is() -> None:
    assert inert("## Heading\nx = a[::2]\n# [1]") == "## Heading\nx = a[::2]\n# [1]"


@pytest.mark.parametrize("text", [HOSTILE, *COMMANDS, "[red]markup[/red] :smile:", "| pipe \\ |", "line\nbreak"])
def test_tables_show_hostile_text_without_obeying_it(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(title=text, columns=[text, "b"], rows=[[text, 1.0], [None, True]])
    Terminal().result(ErrorDocument(error=_error(text)), rows)
    printed = capsys.readouterr().out
    assert all(character == "\n" or character.isprintable() for character in printed)
    assert not any(line.lstrip().startswith("::") or "##[" in line or "##vso[" in line for line in printed.split("\n"))
    assert "[red]" in printed or "[red]" not in text
    markdown = rows.markdown()
    assert markdown.count("\n") == 6 or "\n" in text
    assert "\x1b" not in markdown


def test_a_table_says_which_columns_had_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = Rows(title="T", columns=["a", "b", "c"], rows=[["x" * 60, "y" * 60, "z" * 60]], spare_columns=["b"])
    Terminal().result(ErrorDocument(error=_error("")), rows)
    assert "(too narrow for: b; a wider terminal or --json shows all)" in capsys.readouterr().out
    monkeypatch.setattr("orchestrator.cli.terminal._PIPE_COLUMNS", 400)
    Terminal().result(ErrorDocument(error=_error("")), rows)
    assert "too narrow" not in capsys.readouterr().out


@pytest.mark.parametrize("text", [HOSTILE, *COMMANDS, "## twice ##"])
def test_a_json_line_is_ascii_on_one_line_and_says_the_same(text: str) -> None:
    document = ErrorDocument(error=_error(text))
    line = json_line(document)
    assert line.isascii()
    assert "\n" not in line
    assert "##" not in line
    assert json.loads(line)["error"]["message"] == text


def test_with_json_a_result_is_the_document_alone(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(as_json=True)
    terminal.note("on stderr")
    terminal.result(ErrorDocument(error=_error("why")), "not printed")
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"error": {"type": "InputError", "message": "why", "exit_code": 2, "notes": []}}
    assert printed.err == "on stderr\n"


def _error(message: str) -> ErrorDetail:
    return ErrorDetail(type="InputError", message=message, exit_code=2)
