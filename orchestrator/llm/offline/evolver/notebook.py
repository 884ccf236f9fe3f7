"""What an evolver's conversation says so far, read anew from its messages for every reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.domain.agent_packages import TOOL_FOLDER
from orchestrator.domain.conversation import (
    AssistantMessage,
    Conversation,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from orchestrator.llm.offline.evolver.messages import (
    CONTINUE,
    DEEP_FOCUS,
    fenced_sections,
    json_value,
    mapping,
    title_of,
)
from orchestrator.llm.offline.evolver.reports import (
    Contested,
    ErrorReport,
    Focus,
    Pooled,
    Ranked,
    Trial,
    read_contest,
    read_focus,
    read_pool,
    read_ranking,
    read_reports,
    read_trial,
)

TOOL_FILE = f"{TOOL_FOLDER}/analyze.py"
_BUDGET = re.compile(r"(\d[\d,]{2,12}) tokens")
_REQUESTS = re.compile(r"(\d[\d,]{0,8}) requests")
_MAX_TEXT = 1 << 18


@dataclass(slots=True, kw_only=True)
class Notebook:
    """State of an evolution as far as its conversation tells it."""

    tools: frozenset[str]
    ranking: tuple[Ranked, ...] = ()
    contest: tuple[Contested, ...] = ()
    pool: tuple[Pooled, ...] = ()
    strategy: str = ""
    papers: str = ""
    token_budget: int | None = None
    """Of analysis, instructions and a question together; None: not told."""
    request_limit: int | None = None
    packages: dict[str, dict[str, str]] = field(default_factory=dict)
    """Package to the files of it that were read."""
    errors: dict[tuple[str, str], tuple[ErrorReport, ...]] = field(default_factory=dict)
    """(package, database) to its error reports."""
    asked: set[tuple[str, ...]] = field(default_factory=set)
    """Calls of `read_package` and `read_errors`, with their arguments, whatever came of them."""
    draft: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    """Files written since the last Deep Focus message."""
    trials: list[Trial] = field(default_factory=list)
    """Since the last Deep Focus message."""
    can_try: bool = True
    """No call of `try_tool` was refused since the last Deep Focus message."""
    is_finished: bool = False
    """The draft was handed in, and nothing has come after it."""
    refused_finishes: int = 0
    """Since the last Deep Focus message."""
    focus: list[Focus] = field(default_factory=list)
    handed_in: list[dict[str, str]] = field(default_factory=list)
    """The draft as it was handed in each time, without the versions that were not kept."""
    rejected: list[dict[str, str]] = field(default_factory=list)
    """Versions that were not kept."""
    idle: int = 0
    """Turns of this conversation without a tool call."""
    failures: int = 0
    """Tool messages in a row, up to the last one, in which nothing succeeded."""
    requests: int = 0
    """Messages of the engine so far."""
    characters: int = 0
    """Of all texts so far, about."""

    @property
    def requests_left(self) -> int:
        """How often the engine may still be asked; many, if nobody has said."""
        return 1000 if self.request_limit is None else self.request_limit - self.requests

    @property
    def databases(self) -> list[str]:
        """Of the last contest, those with the longest analyses first."""
        sizes: dict[str, int] = {}
        for entry in self.contest:
            sizes[entry.database] = max(sizes.get(entry.database, 0), entry.tokens)
        return sorted(sizes, key=lambda name: (-sizes[name], name))


def read_notebook(conversation: Conversation, tools: Sequence[ToolSpec]) -> Notebook:
    """Read a conversation from its beginning; whatever is malformed or missing leaves its part empty."""
    notebook = Notebook(tools=frozenset(tool.name for tool in tools))
    calls: tuple[ToolCall, ...] = ()
    for position, message in enumerate(conversation.messages):
        if isinstance(message, AssistantMessage):
            calls = message.tool_calls
            notebook.requests += 1
        elif isinstance(message, ToolMessage):
            for call, result in zip(calls, message.results, strict=False):
                notebook.characters += len(result.text)
                _take_result(notebook, call, result)
            succeeded = any(not result.is_error for result in message.results)
            notebook.failures = 0 if succeeded else notebook.failures + 1
        elif isinstance(message, UserMessage):
            notebook.characters += len(message.text)
            _take_message(notebook, message.text, is_first=position == 0)
    return notebook


def _take_message(notebook: Notebook, text: str, *, is_first: bool) -> None:
    title = title_of(text)
    if is_first:
        _take_opening(notebook, fenced_sections(text))
    elif title == DEEP_FOCUS:
        notebook.focus.append(read_focus(text))
        if notebook.focus[-1].is_restored and len(notebook.handed_in) > 1:
            notebook.rejected.append(notebook.handed_in.pop())
            notebook.draft = dict(notebook.handed_in[-1])
        notebook.written, notebook.trials = set(), []
        notebook.can_try, notebook.is_finished, notebook.refused_finishes = True, False, 0
    elif title == CONTINUE:
        notebook.idle += 1


def _take_opening(notebook: Notebook, sections: dict[str, str]) -> None:
    notebook.ranking = read_ranking(sections.get("Ranking", ""))
    notebook.contest = read_contest(sections.get("Last iteration", ""))
    notebook.pool = read_pool(sections.get("Pool", ""))
    notebook.papers = sections.get("Papers", "")
    first = sections.get("Strategy", "").partition("\n")[0]
    notebook.strategy = first.partition(":")[2].strip().lower()
    at_hand = sections.get("At hand", "")
    budgets = [int(found.replace(",", "")) for found in _BUDGET.findall(at_hand)]
    notebook.token_budget = min(budgets, default=None)
    requests = _REQUESTS.search(at_hand)
    notebook.request_limit = None if requests is None else int(requests[1].replace(",", ""))


def _take_result(notebook: Notebook, call: ToolCall, result: ToolResult) -> None:
    arguments = {name: value for name, value in (call.arguments or {}).items() if isinstance(value, str)}
    id_, file, database = (arguments.get(name, "") for name in ("id", "file", "database"))
    match call.name:
        case "read_package":
            notebook.asked.add((call.name, id_, file))
            if not result.is_error:
                notebook.packages.setdefault(id_, {})[file] = result.text[:_MAX_TEXT]
        case "read_errors":
            notebook.asked.add((call.name, id_, database))
            if not result.is_error:
                notebook.errors[id_, database] = read_reports(mapping(json_value(result.text)).get("errors"))
        case "write" if not result.is_error:
            notebook.draft[file] = arguments.get("content", "")
            notebook.written.add(file)
        case "try_tool":
            notebook.can_try = not result.is_error
            trial = read_trial(database, notebook.draft.get(TOOL_FILE, ""), result.text)
            notebook.trials += [] if result.is_error else [trial]
        case "finish":
            _take_end(notebook, is_accepted=not result.is_error)
        case _:
            pass


def _take_end(notebook: Notebook, *, is_accepted: bool) -> None:
    notebook.is_finished = is_accepted
    if is_accepted:
        notebook.handed_in.append(dict(notebook.draft))
    else:
        notebook.refused_finishes += 1
