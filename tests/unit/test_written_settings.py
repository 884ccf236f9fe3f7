"""Settings mean what they seem to: no truth value counts as a number, and no number is in another base."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orchestrator.cli.searching import named_splits
from orchestrator.domain.data_access import DataRule
from orchestrator.errors import InputError, PolicyError
from orchestrator.evaluation.new_task import new_task
from orchestrator.evaluation.tasks import check_task
from orchestrator.runtime.strict_yaml import load_yaml
from orchestrator.sandbox.policy_files import parse_policy

POLICY = "version: {version}\nname: p\npurposes: {{candidate: {{image: python, limits: {{cpus: {cpus}}}}}}}\n"


@pytest.mark.parametrize("version", ["true", "1.0", "'1'", "2"])
def test_the_version_of_a_policy_is_the_whole_number_1(version: str) -> None:
    with pytest.raises(PolicyError, match=r"version is .*(must|should) be 1"):
        parse_policy(POLICY.format(version=version, cpus=1).encode(), "p.yaml")


def test_no_truth_value_is_a_number_of_a_policy() -> None:
    assert parse_policy(POLICY.format(version=1, cpus=1).encode(), "p.yaml").name == "p"
    with pytest.raises(PolicyError, match="cpus is True: must be a number, not true or false"):
        parse_policy(POLICY.format(version=1, cpus="true").encode(), "p.yaml")
    with pytest.raises(ValueError, match="must be a number, not true or false"):
        DataRule.model_validate({"databases": ["*"], "max_rows": True})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": True}, "`version` is True: must be 1"),
        ({"version": 1.0}, "`version` is 1.0: must be 1"),
        ({"islands": {"count": True}}, "`islands.count` is True: must be a number"),
        ({"limits": {"candidate": {"wall_seconds": True}}}, "wall_seconds` is True: must be a number"),
    ],
)
def test_no_truth_value_is_a_number_of_a_task(tmp_path: Path, change: dict[str, object], told: str) -> None:
    assert any(told in problem for problem in _problems(tmp_path, change))


def test_a_range_that_no_value_meets_is_a_problem(tmp_path: Path) -> None:
    returns = {"dtype": "float64", "minimum": 5, "maximum": -5}
    function = {"arguments": [{"name": "x", "dtype": "int64"}], "returns": returns}
    problems = _problems(tmp_path, {"functions": {"f": function}})
    assert any("`minimum` is 5 and `maximum` is -5" in problem for problem in problems)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0400", "256"), ("0_400", "256"), ("-017", "-15"), ("4:16", "256"), ("1:30.5", "90.5"), ("!!int 010", "8")],
)
def test_a_number_in_another_base_is_refused_with_what_it_means(written: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"line 1.* is {meant} in YAML \(base .*write {meant}"):
        load_yaml(f"pids: {written}\n".encode(), "p.yaml")


def test_decimal_numbers_are_read_as_they_stand() -> None:
    text = b"[0, -0, 10, 1_000, 0x10, 1.5, 010.5, 0.25, -3, '0400', 4:ab]"
    assert load_yaml(text, "x") == [0, 0, 10, 1000, 16, 1.5, 10.5, 0.25, -3, "0400", "4:ab"]


def test_final_splits_are_names_or_none() -> None:
    assert named_splits("none") == ()
    assert named_splits("fresh, or1") == ("fresh", "or1")
    for text in (",", "", "fresh,", " "):
        with pytest.raises(InputError, match="empty name"):
            named_splits(text)


def _problems(folder: Path, change: dict[str, object]) -> list[str]:
    """Of a sound package after a change to its task.yaml."""
    file = new_task(folder, "t") / "task.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | change))
    return check_task(file.parent)
