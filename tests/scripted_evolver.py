"""Language models for RoboPhD's run: an evolver that takes scripted turns, and an answerer as good as its briefing.

An answer is right where the package's instructions name the skill that the question asks for, and its analysis the
table; so what a package is worth follows from what an evolver wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage, Manifest, manifest_bytes
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
from orchestrator.methods.robophd.naive import naive_package
from tests.answering_lab import ANALYSE, REPAIR, VERIFY, WRITE
from tests.evolution_world import right_query
from tests.scripted_answerer import Ended, ScriptedModel, fenced, read_request, read_sections, taken_apart

WRONG = "SELECT 1 AS one, 2 AS two"
Turn = AssistantMessage | str | Ended | Exception | Callable[[Conversation], AssistantMessage]


class SkilledAnswerer(ScriptedModel):
    """Answers right where the instructions have the skill and the analysis has the table; approves of every result."""

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        self.fuse.touch()
        request = read_request(conversation)
        self.before(request)
        with self.lock:
            self.asked.append((request, conversation, sampling))
        text = {VERIFY: "CORRECT", REPAIR: "", ANALYSE: "There are tables."}.get(request.title, "")
        if request.title == WRITE:
            text = fenced(self._query(conversation, request.sections["Question"]))
        usage = Usage(
            input_tokens=self.count_tokens(conversation, tools),
            output_tokens=len(text),
            usd=Decimal("0.01") if self.is_priced else None,
        )
        self.fuse.touch()
        return Reply(message=AssistantMessage(text=text), usage=usage, stop=StopReason.END)

    def _query(self, conversation: Conversation, question: str) -> str:
        _, known = read_sections(conversation.system)
        skills = {"none", *known["Instructions"].rpartition("Skills:")[2].split()}
        right = right_query(question)
        has_table = right.split()[3] in known.get("Database analysis", "")
        return right if has_table and question.rpartition("Skill: ")[2].rstrip(".") in skills else WRONG


class ScriptedEvolver(ScriptedModel):
    """Takes, as the n-th turn of an iteration's conversation, the n-th of its turns; then it has nothing to say."""

    turns: Mapping[int, Sequence[Turn]]
    conversations: list[Conversation]
    samplings: list[Sampling]

    def complete(self, conversation: Conversation, tools: Sequence[ToolSpec], sampling: Sampling) -> Reply:
        self.fuse.touch()
        with self.lock:
            self.conversations.append(conversation)
            self.samplings.append(sampling)
            self.tools.append(tuple(tools))
        number = sum(isinstance(message, AssistantMessage) for message in conversation.messages)
        turns = self.turns.get(iteration_of(conversation), ())
        turn: Turn = turns[number] if number < len(turns) else "I do not know."
        said = turn(conversation) if callable(turn) else turn
        if isinstance(said, Exception):
            raise said
        message, ended = taken_apart(said)
        usage = Usage(
            input_tokens=self.count_tokens(conversation, tools),
            output_tokens=len(repr(message)),
            usd=Decimal("0.02") if self.is_priced else None,
        )
        self.fuse.touch()
        stop = ended or (StopReason.TOOLS if message.tool_calls else StopReason.END)
        return Reply(message=message, usage=usage, stop=stop)


def evolver(turns: Mapping[int, Sequence[Turn]], **fields: Any) -> ScriptedEvolver:
    """Iteration to its turns."""
    model = ScriptedEvolver({}, name="fake/evolver", **fields)
    model.turns, model.conversations, model.samplings = turns, [], []
    return model


def first_sections(conversation: Conversation) -> dict[str, str]:
    """Of the first message."""
    first = conversation.messages[0]
    assert isinstance(first, UserMessage)
    return read_sections(first.text)[1]


def iteration_of(conversation: Conversation) -> int:
    """Which iteration makes a package."""
    return int(json.loads(first_sections(conversation)["Last iteration"])["iteration"]) + 1


def calls(*wanted: ToolCall) -> AssistantMessage:
    return AssistantMessage(text="", tool_calls=wanted)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call-{name}-{len(repr(arguments))}", name=name, arguments=arguments)


def write(file: str, content: str) -> ToolCall:
    return call("write", file=file, content=content)


def finish(description: str = "A package.") -> ToolCall:
    return call("finish", description=description)


def instructions(*skills: str, note: str = "") -> str:
    return f"Answer with one query. {note}\nSkills: {' '.join(skills)}\n"


def naive_text(file: str) -> str:
    return naive_package().tree[file].decode()


def made(*skills: str, note: str = "", description: str = "") -> AssistantMessage:
    """A whole package in one turn: the naive tool, and instructions with skills."""
    return calls(
        write("reasoning.md", f"I add the skills {skills}. {note}"),
        write("tools/analyze.py", naive_text("tools/analyze.py")),
        write("eval_instructions.md", instructions(*skills, note=note)),
        write("agent.json", naive_text("agent.json")),
        finish(description or f"has {' '.join(skills) or 'nothing'}"),
    )


def revised(*skills: str, note: str = "", description: str = "") -> AssistantMessage:
    """Other instructions, handed in."""
    return calls(
        write("eval_instructions.md", instructions(*skills, note=note)),
        finish(description or f"revised: {' '.join(skills)}"),
    )


def skilled_package(*skills: str, note: str = "") -> AgentPackage:
    """A package with skills."""
    return AgentPackage.load(
        {
            "agent.json": manifest_bytes(Manifest(command=("tools/analyze.py",), output="tool_output/schema.txt")),
            "eval_instructions.md": instructions(*skills, note=note).encode(),
            "tools/analyze.py": naive_text("tools/analyze.py").encode(),
        }
    )


def results_of(conversation: Conversation) -> list[tuple[str, str, bool]]:
    """(tool, text, is_error) of every call there was, in order."""
    found, asked = [], list[ToolCall]()
    for message in conversation.messages:
        if isinstance(message, AssistantMessage):
            asked = list(message.tool_calls)
        elif isinstance(message, ToolMessage):
            found += [(c.name, r.text, r.is_error) for c, r in zip(asked, message.results, strict=True)]
    return found
