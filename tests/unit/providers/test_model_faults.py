"""What goes wrong between a model and us: nothing is paid for twice, and it is said what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from orchestrator.domain.conversation import StopReason
from orchestrator.domain.model_access import Patience, Provider
from orchestrator.errors import ContextTooLong, LostReply, ModelError, ModelUnavailable
from tests.model_lab import HELLO, PRICE, SAMPLING, TOOL, model_at, model_lab
from tests.model_servers import anthropic_errors, openai_errors
from tests.model_servers.base import Call, ModelServer, Received, Responder, Trouble, Turn

both = pytest.mark.parametrize("provider", list(Provider), ids=str)
FINE = Turn(text="All is well.")


class PingServer(ModelServer):
    """Sends comments of an event stream for ever, and nothing else."""

    def handle(self, request: Received, respond: Responder) -> None:
        self.answer_to(request)
        respond.stream(self._pings())

    def _pings(self) -> Iterator[bytes]:
        while not self._stopping.is_set():
            yield b": still here\n\n"
            self.pause(0.05)


@both
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Trouble(silent_seconds=30.0), id="never answers"),
        pytest.param(Trouble(silent_seconds=0.9, turn=FINE), id="answers too late"),
        pytest.param(Trouble(stall_after=3, turn=FINE), id="stops in the middle"),
    ],
)
def test_what_is_not_there_in_time_is_lost_and_not_asked_for_again(provider: Provider, trouble: Trouble) -> None:
    with model_lab(provider, [trouble], request_seconds=0.6) as lab:
        begun = time.monotonic()
        with pytest.raises(LostReply, match=r"no whole reply within 0.6 s; the request may have been paid for"):
            lab.ask()
        assert time.monotonic() - begun < 1.6
        time.sleep(0.5)  # for an answer that comes too late
        assert lab.calls == 1


@both
def test_a_server_that_only_sends_pings_does_not_get_round_the_deadline(provider: Provider) -> None:
    patience = Patience(request_seconds=0.6, chunk_seconds=5.0)
    with PingServer([FINE]) as server, model_at(server, provider, patience=patience) as lab:
        begun = time.monotonic()
        with pytest.raises(LostReply, match="no whole reply within"):
            lab.ask()
        assert time.monotonic() - begun < 1.6
        assert lab.calls == 1


@both
def test_a_stream_that_stands_still_is_given_up_long_before_the_deadline(provider: Provider) -> None:
    with model_lab(provider, [Trouble(stall_after=3, turn=FINE)], chunk_seconds=0.3) as lab:
        begun = time.monotonic()
        with pytest.raises(LostReply):
            lab.ask()
        assert time.monotonic() - begun < 2.0
        assert lab.calls == 1


@both
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Trouble(drop_after=4, turn=FINE), id="drops in the middle"),
        pytest.param(Trouble(raw=b"data: {broken\n\ndata: [DONE]\n\n"), id="invalid JSON"),
        pytest.param(Trouble(raw=b""), id="nothing at all"),
        pytest.param(Trouble(raw=b"<html>Welcome to the hotel</html>"), id="something else"),
    ],
)
def test_what_is_no_reply_is_lost_and_not_asked_for_again(provider: Provider, trouble: Trouble) -> None:
    with model_lab(provider, [trouble, FINE]) as lab:
        with pytest.raises(LostReply, match="may have been paid for"):
            lab.ask()
        assert lab.calls == 1
        assert lab.ask().message.text == "All is well."


@both
def test_a_revoked_key_pauses_the_run_and_says_what_to_do(provider: Provider) -> None:
    with model_lab(provider, [FINE]) as lab:
        key = lab.server.key
        lab.ask()
        lab.server.revoke()
        with pytest.raises(ModelUnavailable, match=r"TEST_MODEL_KEY again.*top up the account") as raised:
            lab.ask()
        assert raised.value.exit_code == 7
        lab.server.key = key
        assert lab.ask().message.text == "All is well."


@both
def test_a_model_that_is_gone_pauses_the_run_and_says_what_to_do(provider: Provider) -> None:
    with (
        model_lab(provider, [FINE], model="gone-model") as lab,
        pytest.raises(ModelUnavailable, match="define the model's new name in a models file"),
    ):
        lab.ask()


TOO_LONG = {
    Provider.ANTHROPIC: anthropic_errors.error_body(400, "prompt is too long: 212000 tokens > 200000 maximum"),
    Provider.OPENAI: openai_errors.context_length_exceeded(8192, 9000).body,
}


@both
def test_a_conversation_that_is_too_long_is_said_to_be(provider: Provider) -> None:
    with model_lab(provider, [Trouble(status=400, body=TOO_LONG[provider])]) as lab:
        with pytest.raises(ContextTooLong, match="tokens"):
            lab.ask()
        assert lab.calls == 1


@both
def test_any_other_refusal_is_told_and_not_tried_again(provider: Provider) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: we do not like them"}}
    with model_lab(provider, [Trouble(status=400, body=body)]) as lab:
        with pytest.raises(ModelError, match=r"refuses the request: .*we do not like them") as raised:
            lab.ask()
        assert type(raised.value) is ModelError
        assert lab.calls == 1


@both
def test_a_reply_without_content_is_a_reply_and_paid_for(provider: Provider) -> None:
    with model_lab(provider, [Turn(text="")]) as lab:
        reply = lab.ask()
        assert (reply.message.text, reply.message.tool_calls) == ("", ())
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 20)
        assert lab.calls == 1


@both
def test_content_in_another_order_is_the_same_content(provider: Provider) -> None:
    turn = Turn(
        text="Look.",
        reasoning="Hm.",
        calls=(Call(name="look", arguments='{"at": 1}'), Call(name="nowhere", arguments='{"at": ')),
        order=("calls", "text", "reasoning"),
    )
    with model_lab(provider, [turn]) as lab:
        reply = lab.ask()
        assert (reply.message.text, reply.message.reasoning, reply.stop) == ("Look.", "Hm.", StopReason.TOOLS)
        assert [call.name for call in reply.message.tool_calls] == ["look", "nowhere"]
        assert [call.arguments for call in reply.message.tool_calls] == [{"at": 1}, None]


@both
def test_a_missing_usage_is_estimated_on_the_high_side_and_below_the_reservation(provider: Provider) -> None:
    with model_lab(provider, [Turn(text="word " * 100, without_usage=True)]) as lab:
        reply = lab.ask()
        assert reply.is_estimate
        worst = lab.model.worst_case(HELLO, [TOOL], SAMPLING)
        assert reply.usage.input_tokens == worst.input_tokens
        assert 250 <= reply.usage.output_tokens <= worst.output_tokens
        assert reply.usage.usd is not None
        assert worst.usd is not None
        assert 0 < reply.usage.usd <= worst.usd


@both
def test_a_reply_of_a_megabyte_arrives_whole(provider: Provider) -> None:
    text = "0123456789abcdef" * (1 << 16)
    with model_lab(provider, [Turn(text=text, piece=8192)]) as lab:
        assert lab.ask().message.text == text
        assert lab.calls == 1


@both
def test_a_model_that_answers_under_another_name_is_noted_once(provider: Provider) -> None:
    with model_lab(provider, [Turn(text="Me.", served_by="claude-other-6")]) as lab:
        assert [lab.ask().served_by for _ in range(3)] == ["claude-other-6"] * 3
        assert len(lab.notes) == 1
        assert "is answered by 'claude-other-6'" in lab.notes[0]


@both
def test_the_usage_is_priced_as_its_provider_says(provider: Provider) -> None:
    turn = Turn(text="Hi.", input_tokens=10, cached_tokens=1000, output_tokens=7)
    with model_lab(provider, [turn]) as lab:
        usage = lab.ask().usage
        assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (10, 1000, 7)
        assert usage.usd == (10 * PRICE.input + 1000 * (PRICE.cached_input or 0) + 7 * PRICE.output) / 1_000_000
