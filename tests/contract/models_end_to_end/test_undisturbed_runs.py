"""A run that nothing happens to, as the measure of all others."""

from __future__ import annotations

from collections.abc import Mapping


def test_both_protocols_lead_to_the_same_better_programs(undisturbed: Mapping[str, str]) -> None:
    assert sorted(undisturbed) == ["i0/commit/c01", "i0/commit/c02", "i1/commit/c01", "i1/commit/c02"]
