"""The offline engine as an agent: it measures, fits, checks, commits, learns from neighbours, and hands over."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from orchestrator.domain.conversation import Conversation, Sampling, StopReason, ToolMessage, ToolResult, UserMessage
from orchestrator.errors import ModelError
from orchestrator.llm.offline import OfflineModel
from orchestrator.storage.journal import SqliteJournal


def test_a_served_engine_finds_the_same_candidates(
    served: Any, recording: Any, kit: Any, journal: SqliteJournal
) -> None:
    kit.run(served, recording.repeated_bench(), journal)
    assert kit.candidates(journal) == kit.candidates(recording.journal)
    assert len(kit.candidates(journal)) == 4


def test_every_analysis_ends_without_an_error(recording: Any) -> None:
    assert recording.bench.printed
    for output in recording.bench.printed.values():
        assert "Traceback" not in output
        assert output.splitlines()[-1].startswith("result: {")
        assert len(output) < 4000


def test_an_island_diagnoses_then_fits_and_checks(recording: Any) -> None:
    purposes = [re.search(r'"purpose": "(\w+)"', script)[1] for script in recording.bench.scripts]
    assert purposes.count("diagnose") == 2
    assert purposes.count("fit") >= 4
    assert purposes.count("check") >= 4


def test_islands_draw_differently(recording: Any, kit: Any) -> None:
    digests = list(kit.candidates(recording.journal).values())
    assert len(set(digests)) == len(digests)


def test_a_script_is_written_once_and_edited_afterwards(recording: Any) -> None:
    calls = [call for _, reply in recording.heard for call in reply.message.tool_calls]
    writes = [call for call in calls if call.name == "write" and call.arguments["file"] == "analysis.py"]
    assert len(writes) == 2  # by two islands
    assert sum(call.name == "edit" for call in calls) > len(writes)


def test_programs_of_neighbours_are_read(recording: Any) -> None:
    calls = [call for _, reply in recording.heard for call in reply.message.tool_calls]
    read = {call.arguments["id"] for call in calls if call.name == "read_commit"}
    assert read <= {"i0-c01", "i1-c01"}
    assert read


def test_two_commits_with_measurements_are_better_than_best_fit_on_sequences_never_seen(
    kit: Any, journal: SqliteJournal
) -> None:
    bench = kit.Bench()
    result = kit.run(OfflineModel(effort=0.2), bench, journal, islands=1)
    best = journal.get("i0/commit/" + result.best_id.removeprefix("i0-"))
    program = journal.get_blob(best["files"]["program.py"]).decode()
    large = kit.Bench(sequences=150)
    before, _ = large.measure(kit.task_view().initial["program.py"].decode(), np.random.default_rng(99))
    after, _ = large.measure(program, np.random.default_rng(99))
    assert after < before - 0.006


def test_without_analyses_it_knows_of_no_script(kit: Any, journal: SqliteJournal) -> None:
    model = kit.Listening(OfflineModel())
    kit.run(model, kit.Bench(), journal, analysis=False, commits_per_island=6)
    calls = [call for _, reply in model.heard for call in reply.message.tool_calls]
    assert {call.name for call in calls} <= {"write", "commit", "read_commit"}
    assert {call.arguments["file"] for call in calls if call.name == "write"} == {"program.py"}
    assert len(kit.candidates(journal)) == 12


def test_an_analysis_that_times_out_is_repeated_with_half_the_iterations(kit: Any, journal: SqliteJournal) -> None:
    bench = kit.Bench(timeouts=1)
    kit.run(OfflineModel(effort=0.3), bench, journal, islands=1, commits_per_island=1)
    fits = [script for script in bench.scripts if '"purpose": "fit"' in script]
    first, second = (int(re.search(r'"generations": (\d+)', script)[1]) for script in fits[:2])
    assert second == first // 2


def test_a_search_goes_on_after_its_context_was_compacted(kit: Any, journal: SqliteJournal) -> None:
    model = kit.Listening(OfflineModel(context_tokens=24_000, effort=0.02))
    bench = kit.Bench()
    kit.run(model, bench, journal, islands=1, commits_per_island=5)
    openings = {request[0].messages[0].text for request, _ in model.heard}
    assert len(openings) > 1
    assert len(kit.candidates(journal)) == 5
    diagnoses = [script for script in bench.scripts if '"purpose": "diagnose"' in script]
    assert len(diagnoses) == 1
    successor = next(opening for opening in openings if "Figures for the successor: " in opening)
    assert "1. " in successor
    assert "4. " in successor


def test_without_room_for_the_conversation_it_refuses(recording: Any) -> None:
    conversation, tools, sampling = recording.heard[-1][0]
    with pytest.raises(ModelError, match="do not fit into the context of 'offline' \\(100\\)"):
        OfflineModel(context_tokens=100).complete(conversation, tools, sampling)


def test_a_reply_longer_than_allowed_is_cut(recording: Any) -> None:
    conversation, tools, _ = recording.heard[0][0]
    reply = OfflineModel(effort=0.02).complete(conversation, tools, Sampling(seed=1, max_output_tokens=10))
    assert reply.stop is StopReason.LENGTH
    assert reply.message.text
    assert not reply.message.tool_calls
    assert reply.usage.output_tokens <= 10


def test_after_three_messages_with_errors_it_ends_its_turn(recording: Any) -> None:
    conversation, tools, sampling = recording.heard[0][0]
    for _ in range(3):
        reply = OfflineModel(effort=0.02).complete(conversation, tools, sampling)
        assert reply.message.tool_calls
        refused = [ToolResult(call_id=call.id, text="error: no", is_error=True) for call in reply.message.tool_calls]
        conversation = conversation.plus(reply.message, ToolMessage(results=tuple(refused)))
    assert not OfflineModel(effort=0.02).complete(conversation, tools, sampling).message.tool_calls


def with_better_neighbours(conversation: Conversation) -> Conversation:
    """The same conversation, with migration candidates in its last answer that are better than anything."""
    *before, last = conversation.messages
    assert isinstance(last, ToolMessage)
    facts = json.loads(last.results[-1].text)
    for entry in facts["migration"]:
        entry["metrics"]["fitness"] = 0.999
    answer = ToolResult(call_id=last.results[-1].call_id, text=json.dumps(facts))
    return Conversation(
        system=conversation.system, messages=(*before, ToolMessage(results=(*last.results[:-1], answer)))
    )


def test_a_program_of_another_model_is_varied_when_it_is_the_best(recording: Any) -> None:
    conversation, tools, sampling = next(
        request for request, reply in recording.heard if any(c.name == "read_commit" for c in reply.message.tool_calls)
    )
    foreign = "import numpy as np\n\n\ndef priority(item, bins):\n    return 2.5 * item - bins * 1.5\n"
    model, conversation = OfflineModel(effort=0.02), with_better_neighbours(conversation)
    asked = model.complete(conversation, tools, sampling).message
    answers = tuple(ToolResult(call_id=call.id, text=foreign) for call in asked.tool_calls)
    reply = model.complete(conversation.plus(asked, ToolMessage(results=answers)), tools, sampling).message
    assert "I vary the best program known" in reply.text
    contents = [c.arguments["content"] for c in reply.tool_calls if c.arguments.get("file") == "program.py"]
    assert contents[0] == foreign, "what is varied is written back first, so that it counts as the parent"
    written = contents[-1]
    assert written != foreign
    assert written.count("\n") == foreign.count("\n")


def test_what_a_user_says_in_between_changes_no_fact(recording: Any) -> None:
    conversation, tools, sampling = recording.heard[0][0]
    model = OfflineModel(effort=0.02)
    plain = model.complete(conversation, tools, sampling).message
    later = model.complete(conversation.plus(UserMessage(text="Continue.")), tools, sampling).message
    assert [call.name for call in plain.tool_calls] == [call.name for call in later.tool_calls]
