"""A language model for tests of answering: it reads our messages by their contract, and says the lines of a script."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    Reply,
    Sampling,
    StopReason,
    ToolCall,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.memory_journal import Fuse

_FENCE = re.compile(r"`{3,}")


@dataclass(frozen=True)
class Request:
    """A text of ours taken apart, as a model that knows the contract would; headings count outside of fences only."""

    title: str
    sections: Mapping[str, str]
    turn: int
    """How often the model has answered in this conversation before."""


def read_sections(text: str) -> tuple[str, dict[str, str]]:
    """(what stands before the first section, section to the content of its block)."""
    sections: dict[str, str] = {}
    head: list[str] = []
    name, fence, body = "", "", list[str]()
    for line in text.split("\n"):
        if fence:
            if line == fence:
                assert name not in sections
                sections[name], fence = "\n".join(body), ""
            else:
                body.append(line)
        elif line.startswith("## "):
            name = line[3:]
        elif name and (opening := _FENCE.match(line)):
            fence, body = opening[0], []
        elif not name:
            head.append(line)
    assert not fence
    return "\n".join(head), sections


def read_request(conversation: Conversation) -> Request:
    """The last thing we said; after tools' results it is the title that the conversation began with."""
    said = [message for message in conversation.messages if isinstance(message, UserMessage)]
    head, sections = read_sections(said[-1].text)
    turn = sum(isinstance(message, AssistantMessage) for message in conversation.messages)
    return Request(title=head.strip().removeprefix("# "), sections=sections, turn=turn)


def fenced(sql: str) -> str:
    return f"Some reasoning.\n\n```sql\n{sql}\n```\n"


def call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(id=f"call-{name}", name=name, arguments=arguments)


@dataclass(frozen=True)
class Ended:
    """A message that ended for a reason of its own."""

    message: AssistantMessage
    stop: StopReason


Said = str | AssistantMessage | Ended | Exception
Script = Callable[[Request], Said] | Said


@dataclass
class ScriptedModel:
    """`ports.LanguageModel` that says, for each title, the next line of a script; a token is four characters."""

    scripts: dict[str, Sequence[Script]]
    """The n-th line answers the n-th request under a title within a conversation; the last one answers all further."""
    name: str = "fake/answerer"
    context_tokens: int = 1_000_000
    is_repeatable: bool = True
    is_priced: bool = True
    """Whether replies tell what they cost."""
    fuse: Fuse = field(default_factory=Fuse)
    asked: list[tuple[Request, Conversation, Sampling]] = field(default_factory=list)
    tools: list[tuple[ToolSpec, ...]] = field(default_factory=list)
    before: Callable[[Request], object] = lambda _: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> int:
        parts = [conversation.system, *map(repr, conversation.messages), *(tool.name for tool in tools)]
        return sum(map(len, parts)) // 4

    def worst_case(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Usage:
        size = self.count_tokens(conversation, tools)
        return Usage(input_tokens=size, output_tokens=sampling.max_output_tokens, usd=Decimal("0.05"))

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        self.fuse.touch()
        request = read_request(conversation)
        self.before(request)
        with self.lock:
            self.asked.append((request, conversation, sampling))
            self.tools.append(tuple(tools))
        before = [read_request(_until(conversation, n)).title for n in _replies(conversation)]
        lines = self.scripts[request.title]
        line = lines[min(before.count(request.title), len(lines) - 1)]
        said = line(request) if callable(line) else line
        if isinstance(said, Exception):
            raise said
        message, ended = taken_apart(said)
        usage = Usage(
            input_tokens=self.count_tokens(conversation, tools) - 10,
            cached_input_tokens=10,
            output_tokens=len(message.text),
            usd=Decimal("0.01") if self.is_priced else None,
        )
        self.fuse.touch()
        stop = ended or (StopReason.TOOLS if message.tool_calls else StopReason.END)
        return Reply(message=message, usage=usage, stop=stop)

    @property
    def titles(self) -> list[str]:
        """What was asked, in order."""
        return [request.title for request, _, _ in self.asked]


def taken_apart(said: str | AssistantMessage | Ended) -> tuple[AssistantMessage, StopReason | None]:
    """The message, and why it ended where it says so."""
    if isinstance(said, Ended):
        return said.message, said.stop
    return (AssistantMessage(text=said) if isinstance(said, str) else said), None


def ended(stop: StopReason, text: str = "", *calls: ToolCall) -> Ended:
    return Ended(AssistantMessage(text=text, tool_calls=calls), stop)


def _replies(conversation: Conversation) -> list[int]:
    return [n for n, message in enumerate(conversation.messages) if isinstance(message, AssistantMessage)]


def _until(conversation: Conversation, end: int) -> Conversation:
    return Conversation(system=conversation.system, messages=conversation.messages[:end])
