"""The check before any work: what is missing is named, in one line, with the way out."""

from __future__ import annotations

import time

import pytest

from orchestrator.domain.model_access import KeySource, Patience, Provider
from orchestrator.errors import Cancelled, ModelUnavailable, PrerequisiteError
from orchestrator.llm.providers.bodies import DEFAULT_CONTEXT_TOKENS
from orchestrator.llm.providers.breaker import Breakers
from orchestrator.llm.providers.opening import open_model
from orchestrator.runtime.workers import CancelToken, spawn
from tests.model_lab import ModelLab, entry_for, model_at, model_lab
from tests.model_servers.base import KEY, ModelServer, Received, Responder, Turn
from tests.model_servers.openai import Flavour, OpenAIServer

both = pytest.mark.parametrize("provider", list(Provider), ids=str)
FINE = Turn(text="All is well.")


class SilentServer(ModelServer):
    """Takes requests and never says anything."""

    def handle(self, request: Received, respond: Responder) -> None:
        del respond
        self.note_other(request)
        self.pause(30.0)


def complaint(lab: ModelLab, seconds: float = 5.0) -> str:
    with pytest.raises(PrerequisiteError) as raised:
        lab.model.check(seconds)
    said = str(raised.value)
    assert "\n" not in said
    assert KEY not in said
    assert lab.calls == 0
    return said


@both
def test_a_model_that_is_there_passes_and_nothing_is_paid(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as lab:
        lab.model.check()
        assert lab.calls == 0
        assert lab.server.others
        assert lab.notes == []


@both
def test_a_key_that_is_refused_is_named(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as lab:
        lab.server.revoke()
        assert "refuses the key in the environment variable TEST_MODEL_KEY" in complaint(lab)


@both
def test_a_missing_key_is_named_before_anything_is_sent(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as lab, pytest.raises(PrerequisiteError, match="OTHER_KEY is not set; set it"):
        open_model(
            "other",
            entry_for(provider, lab.server.url, key=KeySource(env="OTHER_KEY")),
            environment={},
            patience=Patience(),
            breakers=Breakers(),
            token=CancelToken(),
            note=lab.notes.append,
        )


@both
def test_a_server_that_wants_a_key_where_none_is_named_says_so(provider: Provider) -> None:
    with model_lab(provider, [FINE], key=None) as lab:
        said = complaint(lab)
        assert "wants a key" in said
        assert "--key-env NAME beside --base-url, or in a --models file" in said


@both
def test_a_server_that_is_not_there_is_named(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as gone:
        url = gone.server.url
    with (
        model_lab(provider, [FINE]) as running,
        model_at(running.server, provider, patience=Patience(), base_url=url) as lab,
    ):
        said = complaint(lab)
        assert url in said
        assert "does not serve: it cannot be reached" in said
        assert "say where it is: --base-url for a model named openai/NAME" in said


@both
def test_a_server_that_never_answers_is_named_in_time(provider: Provider) -> None:
    with SilentServer([FINE]) as server, model_at(server, provider, patience=Patience()) as lab:
        begun = time.monotonic()
        assert "does not serve" in complaint(lab, 0.5)
        assert time.monotonic() - begun < 1.5


@both
def test_the_check_can_be_cancelled(provider: Provider) -> None:
    with SilentServer([FINE]) as server, model_at(server, provider, patience=Patience()) as lab:
        worker = spawn("checker", lab.model.check)
        lab.token.cancel("enough")
        assert worker.join(2)
        with pytest.raises(Cancelled):
            worker.result()


def test_a_model_that_is_not_there_is_named_with_those_that_are() -> None:
    with model_lab(Provider.ANTHROPIC, [FINE], model="claud-sonnet-5") as lab:
        said = complaint(lab)
        assert "has no model 'claud-sonnet-5'" in said
        assert "claude-sonnet-5" in said
    with model_lab(Provider.OPENAI, [FINE], model="test-modal") as lab:
        said = complaint(lab)
        assert "has no model 'test-modal'; it has test-model" in said


def test_a_server_without_a_list_of_models_passes() -> None:
    with model_lab(Provider.OPENAI, [FINE], server={"flavour": Flavour(listing="missing")}) as lab:
        lab.model.check()
        assert lab.ask().message.text == "All is well."


def test_a_base_url_without_its_version_is_named_with_the_one_that_serves() -> None:
    with OpenAIServer([FINE]) as server:
        short = server.url.removesuffix("/v1")
        with model_at(server, Provider.OPENAI, patience=Patience(), base_url=short) as lab:
            assert f"{short} serves no models, but {server.url} does; use that" in complaint(lab)
            with pytest.raises(ModelUnavailable, match=r"HTTP 404.*if the base URL is .*`base_url`"):
                lab.ask()


def test_sizes_that_nobody_knew_are_those_that_the_server_says() -> None:
    flavour = Flavour(listing="vllm", listed_context=16_384)
    with model_lab(Provider.OPENAI, [FINE], server={"flavour": flavour}, context_tokens=None) as lab:
        lab.model.check()
        assert lab.model.context_tokens == 16_384
        assert lab.notes == []
    with model_lab(Provider.OPENAI, [FINE], server={"flavour": flavour}, context_tokens=8192) as lab:
        lab.model.check()
        assert lab.model.context_tokens == 8192


def test_a_context_that_nobody_knows_is_a_usual_one_and_noted_once() -> None:
    with model_lab(Provider.OPENAI, [FINE], context_tokens=None) as lab:
        assert [lab.model.context_tokens for _ in range(3)] == [DEFAULT_CONTEXT_TOKENS] * 3
        assert len(lab.notes) == 1
        assert "`context_tokens`" in lab.notes[0]
