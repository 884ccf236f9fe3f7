"""What a run is to an evolver, in small: a pool, contests, a draft, and tools that really run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.errors import InputError
from orchestrator.llm.offline.evolver import respond_evolver
from orchestrator.llm.offline.evolver.notebook import Notebook, read_notebook
from orchestrator.llm.offline.evolver.plans import MANIFEST
from orchestrator.llm.offline.evolver.sections import Section, cut_sections, library, stitch
from orchestrator.llm.offline.sql.instructions import conventions_in
from orchestrator.sql.quoting import data_block, json_line

TOOL_NAMES = ("read", "write", "edit", "read_package", "read_errors", "try_tool", "finish")
TOOLS = tuple(ToolSpec(name=name, description="", parameters={}) for name in TOOL_NAMES)
NAIVE = {
    "agent.json": '{"version": 1, "command": ["tools/analyze.py"], "output": "stdout"}',
    "eval_instructions.md": "# Answering\n\n- Answer with one SQLite query.\n- Keep it simple.\n",
    "tools/analyze.py": "import sqlite3\nprint('nothing is marked here')\n",
}
FOREIGN = """\
# section: trends (years=5)
TRENDS_YEARS = 5


def section_trends(connection, schema):
    return [f"- over {TRENDS_YEARS} years"]
# end of section"""
"""A section as another author would write it."""
LIMIT = "For a superlative (highest, most, oldest), sort with ORDER BY and keep one row with LIMIT 1."
TIES = {"question": "Who is the oldest?", "sql": "SELECT n FROM t ORDER BY age DESC LIMIT 1"}
"""What an error report holds where a rule for ties could have helped."""
OTHER_VALUES = ("the only row differs",)


def report(
    *difference: str,
    sql: str = "SELECT first_name, count(*) FROM t",
    rows: int = 1,
    status: str = "ok",
    error: str = "",
) -> dict[str, Any]:
    """An error report."""
    result = {"status": status, "error": error, "columns": ["a"], "rows": [[1]] * rows, "row_count": rows}
    return {
        "question": "What is the name of each?",
        "evidence": "",
        "sql": sql,
        "result": result,
        "difference": list(difference),
    }


def package(
    sections: Sequence[Section] = (),
    rules: Sequence[str] = (),
    *,
    tool: str | None = None,
) -> dict[str, str]:
    """A package with some sections of the library, or with another tool, and rules."""
    listed = "".join(f"- {rule}\n" for rule in rules)
    return {
        "agent.json": MANIFEST,
        "eval_instructions.md": f"# How to answer\n\n## Rules\n\n{listed}",
        "reasoning.md": "# Reasoning\n",
        "tools/analyze.py": stitch(list(sections) or [library()["ddl"]], max_bytes=50_000) if tool is None else tool,
    }


