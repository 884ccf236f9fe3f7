"""The page on policies says what the code says, and its example works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from orchestrator.cli.policy_reference import EXAMPLE, attribute_docs, reference
from orchestrator.domain.data_access import DataRule
from orchestrator.domain.policies import Disclosure, Grant, Limits, Policy, Purpose
from orchestrator.sandbox.policy_files import REFERENCE, parse_policy

PAGE = (Path(__file__).parents[2] / REFERENCE).read_text(encoding="utf-8")


def test_the_page_on_policies_says_what_the_code_says() -> None:
    assert reference() == PAGE, f"run `python -m orchestrator.cli.policy_reference > {REFERENCE}`"


@pytest.mark.parametrize("model", [Policy, Grant, Limits, DataRule, Disclosure])
def test_every_key_has_its_meaning_on_the_page(model: type[BaseModel]) -> None:
    docs = attribute_docs(model)
    assert set(model.model_fields) <= set(docs)
    for name in model.model_fields:
        assert re.search(rf"^\\| `{name}` \\| .+ \\| {re.escape(docs[name])} \\|$", PAGE, re.MULTILINE), name


def test_the_example_is_a_policy_for_everything_and_stands_on_the_page() -> None:
    policy = parse_policy(EXAMPLE.encode(), "example.yaml")
    assert set(policy.purposes) == set(Purpose)
    assert policy.data[0].deny == ("person.salary",)
    assert f"```yaml\n{EXAMPLE}```" in PAGE


def test_the_page_gives_ranges_and_defaults_as_the_models_hold_them() -> None:
    assert "| `pids` | whole number | 64 | 4 to 4096 | Processes and threads together. |" in PAGE
    assert "| whole number | 536870912 (512 MiB) | 16777216 (16 MiB) to 68719476736 (64 GiB) |" in PAGE


def test_every_link_of_the_page_leads_to_one_of_its_headings() -> None:
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
