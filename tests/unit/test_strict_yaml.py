"""Strict YAML: whatever is malformed is one short error with its line."""

from __future__ import annotations

import pytest

from orchestrator.errors import InputError
from orchestrator.runtime.strict_yaml import load_yaml, shown

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS, "a: " + "9" * 5000, "a: 2020-13-45", "a: !!bool x", "a: 0x_", "a: !!int abc", "a: !!int ''",
        "a: !!timestamp x", "a: " + "[" * 3000, "a: 1" + ":1" * 9000, "? [1]\n: 2", "<<: {a: 1}", "{a: 1, a: 2}",
        "1: a\n0x1: b", "a: !!float x", "a: \0", b"a: \xff", "a: 1\n---\nb: 2", "a: " + "{a: " * 500,
        "a: !x " + "y" * 9000,
    ],
    ids=range(20),
)  # fmt: skip
def test_what_is_malformed_is_one_short_error_with_file_and_line(text: str | bytes) -> None:
    with pytest.raises(InputError, match=r"^task\.yaml: line \d+") as caught:
        load_yaml(text if isinstance(text, bytes) else text.encode(), "task.yaml")
    assert len(str(caught.value)) < 300
    assert caught.value.exit_code == 2


def test_a_huge_document_is_refused() -> None:
    with pytest.raises(InputError, match="has over 262144 bytes"):
        load_yaml(b"#" * (1 << 20), "task.yaml")


def test_plain_settings_are_read() -> None:
    text = b"a: 1\nb: [1.5, true, null, x]\nc: {d: 2020-01-02}\n"
    assert load_yaml(text, "x")["b"] == [1.5, True, None, "x"]


def test_a_value_is_cut_for_a_message() -> None:
    assert len(shown({"a": ["x" * 1000] * 1000})) <= 80
