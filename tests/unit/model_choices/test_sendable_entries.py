"""What cannot be sent, or would record a secret, is refused where a model is described, and says where it stands."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.bootstrap.model_files import load_models
from orchestrator.cli.model_options import access_given, price_given
from orchestrator.domain.model_access import ModelAccess, ModelEntry, Provider
from orchestrator.domain.model_options import secret_options, unsendable
from orchestrator.errors import InputError

SECRET = "sk-live-0123456789abcdef"
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def entry(**fields: Any) -> ModelEntry:
    return ModelEntry(provider=Provider.OPENAI, model="m", **fields)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_p": float("nan")}, "top_p is no finite number"),
        ({"logit_bias": {"17": [1, float("-inf")]}}, r"logit_bias\.17\[1\] is no finite number"),
        ({"since": date(2026, 1, 2)}, "since is of the kind 'date', which JSON does not have"),
        ({"stop": {"a"}}, "stop is of the kind 'set'"),
        ({"user": b"raw"}, "user is of the kind 'bytes'"),
        ({"user": "\ud83d"}, "user holds half a character"),
        ({"\ud83d": 1}, r"\\ud83d has a name that is no text"),
        ({"metadata": {7: "x"}}, "metadata.7 has a name that is no text"),
        ({"seed": 10**5000}, "seed is larger than any number"),
        ({"deep": ENDLESS}, "is nested more than 32 levels deep"),
    ],
)
def test_options_that_are_no_json_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        entry(options=options)


def test_options_that_are_json_stay_as_they_are() -> None:
    options = {
        "reasoning_effort": "high",
        "stop": ["\n\n", "✓"],
        "metadata": {"a": None, "b": True, "c": 1e-3, "d": 2**64},
    }
    assert unsendable(options) is None
    assert entry(options=options).options == options
    assert ModelEntry.model_validate_json(entry(options=options).model_dump_json()).options == options


@pytest.mark.parametrize("value", [".nan", "1.0e+999", ".inf", "2026-01-02", "!!set {a}", "!!binary aGk=", '"\\ud83d"'])
def test_a_models_file_with_such_an_option_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(f"models: {{a: {{provider: openai, model: m, options: {{top_p: {value}}}}}}}", encoding="utf-8")
    with pytest.raises(InputError, match=r"models\.yaml"):
        load_models(path)


def test_a_secret_is_found_at_any_depth(tmp_path: Path) -> None:
    nested = {"metadata": {"Authorization": SECRET, "user_id": "u"}, "tools": [{"type": "mcp", "x-api-key": SECRET}]}
    assert secret_options(nested) == ["metadata.Authorization", "tools[0].x-api-key"]
    assert secret_options({"authorizations": 1, "stop": ["authorization"], "text": "api_key"}) == []
    path = tmp_path / "models.yaml"
    path.write_text(
        f"models: {{a: {{provider: openai, model: m, options: {{metadata: {{authorization: {SECRET}}}}}}}}}",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"`models\.a\.options` holds metadata\.authorization") as raised:
        load_models(path)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1\x00",
        "http://exam\nple.org/v1",
        "http://exam\tple.org/v1",
        "http://example.org/a b",
        " http://example.org",
        "http://exämple.org",
        "http://example.org/ü",
        "http://example.org:²/",
        "http://example..org",
        "http://-example.org",
        f"http://{'a' * 64}.org",
        "http://*/v1",
        "http://256.0.0.1",
        "http://1.2.3",
        "http://[::g]/",
        "http://example.org:0/",
        "http://example.org:/v1",
        "http://example.org:99999",
    ],
)
def test_a_url_that_no_client_can_ask_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        entry(base_url=url)
    with pytest.raises(ValidationError):
        ModelAccess(base_url=url)
    with pytest.raises(InputError, match="--base-url"):
        access_given(base_url=url)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "https://a-b.example.org./v1", "http://[::1]:8000/v1", "http://model_1:80/v1/%20"]
)
def test_a_url_that_can_be_asked_is_taken(url: str) -> None:
    assert entry(base_url=url).url == url


@pytest.mark.parametrize(
    "price", ["٣/٤", "1_0/2", "1e2/3", "1/NaN", "+1/2", "1/\uff12", "1/2\n", f"1/{'9' * 5000}", f"0.{'1' * 50}/2"]
)
def test_a_price_is_written_in_plain_digits(price: str) -> None:
    with pytest.raises(InputError, match=r"--price .* give IN/CACHED/OUT or IN/OUT") as raised:
        price_given(price)
    assert len(str(raised.value)) < 500
