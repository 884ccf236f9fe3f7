"""A server that sends the key back, wherever it can, gets it into no reply, record, note or message."""

from __future__ import annotations

import base64
import json

import pytest

from orchestrator.domain.model_access import Provider
from orchestrator.domain.records import to_record
from orchestrator.errors import PrerequisiteError
from orchestrator.llm.providers.shown_errors import shown_error, without_forms
from orchestrator.llm.providers.wire import Secret
from tests.model_lab import model_lab
from tests.model_servers.base import KEY, Call, Turn

EVERYWHERE = Turn(
    text=f"Your key is {KEY}.",
    reasoning=f"It told me {KEY.upper()}.",
    calls=(Call(name="look", arguments=json.dumps({"at": KEY}), id=f"call_{KEY}"),),
    served_by=f"model-{KEY}",
)


@pytest.mark.parametrize("provider", list(Provider))
def test_no_reply_holds_the_key(provider: Provider) -> None:
    with model_lab(provider, [EVERYWHERE]) as lab:
        reply = lab.ask()
        assert reply.message.text == "Your key is ***."
        assert reply.message.tool_calls[0].arguments is None
        said = json.dumps(to_record(reply)) + " ".join(lab.notes)
        assert KEY.lower() not in said.lower()


@pytest.mark.parametrize("provider", list(Provider))
def test_a_reply_without_the_key_comes_as_it_is(provider: Provider) -> None:
    turn = Turn(text="sk-test is how keys begin.", calls=(Call(name="look", arguments='{"at": "3f9a"}'),))
    with model_lab(provider, [turn]) as lab:
        message = lab.ask().message
        assert message.text == "sk-test is how keys begin."
        assert message.tool_calls[0].arguments == {"at": "3f9a"}


def test_no_list_of_models_shows_the_key() -> None:
    with model_lab(Provider.OPENAI, [EVERYWHERE]) as lab:
        lab.server.models = (f"test-{KEY}",)
        with pytest.raises(PrerequisiteError) as told:
            lab.model.check()
        assert "test-***" in str(told.value)
        assert KEY not in str(told.value)


@pytest.mark.parametrize(
    "form",
    [KEY, KEY.upper(), KEY.encode().hex(), KEY.encode().hex().upper(), base64.b64encode(KEY.encode()).decode()],
)
def test_no_form_of_the_key_is_shown(form: str) -> None:
    for text in (f"bad key {form}!", f"bad key {form[:12]}..."):
        shown = shown_error(text, Secret(KEY))
        assert form[:12] not in shown
        assert "***" in shown


def test_a_short_key_hides_only_itself() -> None:
    assert without_forms("an example of hex 6178", Secret("ax")) == "an example of hex 6178"
    assert without_forms("the key ax", Secret("ax")) == "the key ***"
