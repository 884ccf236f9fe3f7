"""What `make test-slow` installs beside the project is pinned, and named where people look for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_lock_pins_the_group_and_nothing_else_with_hashes_and_names_no_host() -> None:
    lock = (ROOT / "requirements-local-model.lock").read_text()
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["local-model"]
    entries = re.split(r"\n(?=[a-z])", lock.strip())
    assert [re.match(r"[a-z0-9-]+(?===)", entry)[0] for entry in entries] == [  # type: ignore[index]
        re.match(r"[a-z0-9-]+", requirement)[0]  # type: ignore[index]
        for requirement in group
    ]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert "://" not in lock


def test_no_package_of_it_belongs_to_the_project() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "xllamacpp" not in lock
    assert "smollm2" not in lock
