"""Compaction: asked for, forced, and what survives it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.domain.conversation import AssistantMessage, Conversation, Sampling, UserMessage

HANDOFF = "1. nothing failed 2. x is a number 3. x = 70 4. try it"


def diligent(kit: Any, *, obeys: bool) -> Any:
    """An agent that commits one program after the other, padded to fill its context."""

    def agent(conversation: Conversation, sampling: Sampling) -> AssistantMessage:
        last = conversation.messages[-1]
        if isinstance(last, UserMessage) and "handoff with exactly" in last.text:
            return kit.say(HANDOFF, kit.call("commit", description="ignored"))
        feedbacks = kit.feedbacks_of(conversation)
        if obeys and feedbacks and feedbacks[-1]["notice"]:
            return kit.say("I believe in x = 70")
        return kit.try_out(sampling.seed % 97, sampling.seed // 97 % 97, "z" * 200)

    return agent


def compacted_lab(kit: Any, *, obeys: bool = True, **settings: Any) -> Any:
    lab = kit.Lab(diligent(kit, obeys=obeys), islands=1, commits_per_island=25, bins=2, **settings)
    lab.model.context_tokens = 8_000
    return lab


def share(lab: Any, conversation: Conversation) -> float:
    return lab.model.count_tokens(conversation, lab.tools) / lab.model.context_tokens


def handoffs(lab: Any) -> list[Conversation]:
    return [asked for asked, _ in lab.model.asked if "handoff with exactly" in getattr(asked.messages[-1], "text", "")]


def test_from_seventy_per_cent_on_the_next_answer_to_a_commit_asks_to_end_the_turn(kit: Any) -> None:
    lab = compacted_lab(kit)
    result = lab.run()
    assert result.stops == {0: "commits"}
    assert handoffs(lab)
    for request in handoffs(lab):
        *earlier, ending, question = request.messages
        assert ending == kit.say("I believe in x = 70")
        assert question == UserMessage(text=question.text)
        notices = [feedback["notice"] for feedback in kit.feedbacks_of(request)]
        assert notices[-1].startswith("[context limit]")
        assert set(notices[:-1]) == {None}
        before_the_answer = Conversation(system=request.system, messages=tuple(earlier[:-2]))
        assert share(lab, before_the_answer) < 0.9
        assert share(lab, Conversation(system=request.system, messages=tuple(earlier))) >= 0.7


def test_at_ninety_per_cent_the_turn_is_cancelled(kit: Any) -> None:
    lab = compacted_lab(kit, obeys=False)
    assert lab.run().evaluations == 25
    assert handoffs(lab)
    for asked, _ in lab.model.asked:
        if asked not in handoffs(lab):
            assert share(lab, asked) < 0.9
    for request in handoffs(lab):
        assert share(lab, request) >= 0.9
        assert not isinstance(request.messages[-2], AssistantMessage)


def test_a_new_conversation_begins_with_the_handoff_the_files_and_the_state(kit: Any) -> None:
    lab = compacted_lab(kit, obeys=False)
    lab.run()
    position = [asked for asked, _ in lab.model.asked].index(handoffs(lab)[0])
    before, after = lab.model.asked[position][0], lab.model.asked[position + 1][0]
    assert after.system == before.system
    (message,) = after.messages
    last = kit.feedbacks_of(before)[-1]
    facts = json.loads(message.text.splitlines()[-1])
    assert HANDOFF in message.text
    committed = next(entry for entry in lab.history.commits if entry.id == last["commit"])
    assert committed.candidate.payload["program.py"].decode() in message.text
    assert "analysis.py does not exist yet." in message.text
    assert facts["latest_feedback"] == {name: last[name] for name in ("commit", "duplicate_of", "metrics", "failure")}
    assert (facts["island_best"], facts["grid"]) == (last["island_best"], last["grid"])
    assert facts["budget"] == last["budget"] | {"requests_left": last["budget"]["requests_left"] - 1}
    assert (facts["island"], facts["islands"]) == (0, 1)


def test_handoffs_are_requests_and_their_tool_calls_are_not_carried_out(kit: Any) -> None:
    lab = compacted_lab(kit, obeys=False)
    result = lab.run()
    assert result.requests == len(lab.model.asked) == 25 + 1 + len(handoffs(lab))
    assert result.evaluations == 25


def test_commits_shown_before_a_compaction_can_still_be_read_after_it(kit: Any) -> None:
    lab = compacted_lab(kit)
    first = diligent(kit, obeys=True)

    def agent(conversation: Conversation, sampling: Sampling) -> AssistantMessage:
        if HANDOFF in conversation.messages[0].text and kit.turn_of(conversation) == 0:
            return kit.say("", kit.call("read_commit", id="i0-c01"))
        return first(conversation, sampling)

    lab.model.agent = agent
    lab.run()
    committed = next(entry for entry in lab.history.commits if entry.id == "i0-c01")
    assert lab.answers(0)[0] == committed.candidate.payload["program.py"].decode()


def test_a_request_to_end_the_turn_is_no_idle_turn(kit: Any) -> None:
    assert compacted_lab(kit, idle_turns=1).run().stops == {0: "commits"}


def test_an_exchange_that_leaves_no_room_for_the_handoff_is_left_out_of_it(kit: Any) -> None:
    read = kit.say(
        "", kit.call("write", file="program.py", content="# " + "x" * 60_000), *[kit.call("read", file="program.py")]
    )
    shrink = kit.try_out(50, 50)

    def agent(conversation: Conversation, sampling: Sampling) -> AssistantMessage:
        del sampling
        if "handoff with exactly" in getattr(conversation.messages[-1], "text", ""):
            return kit.say(HANDOFF)
        return [shrink, read][kit.turn_of(conversation)] if kit.turn_of(conversation) < 2 else kit.say("")

    lab = kit.Lab(agent, islands=1)
    lab.model.context_tokens = 12_000
    result = lab.run()
    (request,) = handoffs(lab)
    assert share(lab, request) < 1
    assert len(request.messages) == 4  # first message, one exchange, question
    assert result.stops == {0: "context"}  # the program the agent wrote does not fit into a new conversation
    assert result.best_id == "i0-c01"


def test_a_context_that_is_too_small_for_the_task_stops_the_island_before_any_request(kit: Any) -> None:
    lab = kit.Lab(islands=2)
    lab.model.context_tokens = 1000
    result = lab.run()
    assert (result.stops, result.requests) == ({0: "context", 1: "context"}, 0)


@pytest.mark.parametrize("obeys", [True, False])
def test_compactions_survive_a_resume(kit: Any, obeys: bool) -> None:
    lab = compacted_lab(kit, obeys=obeys)
    result = lab.run()
    asked = len(lab.model.asked)
    assert lab.run() == result
    assert len(lab.model.asked) == asked
