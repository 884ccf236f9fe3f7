"""An agent whose model is cut off, refuses, only thinks, loses replies, or finds a conversation too long."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    NativeMessage,
    Sampling,
    StopReason,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from orchestrator.errors import LostReply, ModelError, RunStateError
from orchestrator.llm.replay import ReplayModel
from orchestrator.llm.tokens import conversation_tokens
from orchestrator.methods.agentic_evolve import read_history
from orchestrator.search.replay import Mode
from tests.memory_journal import Killed

HANDOFF = "1. nothing failed 2. x is a number 3. x = 70 4. try it"


def asks_for_handoff(conversation: Conversation) -> bool:
    return "handoff with exactly" in getattr(conversation.messages[-1], "text", "")


def diligent(kit: Any) -> Any:
    """An agent that commits one program after the other, padded to fill its context."""

    def agent(conversation: Conversation, sampling: Sampling) -> AssistantMessage:
        if asks_for_handoff(conversation):
            return kit.say(HANDOFF)
        return kit.try_out(sampling.seed % 97, sampling.seed // 97 % 97, "z" * 200)

    return agent


def long_lab(kit: Any, *, provider_tokens: int = 4_500, **settings: Any) -> Any:
    """A run whose provider takes far less than the model's context is said to hold."""
    lab = kit.Lab(diligent(kit), **({"islands": 1, "commits_per_island": 12, "bins": 2} | settings))
    lab.model.provider_tokens = provider_tokens
    return lab


def state(lab: Any) -> dict[str, str]:
    """The journal without announcements and their retractions, whose number tells how often a call was cut off."""
    return {key: text for key, text in lab.journal.entries.items() if not key.endswith(("/sent", "/void"))}


def heard(lab: Any) -> list[str]:
    """What an agent without tool calls was told after its turns."""
    return [m.text for m in lab.conversation(0).messages[1:] if isinstance(m, UserMessage)]


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (StopReason.LENGTH, "reached its maximum length"),
        (StopReason.THOUGHT, "You thought"),
        (StopReason.REFUSAL, "was a refusal"),
    ],
)
def test_a_turn_without_a_call_is_answered_with_its_reason_and_idle_turns_still_end_it(
    kit: Any, stop: StopReason, told: str
) -> None:
    lab = kit.Lab(kit.scripted(), islands=1, idle_turns=3)
    lab.model.stop_of = lambda _: stop
    result = lab.run()
    assert (result.stops, result.requests) == ({0: "idle"}, 3)
    for text in heard(lab):
        assert told in text
        assert text.startswith("[")
    assert len(heard(lab)) == 2


def test_an_agent_cut_off_in_a_tool_call_is_told_so_after_its_results(kit: Any) -> None:
    cut = kit.say(
        "",
        kit.call("write", file="program.py", content=kit.program(20, 20)),
        ToolCall(id="c2", name="commit", arguments=None, raw_arguments='{"descr'),
    )
    lab = kit.Lab(kit.scripted(cut, kit.try_out(30, 30)), islands=1, idle_turns=1)
    lab.model.stop_of = lambda message: StopReason.LENGTH if message == cut else None
    result = lab.run()
    written, committed, *others = lab.answers()
    assert written.startswith('{"file"')
    assert "maximum length" not in written
    assert committed.startswith("error: the arguments of commit are no JSON object")
    assert committed.endswith("and do less in one message.")
    assert not any("maximum length" in text for text in others)
    assert result.evaluations == 1  # and the turn that was cut off was no idle one


def test_an_empty_reply_does_not_become_an_empty_message(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.say(" "), kit.try_out(1, 1)), islands=1, idle_turns=2)
    assert lab.run().evaluations == 1
    assert lab.conversation(0).messages[1] == AssistantMessage(text="(The reply is empty.)")


def test_what_a_model_thought_stays_in_its_conversation(kit: Any) -> None:
    native = NativeMessage(protocol="anthropic", model="fake/model", body={"content": [{"type": "thinking"}]})
    first = replace(kit.try_out(20, 20), reasoning="20 might do", native=native)
    second = AssistantMessage(text="hm", reasoning="or not", native=native)
    lab = kit.Lab(kit.scripted(first, second, kit.try_out(1, 1)), islands=1)
    result = lab.run()
    said = [message for message in lab.conversation(0).messages if isinstance(message, AssistantMessage)]
    assert said[:2] == [first, second]
    assert lab.run(Mode.REPLAY) == result


def test_a_conversation_that_its_provider_finds_too_long_is_handed_off_at_once(kit: Any) -> None:
    lab = long_lab(kit)
    result = lab.run()
    assert (result.stops, result.evaluations) == ({0: "commits"}, 12)
    assert lab.model.refused
    asked = [conversation for conversation, _ in lab.model.asked]
    handoffs = [conversation for conversation in asked if asks_for_handoff(conversation)]
    assert handoffs
    for handoff in handoffs:
        following = asked[asked.index(handoff) + 1]
        assert HANDOFF in following.messages[0].text
        assert isinstance(handoff.messages[-2], ToolMessage)
    assert result.requests == len(asked)  # those that were too long are none
    spent = lab.ledger.snapshot()
    assert (spent.spent.requests, spent.lost_count) == (len(asked), 0)
    assert lab.history.total.requests == len(asked)
    assert lab.history.total.usage == spent.spent.usage


