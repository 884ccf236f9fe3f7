"""A recorded run answers again, and says where another run leaves it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.conversation import AssistantMessage, Usage, UserMessage
from orchestrator.domain.records import request_digest
from orchestrator.errors import ContextTooLong, ModelError, RunStateError
from orchestrator.llm.replay import ReplayModel
from orchestrator.storage.journal import SqliteJournal


@pytest.fixture
def replay(recording: Any, kit: Any) -> ReplayModel:
    return ReplayModel(recording.journal, recorded="offline", context_tokens=kit.CONTEXT_TOKENS)


def test_a_run_with_recorded_replies_has_the_same_candidates(
    replay: ReplayModel, recording: Any, kit: Any, journal: SqliteJournal
) -> None:
    kit.run(replay, recording.repeated_bench(), journal)
    assert kit.candidates(journal) == kit.candidates(recording.journal)


def test_an_unknown_beginning_is_named(replay: ReplayModel, recording: Any) -> None:
    conversation, tools, sampling = recording.heard[0][0]
    with pytest.raises(ModelError, match=r"no recorded conversation begins like this.*seed 5"):
        replay.complete(conversation, tools, replace(sampling, seed=5))


def test_a_changed_answer_is_placed_after_the_last_request_that_agrees(replay: ReplayModel, recording: Any) -> None:
    (conversation, tools, sampling), reply = recording.heard[0]
    changed = conversation.plus(reply.message, UserMessage(text="something else"))
    with pytest.raises(ModelError, match=r"follows i\d/request/0001, but i\d/request/0002 has other answers"):
        replay.complete(changed, tools, sampling)


def test_the_end_of_the_recording_is_named(replay: ReplayModel, recording: Any) -> None:
    (conversation, tools, sampling), reply = recording.heard[-1]
    with pytest.raises(ModelError, match="after which the recording has no request"):
        replay.complete(conversation.plus(reply.message, UserMessage(text="Continue.")), tools, sampling)


def test_words_the_model_never_said_are_named(replay: ReplayModel, recording: Any) -> None:
    conversation, tools, sampling = recording.heard[0][0]
    with pytest.raises(ModelError, match="message 1 is the model's, but no recorded reply"):
        replay.complete(conversation.plus(AssistantMessage(text="never said")), tools, sampling)


def test_a_conversation_that_was_too_long_is_so_again_and_costs_nothing(
    recording: Any, kit: Any, tmp_path: Path
) -> None:
    conversation, tools, sampling = recording.heard[0][0]
    with SqliteJournal(tmp_path / "more.sqlite") as journal:
        for key, record in recording.journal.records():
            journal.put(key, record)
        longer = conversation.plus(UserMessage(text="more and more"))
        digest = request_digest(longer, tools, sampling)
        journal.put("i0/request/9999", {"conversation": digest, "context_too_long": "at most 1000 tokens"})
        replay = ReplayModel(journal, recorded="offline", context_tokens=kit.CONTEXT_TOKENS)
        assert replay.worst_case(longer, tools, sampling) == Usage()
        with pytest.raises(ContextTooLong, match="at most 1000 tokens"):
            replay.complete(longer, tools, sampling)
        assert replay.complete(conversation, tools, sampling) == recording.heard[0][1]


@pytest.mark.parametrize("record", [{"conversation": "sha256:0"}, {"reply": {}}, {"conversation": 5, "reply": {}}])
def test_a_damaged_request_is_named(tmp_path: Path, record: Any) -> None:
    with SqliteJournal(tmp_path / "damaged.sqlite") as journal:
        journal.put("i0/request/0001", record)
        with pytest.raises(RunStateError, match="the record of 'i0/request/0001' is damaged"):
            ReplayModel(journal, recorded="offline", context_tokens=1000)


def test_a_journal_without_requests_cannot_be_replayed(tmp_path: Path) -> None:
    with (
        SqliteJournal(tmp_path / "empty.sqlite") as journal,
        pytest.raises(RunStateError, match="holds no request to 'offline'"),
    ):
        ReplayModel(journal, recorded="offline", context_tokens=1000)
