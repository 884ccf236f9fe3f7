"""Which addresses a policy's pattern means: no `*` reaches further than the part it stands in."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.model_rules import ModelRule


def allows(pattern: str, base_url: str) -> bool:
    rule = ModelRule(models=("openai/*",), base_urls=(pattern,))
    return rule.allows("openai/some", base_url, ModelRole.AGENT)


@pytest.mark.parametrize(
    ("pattern", "base_url"),
    [
        ("*", "https://anywhere.example/v1"),
        ("https://api.example.org", "https://api.example.org"),
        ("https://api.example.org", "https://api.example.org/v1"),
        ("https://API.example.org/v1", "https://api.Example.org/v1"),
        ("https://*.example.org/v1", "https://proxy.eu.example.org/v1"),
        ("http://127.0.0.1:*", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:*", "http://127.0.0.1"),
        ("http://[::1]:*", "http://[::1]:8000/v1"),
        ("https://*", "https://anywhere.example/v1"),
        ("*://localhost:11434", "http://localhost:11434/v1"),
        ("https://api.example.org/team/*", "https://api.example.org/team/a/v1"),
    ],
)
def test_a_pattern_means_an_address(pattern: str, base_url: str) -> None:
    assert allows(pattern, base_url)


@pytest.mark.parametrize(
    ("pattern", "base_url"),
    [
        ("https://*.example.org/v1", "https://evil.test/x.example.org/v1"),
        ("https://*.example.org", "https://evil.test/.example.org"),
        ("https://*.example.org", "https://example.org"),
        ("https://*.example.org", "https://evilexample.org"),
        ("https://api.example.org", "https://api.example.org.evil.test"),
        ("https://api.example.org", "https://api.example.org:8443"),
        ("https://api.example.org", "http://api.example.org"),
        ("https://api.example.org/v1", "https://api.example.org/v2"),
        ("https://api.example.org/v1", "https://api.example.org"),
        ("http://127.0.0.1:*", "http://127.0.0.1.evil.test:80"),
        ("http://127.0.0.1:*", "http://127.0.0.10:8000"),
        ("http://localhost:11434", "http://localhost:11435"),
    ],
)
def test_a_pattern_means_no_other_address(pattern: str, base_url: str) -> None:
    assert not allows(pattern, base_url)


@pytest.mark.parametrize(
    "pattern",
    [
        "https://proxy.example.org*",
        "https://proxy.*",
        "api.example.org",
        "ftp://host",
        "https://a*b.org",
        "http://host:8*",
    ],
)
def test_a_pattern_that_could_mean_hosts_of_others_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match="SCHEME://HOST"):
        ModelRule(models=("openai/*",), base_urls=(pattern,))
