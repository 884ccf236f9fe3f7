"""Our adapter for OpenAI's protocol against a server that we have not written, and a model that nobody has scripted.

What the model says is worth nothing; what is asserted is that all of it arrives, and what it cost. The server counts
tokens by itself (`/metrics`), apart from the usage in its replies.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.domain.budgets import Account, Budget
from orchestrator.domain.conversation import (
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolMessage,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)
from orchestrator.domain.model_access import Price
from orchestrator.errors import ContextTooLong, LostReply, ModelUnavailable, PrerequisiteError
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.replay import Steps
from orchestrator.search.requests import ModelRequests
from tests.memory_journal import MemoryJournal
from tests.model_servers.base import KEY
from tests.model_servers.llama import LlamaServer, Metered
from tests.slow.conftest import ModelMaker

pytestmark = pytest.mark.slow

HELLO = Conversation(system="You are a poet.", messages=(UserMessage(text="Write a verse about 1729 bins."),))
WRITE = ToolSpec(
    name="write",
    description="Write a file.",
    parameters={
        "type": "object",
        "properties": {"file": {"type": "string"}, "content": {"type": "string"}},
        "required": ["file", "content"],
    },
)
COMMIT = ToolSpec(
    name="commit",
    description="Commit what is written.",
    parameters={"type": "object", "properties": {"description": {"type": "string"}}, "required": ["description"]},
)
TOOLS = (WRITE, COMMIT)
WORK = Conversation(
    system="You improve programs with tools.",
    messages=(UserMessage(text="Write the file program.py, then commit it."),),
)
PRICE = Price(input=Decimal(1), cached_input=Decimal("0.1"), output=Decimal(4))


def sampled(seed: int, most: int = 24) -> Sampling:
    return Sampling(seed=seed, max_output_tokens=most)


def as_metered(usage: Usage) -> Metered:
    return Metered(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
    )


@contextmanager
def metering(server: LlamaServer, used: Usage | list[Reply]) -> Iterator[None]:
    """The server must have counted, in the block, what `used` (a list may still be empty) says of it."""
    before = server.metered()
    yield
    after = server.metered()
    usage = used if isinstance(used, Usage) else sum((reply.usage for reply in used), Usage())
    assert as_metered(usage) == Metered(
        input_tokens=after.input_tokens - before.input_tokens,
        cached_tokens=after.cached_tokens - before.cached_tokens,
        output_tokens=after.output_tokens - before.output_tokens,
    )


def test_it_is_asked_before_any_work_how_much_it_takes(server: LlamaServer, open_model: ModelMaker) -> None:
    model = open_model(server)
    model.check()
    assert model.context_tokens == 4096, "as the server was started, not as the model was trained"


def test_a_wrong_key_is_told_before_any_work_and_never_shown(server: LlamaServer, open_model: ModelMaker) -> None:
    model = open_model(server, key="sk-wrong-canary-51c0")
    with pytest.raises(PrerequisiteError, match="LLAMA_KEY") as before_work:
        model.check()
    with pytest.raises(ModelUnavailable, match="LLAMA_KEY") as at_work:
        model.complete(HELLO, (), sampled(1))
    assert "canary" not in f"{before_work.value} {at_work.value}"


def test_what_is_streamed_is_text_and_costs_what_the_server_counted(
    server: LlamaServer, open_model: ModelMaker
) -> None:
    model = open_model(server, price=PRICE)
    replies: list[Reply] = []
    with metering(server, replies):
        replies.extend(model.complete(HELLO, (), sampled(seed)) for seed in range(3))
    for reply in replies:
        assert reply.message.text
        assert reply.stop in (StopReason.LENGTH, StopReason.END)
        assert not reply.is_estimate
    assert replies[-1].usage.cached_input_tokens > 0, "the server keeps the prompt that it has just read"


def test_no_call_costs_more_than_its_worst_case(server: LlamaServer, open_model: ModelMaker) -> None:
    model = open_model(server, price=PRICE)
    model.check()
    for conversation, tools in ((HELLO, ()), (WORK, TOOLS)):
        worst = model.worst_case(conversation, tools, sampled(5))
        usage = model.complete(conversation, tools, sampled(5)).usage
        assert usage.input_tokens + usage.cached_input_tokens <= worst.input_tokens
        assert usage.output_tokens <= worst.output_tokens
        assert usage.usd is not None
        assert worst.usd is not None
        assert Decimal(0) < usage.usd <= worst.usd


def test_the_same_seed_gives_the_same_text(server: LlamaServer, open_model: ModelMaker) -> None:
    model = open_model(server, seed=True)
    model.complete(HELLO, (), sampled(1))  # reads the prompt; rounding differs once it is kept
    texts = [model.complete(HELLO, (), sampled(seed)).message.text for seed in (7, 7, 8, 9)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_several_samples_of_one_call_are_all_paid_for(server: LlamaServer, open_model: ModelMaker) -> None:
    model = open_model(server, samples=2)
    replies: list[Reply] = []
    with metering(server, replies):
        replies.extend(model.complete_samples(HELLO, (), [sampled(1), sampled(2)]))
    assert len(replies) == 2
    assert all(reply.message.text for reply in replies)


def test_more_samples_than_it_has_slots_are_refused_once(server: LlamaServer, open_model: ModelMaker) -> None:
    notes: list[str] = []
    model = open_model(server, samples=4, notes=notes)
    replies: list[Reply] = []
    with metering(server, replies):
        replies.extend(model.complete_samples(HELLO, (), [sampled(seed) for seed in range(4)]))
    assert len(replies) == 1
    assert model.samples_at_once == 1
    assert len(notes) == 1
    assert "'n'" in notes[0]


def test_tool_calls_come_whole_and_cut_off_and_both_can_be_answered(
    server: LlamaServer, open_model: ModelMaker
) -> None:
    model = open_model(server, seed=True)
    whole = broken = None
    replies: list[Reply] = []
    with metering(server, replies):
        for seed in range(30):
            reply = model.complete(WORK, TOOLS, sampled(seed, most=(20, 90)[seed % 2]))
            replies.append(reply)
            for call in reply.message.tool_calls:
                assert call.id
                assert call.name in {tool.name for tool in TOOLS}, "the server holds the model to its tools"
                if call.arguments is None:
                    assert reply.stop is StopReason.LENGTH
                    assert call.raw_arguments
                    broken = reply
            if reply.stop is StopReason.TOOLS:
                whole = reply
            if whole is not None and broken is not None:
                break
    assert whole is not None
    assert broken is not None
    assert all(call.arguments is not None for call in whole.message.tool_calls)
    for reply in (whole, broken):
        results = tuple(
            ToolResult(call_id=call.id, text="no such file", is_error=call.arguments is None)
            for call in reply.message.tool_calls
        )
        answered = WORK.plus(reply.message, ToolMessage(results=results))
        after = model.complete(answered, TOOLS, sampled(3))
        assert after.usage.output_tokens > 0
        counted = after.usage.input_tokens + after.usage.cached_input_tokens
        assert counted <= model.count_tokens(answered, TOOLS)


def test_a_conversation_that_is_too_long_is_called_that_and_costs_nothing(
    server: LlamaServer, open_model: ModelMaker
) -> None:
    model = open_model(server)
    long = Conversation(system="", messages=(UserMessage(text="bin " * 5000),))
    with metering(server, Usage()), pytest.raises(ContextTooLong, match="4096"):
        model.complete(long, (), sampled(1))


def test_a_reply_that_fills_the_context_is_cut_off_there(log: Path, open_model: ModelMaker) -> None:
    with LlamaServer(log, context_tokens=512, slots=1) as small:
        model = open_model(small)
        almost = Conversation(system="", messages=(UserMessage(text="bin " * 460),))
        replies: list[Reply] = []
        with metering(small, replies):
            replies.append(model.complete(almost, (), sampled(1, most=200)))
    usage = replies[0].usage
    assert replies[0].stop in (StopReason.LENGTH, StopReason.END)
    assert usage.tokens <= 512


def test_the_ledger_says_what_the_server_counted(server: LlamaServer, open_model: ModelMaker) -> None:
    model = open_model(server, price=PRICE, samples=2)
    ledger, journal = Ledger(Budget(usd=Decimal("0.5"))), MemoryJournal()
    requests = ModelRequests(
        model=model,
        steps=Steps(journal),
        ledger=ledger,
        account=Account(role="agent", model=model.name, island=0),
        check=lambda: None,
    )
    before = server.metered()
    threads = [threading.Thread(target=requests.ask, args=(f"i0/r{n}", HELLO, sampled(n))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    requests.ask_samples([f"i0/s{n}" for n in range(3)], HELLO, [sampled(n) for n in range(3)])
    after, spent = server.metered(), ledger.snapshot().spent
    assert as_metered(spent.usage) == Metered(
        input_tokens=after.input_tokens - before.input_tokens,
        cached_tokens=after.cached_tokens - before.cached_tokens,
        output_tokens=after.output_tokens - before.output_tokens,
    )
    assert spent.requests == 6
    assert ledger.snapshot().lost_count == 0
    assert spent.usage.usd is not None
    assert KEY not in "".join(journal.entries.values())


def test_a_reply_that_the_server_took_to_its_grave_is_lost_and_asked_for_again(
    log: Path, open_model: ModelMaker
) -> None:
    with LlamaServer(log, context_tokens=4096, slots=1) as mortal:
        endless, model = open_model(mortal, ignore_eos=True), open_model(mortal, price=PRICE)
        killer = threading.Thread(target=_kill_once_busy, args=(mortal,))
        killer.start()
        with pytest.raises(LostReply, match="paid"):
            endless.complete(HELLO, (), sampled(4, most=3000))
        killer.join()
        reviver = threading.Timer(2.0, mortal.start)
        reviver.start()
        reply = model.complete(HELLO, (), sampled(4))  # refused at first, and tried again until somebody is there
        reviver.join()
        assert as_metered(reply.usage) == mortal.metered(), "one call was made, and none twice"


def _kill_once_busy(server: LlamaServer) -> None:
    while server.is_idle():
        time.sleep(0.05)
    time.sleep(0.5)
    server.kill()
