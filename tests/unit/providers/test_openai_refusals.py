"""Refusals in the words of many servers, as they were found in their sources and in what their users report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.domain.conversation import AssistantMessage, NativeMessage, ToolMessage, ToolResult
from orchestrator.llm.providers.capabilities import SYSTEM_ROLE, Capabilities, learned
from orchestrator.llm.providers.openai_refusals import is_about_context, refused_parameter
from tests.model_servers.base import Turn
from tests.model_servers.openai import OpenAIServer
from tests.model_servers.openai_client import ACCOUNT, HELLO, WIRE, bash, client
from tests.model_servers.openai_strictness import Strictness

OPENAI = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
VLLM = "This model's maximum context length is"


@pytest.mark.parametrize(
    ("said", "param", "parameter"),
    [
        (OPENAI, "max_tokens", "max_tokens"),
        (OPENAI, "", "max_tokens"),
        ("Unsupported value: 'temperature' does not support 0.7 with this model.", "temperature", "temperature"),
        ("input tensor `temperature` is not present in the model", "", "temperature"),
        ("openai does not support parameters: ['temperature'], for model=x", "", "temperature"),
        ("Unrecognized request argument supplied: stream_options", "", "stream_options"),
        ("body.stream_options: Extra inputs are not permitted", "", "stream_options"),
        ("Unsupported: include_usage", "stream_options.include_usage", "stream_options"),
        ("property 'seed' is unsupported", "", "seed"),
        ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', "", "seed"),
        ("'n' : number must be at most 1", "", "n"),
        ("Field 'n': Value must be between 1 <= value <= 2, but got 4", "", "n"),
        ("Only one completion choice is allowed", "", "n"),
        ("body -> n\n  Extra inputs are not permitted (type=extra_forbidden)", "", "n"),
        ("Only n=1 is supported, not supported yet", "n", "n"),
        ("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key", "prompt_cache_key"),
        ("Function tools with reasoning_effort are not supported for x.", "reasoning_effort", "reasoning_effort"),
        ("Function tools with reasoning_effort are not supported for x.", "", "reasoning_effort"),
        ("Unknown parameter: 'thinking'.", "thinking", "thinking"),
        ("Unrecognized request argument supplied: thinking", "", "thinking"),
        ("'messages.2' : property 'reasoning_content' is unsupported", "", "reasoning_content"),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "", "reasoning_content"),
        ("Missing `reasoning_content` field in the assistant message at message index 2.", "", "reasoning_content"),
        ("thinking is enabled but reasoning_content is missing in assistant tool call", "", "reasoning_content"),
        ("messages[0].role: unknown variant `developer`, expected one of `system`, `user`", "", SYSTEM_ROLE),
        ("developer is not one of ['system', 'assistant', 'user'] - 'messages.['0].role'", "", SYSTEM_ROLE),
        ("invalid role 'developer', must be one of: system, user, assistant, tool", "", SYSTEM_ROLE),
        ("'messages[0].role' does not support 'system' with this model.", "messages[0].role", SYSTEM_ROLE),
        ("System role not supported", "", SYSTEM_ROLE),
        (("max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided "
         "32000."), "max_tokens", "max_output_tokens=16384"),
        ("Range of max_tokens should be [1, 8192]", "", "max_output_tokens=8192"),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "", "max_output_tokens=8192"),
        (("`max_tokens` must be less than or equal to `40960`, the maximum value for `max_tokens` is less than the "
         "`context_window` for this model"), "max_tokens", "max_output_tokens=40960"),
        ((f"'max_tokens' or 'max_completion_tokens' is too large: 32000. {VLLM} 8192 tokens and your request has 100 "
         "input tokens (32000 > 8192 - 100)."), "", "max_output_tokens=4096"),
        (f"{VLLM} 16384 tokens. However, you requested 32946 tokens (946 in the messages, 32000 in the completion).",
         "", "max_output_tokens=8192"),
        ((f"{VLLM} 8192 tokens. However, you requested 8000 output tokens and your prompt contains at least 193 input "
         "tokens, for a total of at least 8193 tokens."), "", "max_output_tokens=4096"),
        ((f"{VLLM} 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the "
         "completion)."), "", None),
        ("Invalid schema for function 'bash'", "tools[0].function.parameters", None),
        ("models.example/library/x does not support tools", "", None),
        ("This model does not support function calling", "tools", "tools"),
        ("We could not parse the JSON body of your request.", "", None),
        ("", "", None),
    ],
)  # fmt: skip
def test_the_parameter_of_a_refusal_is_found(said: str, param: str, parameter: str | None) -> None:
    assert refused_parameter(said, param) == parameter


@pytest.mark.parametrize(
    "said",
    [
        f"{VLLM} 16384 tokens. However, your messages resulted in 20000 tokens.",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "max_tokens must be at least 1, got -186.",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "Context size has been exceeded.",
        "Requested tokens (2285) exceed context window of 2048",
        "the input length exceeds the context length",
        "Range of input length should be [1, 30720]",
        "Prompt exceeds max length",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Input is too long for requested model.",
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 50000.",
        "You passed 9000 input tokens. However, the model's context length is only 8192 tokens",
    ],
)
def test_too_long_a_conversation_is_told_in_many_words(said: str) -> None:
    assert is_about_context(said, "")


@pytest.mark.parametrize(
    "said", ["Invalid schema for function", "context canceled", "The model is overloaded", "max_tokens is too large"]
)
def test_other_refusals_are_not_about_the_length(said: str) -> None:
    assert not is_about_context(said, "invalid_request_error")


@pytest.mark.parametrize("code", ["context_length_exceeded", "exceed_context_size_error"])
def test_a_code_says_it_as_well(code: str) -> None:
    assert is_about_context("", code)


def test_hostile_words_are_read_in_no_time() -> None:
    for piece in ("max_tokens context length is 1 ", "'n' ", "role ", "unknown parameter ", "1 in the "):
        refused_parameter(piece * 800, "")
        is_about_context(piece * 800, "")


GREEDY = Capabilities(
    other_output_fields=("max_completion_tokens",), seed=True, samples=3, cache_marks=True, system_role="developer"
)
TURN = (
    HELLO,
    AssistantMessage(
        text="",
        tool_calls=(bash(),),
        native=NativeMessage(protocol="openai", model=ACCOUNT, body={"reasoning": "Hm."}),
    ),
    ToolMessage(results=(ToolResult(call_id="call_1", text="a b"),)),
)


@pytest.mark.parametrize(
    "strictness",
    [
        Strictness(refused=frozenset({"max_tokens", "temperature", "seed", "n", "stream_options", "prompt_cache_key"})),
        Strictness(refused=frozenset({"developer"})),
        Strictness(refused=frozenset({"developer", "system"})),
        Strictness(reasoning_back="demanded"),
        Strictness(reasoning_back="refused"),
        Strictness(tools_need_no_effort=True),
    ],
    ids=["many parameters", "a role", "both roles", "reasoning demanded", "reasoning refused", "effort with tools"],
)
@pytest.mark.parametrize("reasoning_field", [None, "reasoning_content"])
def test_what_is_learned_of_refusals_satisfies_the_server_in_the_end(
    strictness: Strictness, reasoning_field: str | None
) -> None:
    capabilities = replace(GREEDY, reasoning_field=reasoning_field)
    with OpenAIServer([Turn(text="All is well.")], strictness=strictness) as server, client(server) as asked:
        for _ in range(10):
            exchange = asked.connection.begin(
                asked.parameters(*TURN, capabilities=capabilities, samples=capabilities.samples, temperature=0.5)
            )
            try:
                for _ in exchange:
                    pass
            except Exception as error:  # noqa: BLE001 - what it means is the question
                failure = WIRE.failure(error, has_begun=exchange.has_begun, key=asked.key)
                assert failure.parameter is not None, failure
                assert not failure.may_be_paid
                after = learned(capabilities, failure.parameter)
                assert after is not None, failure
                capabilities = after
            else:
                break
        assert {message.text for message in exchange.gathered().messages} == {"All is well."}
        assert len(server.requests) == 1