def test_a_handoff_that_is_too_long_loses_exchanges_from_its_end_until_it_fits(kit: Any) -> None:
    lab = long_lab(kit)
    lab.run()
    exchanges = [sum(isinstance(m, AssistantMessage) for m in c.messages) for c in lab.model.refused]
    first = [asks_for_handoff(conversation) for conversation in lab.model.refused].index(True)
    assert exchanges[first - 1] == exchanges[first]  # at first all of it is tried
    handoff = next(c for c, _ in lab.model.asked if asks_for_handoff(c))
    assert sum(isinstance(m, AssistantMessage) for m in handoff.messages) < exchanges[first]


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_resumed_and_replayed_a_run_with_conversations_too_long_takes_the_same_course(
    kit: Any, is_repeatable: bool
) -> None:
    lab = long_lab(kit)
    lab.model.is_repeatable = is_repeatable
    result, spent, refused = lab.run(), lab.ledger.snapshot(), len(lab.model.refused)
    before = dict(lab.journal.entries)
    for mode in (Mode.PERFORM, Mode.REPLAY):
        assert lab.run(mode) == result
        assert lab.ledger.snapshot() == spent
    assert len(lab.model.refused) == refused
    assert lab.journal.entries == before


def test_killed_anywhere_a_run_with_conversations_too_long_comes_to_the_same(kit: Any) -> None:
    settings = {"commits_per_island": 3, "provider_tokens": 2_200}
    undisturbed = long_lab(kit, **settings)
    undisturbed.model.is_repeatable = False
    result, bill = undisturbed.run(), undisturbed.ledger.snapshot()
    assert undisturbed.model.refused
    touches, was_killed = 0, True
    while was_killed:
        lab = long_lab(kit, **settings)
        lab.model.is_repeatable = False
        lab.light(touches)
        try:
            lab.run()
            was_killed = False
        except Killed:
            pass
        lab.light(None)
        assert lab.run() == replace(result, usage=lab.history.total.usage)
        assert state(lab) == state(undisturbed)
        again = lab.ledger.snapshot()
        assert again.lost_count <= 1
        assert again.spent.usage == bill.spent.usage + again.lost.usage
        assert lab.history.total.usage == again.spent.usage
        touches += 1
    assert touches > 40


def test_where_no_handoff_fits_the_island_stops_for_its_context(kit: Any) -> None:
    lab = kit.Lab(diligent(kit), islands=1)
    lab.model.provider_tokens = 10
    result = lab.run()
    assert (result.stops, result.requests) == ({0: "context"}, 0)
    assert len(lab.model.refused) == 2  # the first message, alone and with the request for a handoff
    assert lab.run() == lab.run(Mode.REPLAY) == result
    assert len(lab.model.refused) == 2


def test_last_words_for_which_there_is_no_room_are_not_missed(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(20, 20)), islands=1, commits_per_island=1)
    first = kit.Lab(kit.scripted(kit.try_out(20, 20)), islands=1, commits_per_island=1)
    first.run()
    lab.model.provider_tokens = lab.model.count_tokens(first.model.asked[0][0], lab.tools)
    result = lab.run()
    assert (result.stops, result.requests, len(lab.model.refused)) == ({0: "commits"}, 1, 1)
    assert lab.run() == result


def test_lost_replies_and_errors_of_a_run_are_the_same_in_ledger_and_history(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(1, 1)), islands=1)
    lab.model.is_repeatable = False
    lab.model.failures = [LostReply("broke"), ModelError("no answer")]
    with pytest.raises(ModelError, match="no answer"):
        lab.run()
    assert lab.ledger.snapshot().lost_count == lab.history.total.lost == 1
    lab.model.failures = [LostReply("broke")]
    lab.run()
    snapshot = lab.ledger.snapshot()
    assert snapshot.lost_count == lab.history.total.lost == 2
    assert snapshot.spent.usage == lab.history.total.usage
    assert [key for key in lab.journal.entries if key.startswith("i0/request/0001")] == [
        "i0/request/0001/sent", "i0/request/0001/2/sent", "i0/request/0001/2/void",
        "i0/request/0001/3/sent", "i0/request/0001/4/sent", "i0/request/0001",
    ]  # fmt: skip
    assert lab.run() == lab.run(Mode.REPLAY)
    assert lab.ledger.snapshot() == snapshot


