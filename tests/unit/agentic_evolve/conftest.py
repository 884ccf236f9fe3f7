"""A laboratory for AgenticEvolve: every port as a small deterministic fake, and a run around them."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.domain.candidates import FileTree
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from orchestrator.domain.outcomes import Ending, Outcome
from orchestrator.domain.records import to_record
from orchestrator.domain.tasks import TaskView
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.errors import ContextTooLong
from orchestrator.methods.agentic_evolve import History, Progress, RunPorts, RunResult, Settings, read_history, texts
from orchestrator.methods.agentic_evolve.run import run_agentic_evolve
from orchestrator.ports import AnalysisResult
from orchestrator.runtime.ledger import Ledger
from orchestrator.runtime.workers import CancelToken
from orchestrator.search.replay import Mode
from tests.memory_journal import Fuse, MemoryJournal

OUTCOME = Outcome(
    ending=Ending.OK,
    exit_code=0,
    wall_seconds=0.1,
    cpu_seconds=0.1,
    memory_peak_bytes=1000,
    output=b"withheld",
    output_truncated=False,
)
Agent = Callable[[Conversation, Sampling], AssistantMessage]


def verdict_of(payload: FileTree) -> Verdict:
    """The program's text sets x and y; the best is x = 70, y = 20. A program that says so raises."""
    text = payload["program.py"].decode()
    failure, metrics = None, None
    if "raise" in text:
        failure = Failure(ending=Ending.ERROR, exception="ValueError", file="program.py", line=1)
    else:
        x, y = (int(re.search(rf"{name} = (\d+)", text)[1]) for name in "xy")
        metrics = {"fitness": 100.0 - abs(x - 70) - abs(y - 20), "size": x / 100, "shape": y / 100, "excess": 1 / 3}
    return Verdict(split="hidden", metrics=metrics, failure=failure, secret=True, outcome=OUTCOME)


@dataclass
class Bench:
    """`ports.Evaluator` and `ports.Analyst` in one; notes what was really performed, and can fail."""

    fuse: Fuse = field(default_factory=Fuse)
    performed: list[str] = field(default_factory=list)
    failing: dict[str, Exception] = field(default_factory=dict)
    delays: Mapping[str, float] = field(default_factory=dict)
    """Seconds by prefix of the attempt id."""
    evaluations: Callable[[FileTree], Verdict] = verdict_of
    output: bytes = b"printed\n"
    analysed: list[FileTree] = field(default_factory=list)

    def evaluate(self, payload: FileTree, *, run_id: str, attempt_id: str) -> Verdict:
        self._attempt(run_id, attempt_id)
        return self.evaluations(payload)

    def analyse(self, files: FileTree, *, run_id: str, attempt_id: str) -> AnalysisResult:
        self._attempt(run_id, attempt_id)
        self.analysed.append(files)
        return AnalysisResult(output=self.output, omitted_bytes=0, outcome=OUTCOME)

    def _attempt(self, run_id: str, attempt_id: str) -> None:
        assert run_id == "run-1"
        self.fuse.touch()
        for prefix, seconds in self.delays.items():
            if attempt_id.startswith(prefix):
                time.sleep(seconds)
        if attempt_id in self.failing:
            raise self.failing[attempt_id]
        self.performed.append(attempt_id)
        self.fuse.touch()


class PlainDisclosure:
    """Everything but the outcome; metrics with four digits."""

    def verdict(self, verdict: Verdict) -> Mapping[str, Any]:
        metrics = None if verdict.metrics is None else {k: float(f"{v:.4g}") for k, v in verdict.metrics.items()}
        return {"metrics": metrics, "failure": None if verdict.failure is None else to_record(verdict.failure)}

    def analysis(self, result: AnalysisResult) -> str:
        return result.output.decode(errors="replace")


@dataclass
class Model:
    """`ports.LanguageModel` around a pure function; a token is four characters, a call costs a cent."""

    agent: Agent
    context_tokens: int = 1_000_000
    is_repeatable: bool = True
    name: str = "fake/model"
    fuse: Fuse = field(default_factory=Fuse)
    asked: list[tuple[Conversation, Sampling]] = field(default_factory=list)
    refused: list[Conversation] = field(default_factory=list)
    failing: Exception | None = None
    failures: list[Exception] = field(default_factory=list)
    """What the calls to come raise, one after the other."""
    provider_tokens: int | None = None
    """From which length on its provider finds a conversation too long; None: never."""
    stop_of: Callable[[AssistantMessage], StopReason | None] = lambda _: None
    """Why a message ended; None: because it was complete."""
    counts: Callable[[Conversation, Sequence[ToolSpec]], int] | None = None
    """Tokens of a conversation, where they are not a quarter of its characters."""

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        if self.counts is not None:
            return self.counts(conversation, tools)
        parts = [conversation.system, *(repr(message) for message in conversation.messages), *map(repr, tools)]
        return sum(map(len, parts)) // 4

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        del conversation, tools
        return Usage(input_tokens=2000, output_tokens=min(1000, sampling.max_output_tokens), usd=Decimal("0.05"))

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        self.fuse.touch()
        if self.failing is not None:
            raise self.failing
        if self.failures:
            raise self.failures.pop(0)
        size = self.count_tokens(conversation, tools)
        if self.provider_tokens is not None and size > self.provider_tokens:
            self.refused.append(conversation)
            raise ContextTooLong(f"this model's maximum context length is {self.provider_tokens} tokens")
        self.asked.append((conversation, sampling))
        message = self.agent(conversation, sampling)
        usage = Usage(input_tokens=100, output_tokens=10, usd=Decimal("0.01"))
        stop = self.stop_of(message) or (StopReason.TOOLS if message.tool_calls else StopReason.END)
        self.fuse.touch()
        return Reply(message=message, usage=usage, stop=stop)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call-{name}", name=name, arguments=arguments)


