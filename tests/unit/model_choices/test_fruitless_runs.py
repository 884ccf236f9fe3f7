"""Runs that come to nothing say what came instead of programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.choices import Choices
from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.cli.sql_endings import kept, telling_way_on
from orchestrator.domain.model_access import Provider
from orchestrator.errors import ModelUnavailable
from tests.in_process import Call, without_engine
from tests.model_lab import model_lab
from tests.model_servers.base import KEY, Answer, Trouble, Turn
from tests.model_servers.openai import MODEL, OpenAIServer
from tests.unit.model_choices.test_model_runs import TASK, VARIABLE, Search

TOO_LONG = Trouble(
    status=400,
    body={
        "error": {
            "message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv(VARIABLE, KEY)
    return without_engine(tmp_path / "home", monkeypatch, capsys)


def replayed(call: Call, home: Path, answer: Answer) -> tuple[dict[str, Any], str]:
    """What `run` says at the end, as JSON and to people, of a run whose every request is answered so."""
    with OpenAIServer([answer]) as server:
        access = GivenAccess(base_url=server.url, key_env=VARIABLE).over()
        run_id = Search(home, Choices(task=TASK, model=f"openai/{MODEL}", access=access)).begun()
    code, out, err = call("run", TASK, "--model", f"replay/{run_id}")  # stdout is no terminal, so it is JSON
    assert code == 0, err
    document = json.loads(out)
    assert document["state"] == "done"
    assert json.loads(call("show", run_id, "--json")[1])["replies"] == document["replies"]
    return document, " ".join(err.split())


@pytest.mark.parametrize(
    ("turn", "kind", "words"),
    [
        (Turn(text="I will not.", stop="content_filter"), "refusal", "were refusals"),
        (Turn(reasoning="Let me see."), "thought", "were thoughts alone"),
        (Turn(text="To begin with, I", stop="length"), "length", "were cut off before they were whole"),
        (Turn(text="Let me think about it."), "text", "were talk without a tool call"),
    ],
)
def test_what_came_instead_of_programs_is_counted_and_said(
    call: Call, tmp_path: Path, turn: Turn, kind: str, words: str
) -> None:
    document, text = replayed(call, tmp_path / "home", turn)
    count = document["requests"]
    assert count > 1
    assert document["replies"] == {kind: count}
    assert f"{count} of {count} replies {words}." in text


def test_requests_that_the_server_finds_too_long_are_counted_with_its_words(call: Call, tmp_path: Path) -> None:
    document, text = replayed(call, tmp_path / "home", TOO_LONG)
    count = document["replies"]["too-long"]
    assert document["replies"] == {"too-long": count}
    assert "maximum context length is 8192" in document["too_long"]
    assert f"{count} of {count} requests were too long; the model's server says: " in text
    assert "maximum context length is 8192 tokens" in text
    assert "give `context_tokens` in a --models file" in text


@pytest.mark.parametrize("status", [401, 503])
def test_a_command_that_keeps_nothing_does_not_tell_to_resume(status: int) -> None:
    away = Trouble(status=status)
    with (
        model_lab(Provider.OPENAI, [away], outage_seconds=0.0) as lab,
        pytest.raises(ModelUnavailable, match=f"HTTP {status}.*; nothing of it is kept, so ask again then$") as told,
        telling_way_on("nothing of it is kept, so ask again then"),
    ):
        lab.ask()
    assert "resume" not in str(told.value)
    assert told.value.exit_code == 7
    assert "`evolvarium resume r1` goes on" in str(kept(told.value, "r1"))
