"""Pages of the documentation: whoever starts at the README finds each of them, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def links(page: Path) -> set[Path]:
    """The files of this project that a page links to."""
    found = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / target).resolve() for target in found}


def test_the_readme_names_every_page() -> None:
    assert set(PAGES) <= links(ROOT / "README.md")


def test_who_asks_a_database_finds_how_packages_are_evolved_and_used() -> None:
    assert {ROOT / "docs" / "robophd.md", ROOT / "docs" / "releases.md"} <= links(ROOT / "docs" / "text-to-sql.md")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_no_link_leads_nowhere(page: Path) -> None:
    assert {target for target in links(page) if not target.exists()} == set()