def say(text: str = "", *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(text=text, tool_calls=calls)


def program(x: int, y: int) -> str:
    return f"x = {x}\ny = {y}\n"


def try_out(x: int, y: int, description: str = "an attempt") -> AssistantMessage:
    """One message that writes a program and commits it."""
    return say("", call("write", file="program.py", content=program(x, y)), call("commit", description=description))


def island_of(conversation: Conversation) -> int:
    return int(re.search(r'"island": (\d+), "islands"', conversation.messages[0].text)[1])


def turn_of(conversation: Conversation) -> int:
    """How many messages the agent has written in this conversation."""
    return sum(isinstance(message, AssistantMessage) for message in conversation.messages)


def results_of(conversation: Conversation) -> list[str]:
    """The last tool results."""
    last = conversation.messages[-1]
    return [result.text for result in last.results] if isinstance(last, ToolMessage) else []


def feedbacks_of(conversation: Conversation) -> list[dict[str, Any]]:
    """All answers to commits in a conversation."""
    texts = [r.text for m in conversation.messages if isinstance(m, ToolMessage) for r in m.results]
    return [json.loads(text) for text in texts if text.startswith('{"commit"')]


def scripted(*messages: AssistantMessage, islands: Mapping[int, Sequence[AssistantMessage]] | None = None) -> Agent:
    """An agent that says these messages in order, then nothing but text; `islands` gives some their own script."""

    def agent(conversation: Conversation, sampling: Sampling) -> AssistantMessage:
        del sampling
        script = (islands or {}).get(island_of(conversation), messages)
        turn = turn_of(conversation)
        return script[turn] if turn < len(script) else say("nothing more to do")

    return agent


def searcher(conversation: Conversation, sampling: Sampling) -> AssistantMessage:
    """An agent that does a bit of everything, drawn from the seed and what it was told."""
    last, draw = conversation.messages[-1], sampling.seed
    if isinstance(last, UserMessage) and "handoff" in last.text and turn_of(conversation):
        return say("1. none 2. none 3. x matters 4. go on")
    feedbacks = feedbacks_of(conversation)
    offered = [line["id"] for line in feedbacks[-1].get("migration", [])] if feedbacks else []
    if feedbacks and feedbacks[-1]["notice"] is not None and draw % 8:
        return say("x should be about 70")
    if offered and draw % 2 == 0:
        return say("", call("read_commit", id=offered[draw % len(offered)]), call("read_commit", id="i9-c99"))
    repertoire = {
        0: say("let me think"),
        1: say("", ToolCall(id="c", name="write", arguments=None, raw_arguments="{"), call("dance")),
        2: say("", call("write", file="analysis.py", content=f"print({draw})"), call("run_analysis")),
        3: say("", call("run_analysis"), call("run_analysis")),
        4: say("", call("write", file="program.py", content="raise"), call("commit", description="fails")),
    }
    return repertoire.get(draw % 11, try_out(draw // 11 % 13 * 8, draw // 200 % 13 * 8, f"draw {draw % 1000}"))


class Lab:
    """A run and everything around it; `resumed` is a new process on the same journal."""

    def __init__(self, agent: Agent = searcher, **settings: Any) -> None:
        self.settings = Settings(**({"seed": 7, "analyses_per_commit": 3} | settings))
        self.task = TaskView(
            name="toy",
            description="Find the numbers. Braces {like these} and $signs are text.",
            initial=FileTree({"program.py": program(10, 10).encode()}),
            entry="program.py",
            fitness="fitness",
            features=("size", "shape"),
            has_public_data=False,
        )
        self.model: Any = Model(agent)
        self.bench = Bench()
        self.journal: Any = MemoryJournal()
        self.per_island = Budget()
        self.ledger = Ledger(Budget(), per_island=self.per_island)
        self.events: list[Progress] = []
        self.cancel = CancelToken()

    def run(self, mode: Mode = Mode.PERFORM) -> RunResult:
        self.ledger = Ledger(Budget(), per_island=self.per_island)
        self.events = []
        return run_agentic_evolve(
            run_id="run-1",
            settings=self.settings,
            task=self.task,
            ports=self.ports(),
            cancel=self.cancel,
            on_event=self.events.append,
            mode=mode,
        )

    def ports(self) -> RunPorts:
        return RunPorts(
            model=self.model,
            evaluator=self.bench,
            analyst=self.bench if self.settings.analysis else None,
            disclosure=PlainDisclosure(),
            journal=self.journal,
            ledger=self.ledger,
        )

    def light(self, touches: int | None) -> None:
        """Let everything share one fuse that burns through after this many touches; None: never."""
        fuse = Fuse(touches)
        self.journal.fuse = self.bench.fuse = fuse
        for model in getattr(self.model, "members", [self.model]):
            model.fuse = fuse

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return texts.tool_specs(self.settings, self.task)

    @property
    def history(self) -> History:
        return read_history(self.journal)

    def conversation(self, island: int) -> Conversation:
        """The last one that an island's model was asked with."""
        return [asked for asked, _ in self.model.asked if island_of(asked) == island][-1]

    def answers(self, island: int = 0) -> list[str]:
        """All tool results an island's agent has seen in its last conversation."""
        messages = self.conversation(island).messages
        return [result.text for message in messages if isinstance(message, ToolMessage) for result in message.results]

    def feedbacks(self, island: int = 0) -> list[dict[str, Any]]:
        return feedbacks_of(self.conversation(island))


@pytest.fixture
def kit() -> ModuleType:
    """This module, for tests cannot import each other."""
    return sys.modules[__name__]
