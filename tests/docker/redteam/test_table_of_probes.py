"""The table in docs/threat-model.md names exactly the probes that exist here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[2] / "docs" / "threat-model.md"


def declared() -> Iterator[str]:
    for path in HERE.glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r'\.probe\(\s*"([A-Z]\d+[a-z]?)"', text)
        yield from re.findall(r'^    \(\s*"(K\d+)",', text, flags=re.MULTILINE)


def test_the_table_of_probes_is_complete_and_true() -> None:
    rows = re.findall(r"^\| ([A-Z]\d+[a-z]?) \|", TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = list(declared())
    assert len(found) > 80
    assert sorted(rows) == sorted(found)