def test_a_run_of_an_earlier_version_whose_records_name_no_account_goes_on(kit: Any) -> None:
    settings = {"commits_per_island": 3, "migration_interval": 2, "requests_per_island": 8, "islands": 2}
    undisturbed = kit.Lab(**settings)
    undisturbed.model.is_repeatable = False
    undisturbed.run()
    for touches in (9, 30):
        lab = kit.Lab(**settings)
        lab.model.is_repeatable = False
        lab.light(touches)
        with pytest.raises(Killed):
            lab.run()
        lab.light(None)
        records = {key: json.loads(text) for key, text in lab.journal.entries.items()}
        for record in records.values():
            record.pop("account", None)
        lab.journal.entries = {key: json.dumps(record) for key, record in records.items()}
        lab.run()
        spent, bill = lab.ledger.snapshot(), undisturbed.ledger.snapshot()
        assert lab.history.commits == undisturbed.history.commits
        assert spent.spent.usage == bill.spent.usage + spent.lost.usage == lab.history.total.usage
        assert spent.by_model["fake/model"].requests == bill.by_model["fake/model"].requests + spent.lost_count


@pytest.mark.parametrize("key", ["i0/request/0001", "i0/request/0001/sent"])
def test_a_damaged_record_of_a_request_is_named(kit: Any, key: str) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(1, 1)), islands=1)
    lab.run()
    lab.journal.entries[key] = json.dumps({"conversation": "sha256:0"})
    with pytest.raises(RunStateError, match=f"the record of '{key}' is damaged"):
        read_history(lab.journal)


@dataclass
class Ensemble:
    """`ports.Ensemble` of two."""

    members: Any
    name: str = "fake/ensemble"
    is_repeatable: bool = False

    @property
    def context_tokens(self) -> int:
        return min(member.context_tokens for member in self.members)

    def member(self, sampling: Sampling) -> Any:
        return self.members[sampling.seed % 2]

    def count_tokens(self, conversation: Conversation, tools: Any) -> int:
        return max(member.count_tokens(conversation, tools) for member in self.members)

    def worst_case(self, conversation: Conversation, tools: Any, sampling: Sampling) -> Any:
        return self.member(sampling).worst_case(conversation, tools, sampling)

    def complete(self, conversation: Conversation, tools: Any, sampling: Sampling) -> Any:
        return self.member(sampling).complete(conversation, tools, sampling)


def ensemble_lab(kit: Any) -> Any:
    lab = kit.Lab(commits_per_island=4, migration_interval=2, requests_per_island=16)
    names = ("fake/one", "fake/other")
    lab.model = Ensemble([replace(kit.Lab().model, name=name, is_repeatable=False) for name in names])
    return lab


def test_an_ensembles_members_answer_and_each_is_on_its_own_account(kit: Any) -> None:
    lab = ensemble_lab(kit)
    result = lab.run()
    snapshot = lab.ledger.snapshot()
    answered = {member.name: len(member.asked) for member in lab.model.members}
    assert sum(answered.values()) == result.requests
    assert {name: spend.requests for name, spend in snapshot.by_model.items()} == answered
    assert min(answered.values()) > 0
    assert set(snapshot.by_role) == {"agent", "analysis", "evaluation"}
    assert lab.history.header["model"] == "fake/ensemble"
    assert lab.run() == lab.run(Mode.REPLAY) == result
    assert lab.ledger.snapshot() == snapshot


def test_an_ensembles_run_is_the_same_wherever_it_was_killed(kit: Any) -> None:
    undisturbed = ensemble_lab(kit)
    result, bill = undisturbed.run(), undisturbed.ledger.snapshot()
    for touches in range(0, 100, 9):
        lab = ensemble_lab(kit)
        lab.light(touches)
        with pytest.raises(Killed):
            lab.run()
        lab.light(None)
        lab.run()
        again = lab.ledger.snapshot()
        assert state(lab) == state(undisturbed)
        assert again.spent.usage.usd == bill.spent.usage.usd + Decimal("0.05") * again.lost_count
        assert lab.history.commits == undisturbed.history.commits
    assert result.evaluations > 0


def test_the_smallest_context_of_an_ensemble_is_the_one_that_conversations_fit_into(kit: Any) -> None:
    lab = ensemble_lab(kit)
    lab.model.members[0].context_tokens = 1000
    assert set(lab.run().stops.values()) == {"context"}


def test_a_recording_of_such_a_run_answers_a_new_one_likewise(kit: Any) -> None:
    def lab() -> Any:
        made = long_lab(kit)
        made.model.counts = conversation_tokens
        made.model.provider_tokens = 2_500
        return made

    recorded, again = lab(), lab()
    recorded.model.is_repeatable = False
    recorded.model.failures = [LostReply("broke")]
    result = recorded.run()
    assert recorded.model.refused
    assert recorded.ledger.snapshot().lost_count == 1
    again.model = ReplayModel(recorded.journal, recorded="fake/model", context_tokens=1_000_000)
    found = again.run()
    assert replace(found, model="", usage=result.usage) == replace(result, model="")
    assert again.history.commits == recorded.history.commits
    refused = [key for key, text in again.journal.entries.items() if "context_too_long" in text]
    assert refused == [key for key, text in recorded.journal.entries.items() if "context_too_long" in text]
