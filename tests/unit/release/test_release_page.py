"""docs/releases.md: its example becomes a policy by its own commands, and it names every file of an exported folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.releases import APPROVALS, AUDIT, LICENCES, MANIFEST, PACKAGE_FOLDER, README, SBOM
from orchestrator.errors import PolicyError
from orchestrator.sandbox.policy_files import load_policy, parse_policy

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/releases.md").read_text()


def test_the_example_can_be_added_to_the_default_policy() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    policy = parse_policy(f"{(ROOT / 'policies/default.yaml').read_text()}\n{example}".encode(), "example")
    assert policy.release.approvals == 2
    assert [approver.name for approver in policy.release.approvers] == ["Ann", "Bob", "Cy"]


def test_the_commands_make_a_policy_of_the_example(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (commands,) = (
        block for block in re.findall(r"^```\w*\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if "rules.yaml" in block
    )
    assert len(commands.splitlines()) == 2
    (tmp_path / "rules.yaml").write_text(example)
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    with pytest.raises(PolicyError, match=r"a policy stands alone: copy policies/default\.yaml and change it"):
        load_policy(tmp_path / "rules.yaml")
    subprocess.run(["sh", "-ec", commands], cwd=tmp_path, check=True)
    policy = load_policy(tmp_path / "production.yaml")
    default = load_policy(ROOT / "policies/default.yaml")
    assert (policy.name, policy.release.approvals, policy.purposes) == ("production", 2, default.purposes)


def test_it_says_that_nobody_has_looked_at_an_answer() -> None:
    assert "Nobody but the answering model has looked at an answer" in PAGE
    assert "`evolvarium audit tool DIR/package`" in PAGE


def test_every_file_of_an_exported_folder_is_explained() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert set(rows) == {APPROVALS, AUDIT, LICENCES, MANIFEST, README, SBOM, f"{PACKAGE_FOLDER}/"}
