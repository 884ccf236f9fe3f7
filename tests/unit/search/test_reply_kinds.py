"""What replies are, and when one kind of them is worth a word."""

from __future__ import annotations

import pytest

from orchestrator.domain.conversation import AssistantMessage, Reply, StopReason, ToolCall, Usage
from orchestrator.search.reply_kinds import Outcomes, ReplyKind, in_words, kind_of, outcomes_of

READ = ToolCall(id="1", name="read", arguments={})
BASH = ToolCall(id="2", name="bash", arguments={})
HALF = ToolCall(id="3", name="read", arguments=None, raw_arguments='{"a')


def reply(*calls: ToolCall, text: str = "", stop: StopReason = StopReason.END) -> Reply:
    return Reply(message=AssistantMessage(text=text, tool_calls=calls), usage=Usage(), stop=stop)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (reply(READ), ReplyKind.TOOLS),
        (reply(BASH, READ), ReplyKind.TOOLS),
        (reply(BASH), ReplyKind.UNKNOWN_TOOLS),
        (reply(HALF, stop=StopReason.LENGTH), ReplyKind.LENGTH),
        (reply(READ, HALF, stop=StopReason.LENGTH), ReplyKind.TOOLS),
        (reply(text="So", stop=StopReason.LENGTH), ReplyKind.LENGTH),
        (reply(text="No.", stop=StopReason.REFUSAL), ReplyKind.REFUSAL),
        (reply(stop=StopReason.THOUGHT), ReplyKind.THOUGHT),
        (reply(text="Well."), ReplyKind.TEXT),
        (reply(text=" "), ReplyKind.EMPTY),
    ],
)
def test_a_reply_is_of_one_kind(given: Reply, kind: ReplyKind) -> None:
    assert kind_of(given, ("read",)) is kind


def test_replies_and_refused_requests_are_counted_together() -> None:
    assert outcomes_of([reply(READ), reply(READ)], ["too long", "far too long"], ("read",)) == Outcomes(
        counts={ReplyKind.TOOLS: 2, ReplyKind.TOO_LONG: 2}, too_long="far too long"
    )


def test_only_what_is_not_wanted_and_much_of_it_is_said() -> None:
    wanted = (ReplyKind.TOOLS,)
    assert in_words({"tools": 8, "refusal": 2}, None, wanted=wanted) == []
    assert in_words({"tools": 3, "refusal": 10}, None, wanted=wanted) == ["10 of 13 replies were refusals."]
    assert in_words({"unknown-tools": 1}, None, wanted=wanted) == ["1 of 1 reply called only tools that do not exist."]
    (said,) = in_words({"tools": 1, "too-long": 1}, "8192 at most.", wanted=wanted)
    assert said.startswith("1 of 2 requests was too long; the model's server says: 8192 at most; give `context_tokens`")
