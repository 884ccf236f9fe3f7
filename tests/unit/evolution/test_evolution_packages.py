"""Packages that a run begins with: plain folders, and those that `export` wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bootstrap.robophd.packages import initial_packages, load_package
from orchestrator.errors import InputError
from orchestrator.methods.robophd.naive import NAIVE, naive_package
from tests.answering_lab import package
from tests.release_lab import exported


def test_an_exported_folder_is_the_package_in_it(tmp_path: Path) -> None:
    release = exported(tmp_path / "champion", package())
    assert load_package(release.folder) == package()
    assert initial_packages([str(release.folder)]) == {NAIVE: naive_package(), "champion": package()}
    assert load_package(release.folder / "package") == package()


def test_an_exported_folder_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = exported(tmp_path / "champion", package()).folder
    (folder / "package" / "eval_instructions.md").write_text("Other words.")
    with pytest.raises(InputError) as error:
        load_package(folder)
    told = f"package {str(folder)!r}: 'package/eval_instructions.md' was changed since it was exported"
    assert told in str(error.value)


def test_a_folder_that_is_no_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"package '{tmp_path}': .*agent.json"):
        load_package(tmp_path)
    with pytest.raises(InputError, match=r"cannot read the package '.*gone'.*give a folder with agent.json in it"):
        load_package(tmp_path / "gone")
    with pytest.raises(InputError, match=r"cannot read the package .*: File name too long"):
        load_package(tmp_path / ("x" * 300))
