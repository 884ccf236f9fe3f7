"""Where an installation lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bootstrap.places import find_places, writable_home
from orchestrator.errors import InputError


def test_the_option_wins_over_the_variable_and_the_variable_over_the_default(tmp_path: Path) -> None:
    variables = {"EVOLVARIUM_HOME": str(tmp_path / "variable"), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert find_places(tmp_path / "option", None, variables).home == tmp_path / "option"
    assert find_places(None, None, variables).home == tmp_path / "variable"
    del variables["EVOLVARIUM_HOME"]
    assert find_places(None, None, variables).home == tmp_path / "data" / "evolvarium"


def test_a_relative_xdg_directory_does_not_count() -> None:
    home = find_places(None, None, {"XDG_DATA_HOME": "data"}).home
    assert home == Path("~/.local/share/evolvarium").expanduser().resolve()


def test_looking_for_places_makes_nothing_and_a_made_home_is_its_owners_alone(tmp_path: Path) -> None:
    places = find_places(tmp_path / "a" / "home", None, {})
    assert not (tmp_path / "a").exists()
    assert writable_home(places).stat().st_mode & 0o777 == 0o700


def test_a_link_into_a_git_work_tree_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    with pytest.raises(InputError, match="git work tree"):
        find_places(tmp_path / "link" / "home", None, {})


def test_own_tasks_come_before_those_that_are_shipped(tmp_path: Path) -> None:
    (tmp_path / "online_bin_packing").mkdir()
    (tmp_path / "online_bin_packing" / "task.yaml").write_text("")
    places = find_places(tmp_path / "home", tmp_path, {})
    assert places.task("online_bin_packing") == tmp_path / "online_bin_packing"
