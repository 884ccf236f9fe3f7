"""Thinking that is switched on by an entry's options, with servers as strict as the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    NativeMessage,
    Sampling,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from orchestrator.domain.model_access import ModelEntry, Provider
from orchestrator.errors import InputError, ModelError
from orchestrator.llm.providers.bodies import most_output
from orchestrator.llm.providers.capabilities import THOUGHTS_BACK, Capabilities, find_capabilities
from orchestrator.llm.providers.output_room import shared_output
from tests.model_lab import HELLO, TOOL, ModelLab, model_lab
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.anthropic_client import MODEL, client
from tests.model_servers.anthropic_errors import error_body
from tests.model_servers.anthropic_rules import signature
from tests.model_servers.anthropic_thinking import ADVICE
from tests.model_servers.base import Answer, Call, Received, Trouble, Turn

USER = UserMessage(text="Hello")
LS = Call(name="bash", arguments='{"command": "ls"}')
THINKING = Turn(reasoning="Let me see.", calls=(LS,))
FINE = Turn(text="fine")
ROOMY = Sampling(seed=1, max_output_tokens=20_000)
OLD = "claude-opus-4-5"
"""Thinks only where it is told to, and so takes no thoughts without `thinking`."""


def thinking(budget: int = 1024) -> dict[str, Any]:
    return {"options": {"thinking": {"type": "enabled", "budget_tokens": budget}}}


def called(identity: str, *, native: NativeMessage | None = None) -> AssistantMessage:
    call = ToolCall(id=identity, name="bash", arguments={"command": "ls"})
    return AssistantMessage(text="", tool_calls=(call,), native=native)


def answered(message: AssistantMessage) -> ToolMessage:
    return ToolMessage(results=tuple(ToolResult(call_id=call.id, text=f"of {call.id}") for call in message.tool_calls))


def turn(message: AssistantMessage) -> tuple[Message, ...]:
    return message, answered(message)


def own(thought: str, identity: str) -> AssistantMessage:
    """A call of the model itself, after a thought."""
    block = {"type": "tool_use", "id": identity, "name": "bash", "input": {"command": "ls"}}
    sealed = {"type": "thinking", "thinking": thought, "signature": signature(MODEL, thought)}
    native = NativeMessage(protocol="anthropic", model=MODEL, body={"content": [sealed, block]})
    return called(identity, native=native)


def sent(*messages: Message, **further: Any) -> Any:
    """The body that reaches a server, which takes it."""
    entry = further.pop("entry", thinking())
    with AnthropicServer([FINE]) as server, client(server, **entry) as asked:
        asked.ask(*messages, **{"sampling": ROOMY, **further})
        assert not server.refused
        return server.requests[0].body


def has_thoughts(body: Any) -> bool:
    return "signature" in json.dumps(body["messages"])


@pytest.mark.parametrize(
    "messages",
    [
        (USER, *turn(called("t1"))),
        (USER, *turn(called("t1")), *turn(own("hm", "t2"))),
        (USER, *turn(own("hm", "t1")), USER, *turn(called("t2"))),
        (
            USER,
            *turn(own("hm", "t1")),
            USER,
            AssistantMessage(text="Well,", tool_calls=called("t2").tool_calls),
            answered(called("t2")),
        ),
        (USER, AssistantMessage(text="Well,"), *turn(own("hm", "t2"))),
    ],
    ids=["another's call", "another's, then its own", "the last turn counts", "a text", "a text before a thought"],
)
def test_a_turn_that_does_not_begin_with_a_thought_is_continued_without_thinking(messages: tuple[Message, ...]) -> None:
    body = sent(*messages)
    assert "thinking" not in body
    assert not has_thoughts(body)


@pytest.mark.parametrize(
    "messages",
    [
        (USER,),
        (USER, *turn(own("hm", "t1"))),
        (USER, *turn(own("hm", "t1")), *turn(called("t2"))),
        (USER, *turn(called("t1")), USER),
        (USER, *turn(called("t1")), AssistantMessage(text="Done."), USER, *turn(own("hm", "t2"))),
    ],
    ids=["no turn", "its own", "its own, then another's", "a turn that is over", "its own after one that is over"],
)
def test_other_turns_are_continued_with_it(messages: tuple[Message, ...]) -> None:
    body = sent(*messages)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert has_thoughts(body) is ("hm" in str(messages))


def test_a_model_that_took_anothers_place_goes_on_without_thinking() -> None:
    renamed = Capabilities(refused=frozenset((THOUGHTS_BACK,)))
    assert "thinking" not in sent(USER, *turn(own("hm", "t1")), capabilities=renamed)


def test_a_run_whose_model_was_renamed_goes_on_in_the_middle_of_a_turn() -> None:
    with model_lab(Provider.ANTHROPIC, [THINKING], **thinking()) as lab:
        first = lab.ask(sampling=ROOMY).message
    with model_lab(Provider.ANTHROPIC, [FINE], model=OLD, **thinking()) as lab:
        assert lab.ask(HELLO.plus(*turn(first)), ROOMY).message.text == "fine"
        assert "thinking" not in lab.server.requests[0].body
        lab.ask(sampling=ROOMY)
        assert "thinking" in lab.server.requests[1].body


def test_adaptive_thinking_is_sent_whatever_a_turn_begins_with() -> None:
    adaptive = {"options": {"thinking": {"type": "adaptive"}}}
    assert sent(USER, *turn(called("t1")), entry=adaptive)["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize(
    ("entry", "refused"),
    [({"options": {"thinking": {"type": "disabled"}}}, ()), ({}, ("thinking",)), (thinking(), ("thinking",))],
)
def test_without_thinking_no_thoughts_go_back(entry: dict[str, Any], refused: tuple[str, ...]) -> None:
    body = sent(USER, *turn(own("hm", "t1")), entry=entry, capabilities=Capabilities(refused=frozenset(refused)))
    assert not has_thoughts(body)
    assert body["messages"][1]["content"][0]["type"] == "tool_use"


def test_the_servers_are_as_strict_as_the_provider() -> None:
    with AnthropicServer([FINE]) as server, client(server) as asked:
        body = asked.parameters(USER, *turn(called("t1")), sampling=ROOMY)
        enabled = {**body, **thinking()["options"]}
        own_body = asked.parameters(USER, *turn(own("hm", "t1")), sampling=ROOMY)
        tight = {**enabled, "max_tokens": 1024}
        for refused, said in (
            (enabled, "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When"),
            ({**own_body, "thinking": {"type": "disabled"}}, "When thinking is disabled, an `assistant` message"),
            (tight, "`max_tokens` must be greater than `thinking.budget_tokens`"),
        ):
            with pytest.raises(Exception, match=said):
                list(asked.connection.begin(refused))


# Through the whole model: what the rules above do not foresee, and what fits where.


def picky(request: Received) -> Answer:
    """A server that wants a thought before the last call, too."""
    body = request.body
    last = [message for message in body["messages"] if message["role"] == "assistant"][-1:]
    if "thinking" in body and last and last[0]["content"][0]["type"] != "thinking":
        said = f"messages.9.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. {ADVICE}"
        return Trouble(status=400, body=error_body(400, said))
    if "thinking" not in body and has_thoughts(body):
        return Trouble(status=500)
    return FINE if last else THINKING


def conversation(lab: ModelLab) -> Conversation:
    """A thought and a call of the model itself, and a call of another."""
    first = lab.ask(sampling=ROOMY).message
    return HELLO.plus(*turn(first), *turn(called("other")))


def test_a_server_that_refuses_all_the_same_is_asked_once_more_without_thinking_for_this_request() -> None:
    with model_lab(Provider.ANTHROPIC, picky, **thinking()) as lab:
        assert lab.ask(conversation(lab), ROOMY).message.text == "fine"
        assert ["thinking" in request.body for request in lab.server.requests] == [True, True, False]
        lab.ask(sampling=ROOMY)
        assert "thinking" in lab.server.requests[-1].body
        assert lab.notes == []


def test_thinking_that_is_refused_without_being_there_is_an_error() -> None:
    always = Trouble(status=400, body=error_body(400, f"messages.1.content.0.type: {ADVICE}"))
    with model_lab(Provider.ANTHROPIC, [always], **thinking()) as lab:
        with pytest.raises(ModelError, match="must start with a thinking block"):
            lab.ask(sampling=ROOMY)
        assert lab.calls == 2


def test_thoughts_of_a_run_whose_thinking_was_switched_off_are_left_out() -> None:
    with model_lab(Provider.ANTHROPIC, [THINKING, FINE], model=OLD, **thinking()) as lab:
        first = lab.ask(sampling=ROOMY).message
    with model_lab(Provider.ANTHROPIC, [FINE], model=OLD) as lab:
        assert lab.ask(HELLO.plus(*turn(first)), ROOMY).message.text == "fine"
        assert [said for _, said in lab.server.refused if "thinking is disabled" in said]


def test_a_budget_comes_on_top_of_what_is_asked_for_and_is_reserved() -> None:
    sampling = Sampling(seed=1, max_output_tokens=8192)
    with model_lab(Provider.ANTHROPIC, [FINE], **thinking(10_000)) as lab:
        lab.ask(sampling=sampling)
        body = lab.server.requests[0].body
        assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (18_192, 10_000)
        assert lab.model.worst_case(HELLO, [TOOL], sampling).output_tokens == 18_192


@pytest.mark.parametrize("words", [1, 3000, 5000, 6000, 9000])
def test_as_the_context_fills_thoughts_get_less_and_then_none(words: int) -> None:
    filled = HELLO.plus(AssistantMessage(text="."), UserMessage(text="word " * words))
    sampling = Sampling(seed=1, max_output_tokens=8192)
    with model_lab(Provider.ANTHROPIC, [FINE], context_tokens=16_000, **thinking(8000)) as lab:
        lab.ask(filled, sampling)
        body = lab.server.requests[0].body
        assert not lab.server.refused
        assert body["max_tokens"] <= lab.model.worst_case(filled, [TOOL], sampling).output_tokens
    budget = body.get("thinking", {}).get("budget_tokens")
    assert (budget is None) is (words > 5000)
    assert budget is None or 1024 <= budget < body["max_tokens"]


@given(
    st.integers(1, 200_000),
    st.integers(0, 200_000),
    st.integers(1024, 60_000),
    st.none() | st.integers(60_001, 128_000),
    st.none() | st.integers(1024, 1_000_000),
)
def test_thoughts_always_leave_something_to_the_answer(
    asked: int, used: int, budget: int, most: int | None, context: int | None
) -> None:
    capabilities = Capabilities(max_output_tokens=most, context_tokens=context, thinking_tokens=budget)
    output, fitted = shared_output(capabilities, asked, used)
    assert output <= most_output(capabilities, asked + budget, used)
    if not fitted.accepts("thinking"):
        assert output == most_output(capabilities, asked, used) <= 2 * 1024
    else:
        assert fitted.thinking_tokens is not None
        assert 1024 <= fitted.thinking_tokens <= min(budget, output - 1)
        assert output - fitted.thinking_tokens >= min(asked, output) // 2


def test_a_server_that_gives_less_than_it_said_gets_a_smaller_budget() -> None:
    server = {"models": {"claude-sonnet-5": (200_000, 6000)}}
    with model_lab(Provider.ANTHROPIC, [FINE], server=server, **thinking(10_000)) as lab:
        lab.ask(sampling=ROOMY)
        body = lab.server.requests[0].body
        assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (6000, 3000)


@pytest.mark.parametrize("budget", [16_000, 20_000])
def test_a_budget_that_is_no_less_than_the_output_is_refused_when_the_model_is_opened(budget: int) -> None:
    entry = ModelEntry(provider=Provider.ANTHROPIC, model=OLD, max_output_tokens=16_000, **thinking(budget))
    with pytest.raises(InputError, match=rf"budget_tokens is {budget}, and max_output_tokens.*is 16000"):
        find_capabilities(entry)
    assert find_capabilities(entry.model_copy(update={"without": ("thinking",)})).thinking_tokens is None


@pytest.mark.parametrize("options", [thinking(15_999)["options"], {"thinking": {"type": "adaptive"}}, {"thinking": 1}])
def test_other_options_are_left_to_the_server(options: dict[str, Any]) -> None:
    entry = ModelEntry(provider=Provider.ANTHROPIC, model=OLD, max_output_tokens=16_000, options=options)
    assert find_capabilities(entry).thinking_tokens in (None, 15_999)