@dataclass(kw_only=True)
class Host:
    """Answers an evolver's calls. Databases are files; without any, every trial of a tool is fine."""

    pool: dict[str, dict[str, str]] = field(default_factory=lambda: {"naive": dict(NAIVE)})
    accuracy: dict[str, float] = field(default_factory=dict)
    """Of the last contest; 0.5 where nothing is said."""
    ratings: dict[str, float] = field(default_factory=dict)
    errors: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By package; empty: each has one with other values."""
    strategy: str = "cross-pollination"
    papers: str = ""
    databases: dict[str, Path] = field(default_factory=lambda: {"shop": Path("/nowhere"), "zoo": Path("/nowhere")})
    token_budget: int = 200_000
    requests: int = 80
    scripted_trials: list[dict[str, Any]] = field(default_factory=list)
    """Answers to the first trials."""
    folder: Path | None = None
    """Where tools are run; None: they are not."""
    tools: tuple[ToolSpec, ...] = TOOLS
    draft: dict[str, str] = field(default_factory=dict)
    calls: list[ToolCall] = field(default_factory=list)
    finished: str | None = None
    conversation: Conversation = field(default_factory=lambda: Conversation(system="You build packages.", messages=()))

    def opening(self) -> str:
        """The first message."""
        sections = [
            ("Ranking", json_line([self._ranked(id_) for id_ in self._by_rating()]), "json"),
            ("Last iteration", json_line(self._contest()), "json"),
            (
                "At hand",
                f"You may make {self.requests} requests in all. Stay under {self.token_budget:,} tokens.",
                "text",
            ),
            ("Pool", json_line([self._pooled(id_) for id_ in self.pool]), "json"),
            ("Strategy", f"Strategy: {self.strategy}\n\nGo about it.", "text"),
            *([("Papers", self.papers, "text")] if self.papers else []),
            ("Required outputs", "All of it.", "text"),
        ]
        blocks = [f"## {name}\n{data_block(text, info)}" for name, text, info in sections]
        return "\n\n".join(["# Evolve a database-analysis tool and instructions", *blocks])

    def run(self, *, seed: int = 1, steps: int = 60) -> Host:
        """Until the package is handed in or the engine ends its turn."""
        if not self.conversation.messages:
            self.conversation = self.conversation.plus(UserMessage(text=self.opening()))
        self.finished = None
        for step in range(steps):
            message = respond_evolver(self.conversation, self.tools, seed + step)
            self.conversation = self.conversation.plus(message)
            if not message.tool_calls:
                return self
            self.conversation = self.conversation.plus(ToolMessage(results=tuple(map(self.answer, message.tool_calls))))
            if self.finished is not None:
                return self
        msg = f"no end after {steps} steps"
        raise AssertionError(msg)

    def focus(self, results: Mapping[str, Any], *, seed: int = 1, **lists: Sequence[Any]) -> Host:
        """A Deep Focus message, and the work on it."""
        names = ("Unique successes", "Unique errors", "Consensus errors", "Tool")
        blocks = [f"## Results\n{data_block(json_line(dict(results)), 'json')}"]
        for name in names:
            listed = json_line(list(lists.get(name.lower().replace(" ", "_"), [])))
            blocks.append(f"## {name}\n{data_block(listed, 'json')}")
        text = "\n\n".join(["# Deep focus", "Revise it.", *blocks])
        self.conversation = self.conversation.plus(UserMessage(text=text))
        return self.run(seed=seed)

    def notebook(self) -> Notebook:
        """What the engine reads from the conversation so far."""
        return read_notebook(self.conversation, self.tools)

    def answer(self, call: ToolCall) -> ToolResult:
        """The answer to a call."""
        self.calls.append(call)
        arguments = {name: str(value) for name, value in (call.arguments or {}).items()}
        try:
            return ToolResult(call_id=call.id, text=self._answer(call.name, arguments))
        except (InputError, KeyError) as error:
            return ToolResult(call_id=call.id, text=f"error: {error}", is_error=True)

    def called(self, name: str) -> list[dict[str, str]]:
        """The arguments of all calls of a tool."""
        return [{key: str(value) for key, value in (c.arguments or {}).items()} for c in self.calls if c.name == name]

    def _answer(self, name: str, arguments: Mapping[str, str]) -> str:
        match name:
            case "read_package":
                return self.pool[arguments["id"]][arguments["file"]]
            case "read_errors":
                found = self.errors.get(arguments["id"], [report(*OTHER_VALUES)])
                return json_line({"agent": arguments["id"], "errors": found, "omitted": 0})
            case "write":
                if "reasoning.md" not in {arguments["file"], *self.draft}:
                    msg = "write reasoning.md first"
                    raise InputError(msg)
                self.draft[arguments["file"]] = arguments["content"]
                return json_line({"file": arguments["file"], "bytes": len(arguments["content"])})
            case "try_tool":
                return json_line(self._trial(arguments["database"]))
            case _:
                self.package()
                self.finished = arguments["description"]
                return '{"accepted": true}'

    def package(self) -> AgentPackage:
        """The draft, checked."""
        return AgentPackage.load({name: text.encode() for name, text in self.draft.items()})

    def _trial(self, database: str) -> dict[str, Any]:
        self.package()
        if self.scripted_trials:
            return self.scripted_trials.pop(0)
        if self.folder is None:
            return {"ok": True, "tokens": 100, "text": "# Database analysis", "omitted_characters": 0}
        place = self.folder / f"try-{len(self.calls)}"
        ending, text = run_tool(self.draft["tools/analyze.py"], self.databases[database], place)
        if ending:
            return {"ok": False, "failure": "error", "detail": ending, "findings": []}
        return {"ok": True, "tokens": len(text) // 3, "text": text[:12_000], "omitted_characters": 0}

    def _by_rating(self) -> list[str]:
        return sorted(self.pool, key=lambda id_: -self.ratings.get(id_, 1500.0))

    def _ranked(self, id_: str) -> dict[str, Any]:
        share = self.accuracy.get(id_, 0.5)
        return {"id": id_, "rating": self.ratings.get(id_, 1500.0), "tests": 1, "questions": 60, "accuracy": share}

    def _contest(self) -> dict[str, Any]:
        agents = {
            id_: {"accuracy": self.accuracy.get(id_, 0.5), "errors": 9, "tool": "ok", "analysis_tokens": 900}
            for id_ in self.pool
        }
        places = [{"database": name, "questions": 30, "agents": agents} for name in self.databases]
        return {"iteration": 1, "kind": "standard", "databases": places}

    def _pooled(self, id_: str) -> dict[str, Any]:
        listed = [{"file": name, "bytes": len(text)} for name, text in self.pool[id_].items()]
        return {"id": id_, "description": "", "parents": [], "is_competitor": True, "files": listed}


def run_tool(tool: str, database: Path, folder: Path) -> tuple[str, str]:
    """Run a tool as the sandbox does, without the sandbox: the end of what it printed if it failed, and its output."""
    (folder / "tools").mkdir(parents=True)
    (folder / "tool_output").mkdir()
    (folder / "tools" / "analyze.py").write_text(tool, encoding="utf-8")
    (folder / "database.sqlite").symlink_to(database)
    done = subprocess.run(
        [sys.executable, "-I", "-B", "tools/analyze.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return done.stderr[-2000:], ""
    return "", (folder / "tool_output" / "analysis.md").read_text(encoding="utf-8")


def assistant_texts(conversation: Conversation) -> list[str]:
    """What the engine said."""
    return [message.text for message in conversation.messages if isinstance(message, AssistantMessage)]


def section_names(host: Host) -> set[str]:
    """Of the draft's tool."""
    return set(cut_sections(host.draft["tools/analyze.py"]))


def rules_said(host: Host) -> frozenset[str]:
    """Conventions that the draft's instructions state."""
    return conventions_in(host.draft["eval_instructions.md"])


def two_parents(**settings: Any) -> Host:
    """The better one has a section nobody else has, the other one a varied section and a rule."""
    enumerations = library()["enumerations"].varied({"limit": 37})
    trends = cut_sections(FOREIGN)["trends"]
    return Host(
        pool={
            "p02": package([library()["ddl"], trends], ["Prefer short queries.", LIMIT]),
            "p03": package([library()["ddl"].varied({"characters": 99}), enumerations], ["Mind the units."]),
        },
        accuracy={"p02": 0.6, "p03": 0.6},
        ratings={"p02": 1510.0, "p03": 1510.0},
        **settings,
    )
