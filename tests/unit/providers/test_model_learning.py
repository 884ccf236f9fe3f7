"""Parameters that a server refuses: one more try without each, which is remembered."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from orchestrator.domain.conversation import Sampling
from orchestrator.domain.model_access import Provider
from orchestrator.errors import ModelError
from tests.model_lab import HELLO, SAMPLING, model_lab
from tests.model_servers.base import Answer, Received, Trouble, Turn
from tests.model_servers.openai_errors import unsupported_parameter

FINE = Turn(text="All is well.")
WARM = Sampling(seed=1, max_output_tokens=1000, temperature=0.5)


def refusing(*names: str) -> Any:
    """A script that refuses parameters, as OpenAI does."""

    def script(request: Received) -> Answer:
        for name in names:
            if name in request.body:
                return Trouble(status=400, body=unsupported_parameter(name).body)
        return FINE

    return script


def test_a_refused_parameter_is_left_out_from_then_on_and_noted_once() -> None:
    with model_lab(Provider.OPENAI, refusing("temperature")) as lab:
        for _ in range(3):
            assert lab.ask(sampling=WARM).message.text == "All is well."
        assert ["temperature" in request.body for request in lab.server.requests] == [True, False, False, False]
        assert lab.notes == ["openai/test-model refuses 'temperature'; it is asked without from now on"]


def test_several_refused_parameters_are_left_out_one_after_the_other() -> None:
    with model_lab(Provider.OPENAI, refusing("temperature", "max_tokens", "stream_options")) as lab:
        assert lab.ask(sampling=WARM).message.text == "All is well."
        assert lab.calls == 4
        lab.ask(sampling=WARM)
        assert lab.calls == 5
        assert lab.server.requests[-1].body["max_completion_tokens"] == 1000


def test_a_parameter_that_is_refused_again_is_an_error_that_names_it() -> None:
    always = Trouble(status=400, body=unsupported_parameter("temperature").body)
    with model_lab(Provider.OPENAI, [always]) as lab:
        with pytest.raises(ModelError, match=r"refuses the parameter 'temperature': .*`options`.*`without`"):
            lab.ask(sampling=WARM)
        assert lab.calls == 2


def test_what_cannot_be_left_out_is_an_error_at_once() -> None:
    with model_lab(Provider.OPENAI, refusing("messages")) as lab:
        with pytest.raises(ModelError, match="messages"):
            lab.ask()
        assert lab.calls == 1


def test_threads_that_are_refused_the_same_at_the_same_instant_all_get_their_reply() -> None:
    barrier = threading.Barrier(4)

    def script(request: Received) -> Answer:
        if "max_tokens" not in request.body:
            return FINE
        barrier.wait(5)  # all have sent it before the first is refused
        return Trouble(status=400, body=unsupported_parameter("max_tokens", "max_completion_tokens").body)

    with model_lab(Provider.OPENAI, script) as lab:
        assert [worker.result().message.text for worker in lab.ask_in_threads(4)] == ["All is well."] * 4
        assert lab.calls == 8
        assert len(lab.notes) == 1


def test_a_parameter_that_anthropic_deprecates_is_left_out_too() -> None:
    with model_lab(Provider.ANTHROPIC, [FINE], model="claude-sonnet-4-6", server={"refuses": ["cache_control"]}) as lab:
        assert lab.ask().message.text == "All is well."


def test_what_a_user_leaves_out_is_never_sent() -> None:
    with model_lab(Provider.OPENAI, [FINE], without=("temperature",)) as lab:
        lab.ask(sampling=WARM)
        assert "temperature" not in lab.server.requests[0].body


def test_options_of_the_entry_are_part_of_every_request() -> None:
    with model_lab(Provider.OPENAI, [FINE], options={"reasoning_effort": "high"}) as lab:
        lab.ask()
        assert lab.server.requests[0].body["reasoning_effort"] == "high"


@pytest.mark.parametrize("provider", list(Provider), ids=str)
def test_no_more_output_is_asked_for_than_the_model_gives_and_the_context_holds(provider: Provider) -> None:
    with model_lab(provider, [FINE], max_output_tokens=500) as lab:
        lab.ask()
        assert output_limit(lab.server.requests[0].body) == 500
        assert lab.model.worst_case(HELLO, [], SAMPLING).output_tokens == 500
    with model_lab(provider, [FINE], context_tokens=1024) as lab:
        sampling = Sampling(seed=1, max_output_tokens=32_000)
        lab.ask(sampling=sampling)
        assert 128 <= output_limit(lab.server.requests[0].body) < 1024


def test_where_no_limit_can_be_sent_the_worst_case_is_what_the_model_can_say() -> None:
    with model_lab(
        Provider.OPENAI, [FINE], without=("max_tokens", "max_completion_tokens"), max_output_tokens=9000
    ) as lab:
        lab.ask()
        assert not {"max_tokens", "max_completion_tokens"} & set(lab.server.requests[0].body)
        # The whole context: nobody keeps to what is not said.
        assert lab.model.worst_case(HELLO, [], SAMPLING).output_tokens == lab.model.context_tokens == 200_000


def output_limit(body: Any) -> int:
    return int(body.get("max_completion_tokens") or body["max_tokens"])
