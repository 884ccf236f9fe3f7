"""docs/releases.md: its example is a policy, and it names every file of an exported folder."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.domain.releases import APPROVALS, AUDIT, LICENCES, MANIFEST, PACKAGE_FOLDER, README, SBOM
from orchestrator.sandbox.policy_files import parse_policy

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/releases.md").read_text()


def test_the_example_can_be_added_to_the_default_policy() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    policy = parse_policy(f"{(ROOT / 'policies/default.yaml').read_text()}\n{example}".encode(), "example")
    assert policy.release.approvals == 2
    assert [approver.name for approver in policy.release.approvers] == ["Ann", "Bob", "Cy"]


def test_every_file_of_an_exported_folder_is_explained() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert set(rows) == {APPROVALS, AUDIT, LICENCES, MANIFEST, README, SBOM, f"{PACKAGE_FOLDER}/"}
