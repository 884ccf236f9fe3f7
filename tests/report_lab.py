"""Journals of searches that never ran, of any size and as hostile as one likes, and the pages made of them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.header import policy_record, run_header
from orchestrator.bootstrap.places import find_places
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.report_records import read_report_records
from orchestrator.cli.comparison import compared
from orchestrator.cli.documents import RunDocument
from orchestrator.cli.history import RunView, read_view
from orchestrator.cli.report_page import PageRun, report_page
from orchestrator.domain.candidates import Candidate, FileTree
from orchestrator.domain.conversation import AssistantMessage, Reply, StopReason, ToolCall, Usage
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.records import to_record
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.evaluation.tasks import Task
from orchestrator.llm.offline import OfflineModel
from orchestrator.methods.agentic_evolve.entries import (
    INITIAL,
    Entry,
    commit_id,
    commit_key,
    entry_record,
    files_record,
)
from orchestrator.ports import AnalysisResult, Journal
from tests.memory_journal import MemoryJournal
from tests.recorded_runs import DIGEST, OUTCOME

RUN = "0123456789ab"
HOSTILE = (
    "</script><img src=x onerror=window.hostile=1><script>window.hostile=1</script>]]>--><!-- \u2028\u2029"
    "\u202egnp.exe\u202c \x1b[31m \x00 \"'`${window.hostile=1} &lt;b&gt; <svg/onload=window.hostile=1> \ufeff"
)


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What a generated journal is like."""

    islands: int = 2
    commits: int = 6
    """Of each island."""
    interval: int = 3
    words: str = "cost of open room"
    """Begins every description."""
    printed: str = "3 bins\n"
    extra: str = ""
    """Ends every program."""
    usd: Decimal | None = Decimal("0.01")
    """Of each request."""
    thinking: int = 1
    """Commits of an island for each experiment."""
    program_lines: int = 6
    lost: bool = False
    """Whether every island has lost its last call."""


def generated(task: Task, home: Path, what: Generated) -> MemoryJournal:
    """The journal of a whole run of random programs that are made from each other."""
    journal = MemoryJournal()
    settings = method_settings(
        task.spec, seed=1, islands=what.islands, commits_per_island=what.commits, analyses_per_commit=None,
        analysis=True, migration_interval=what.interval,
    )  # fmt: skip
    policy = find_policy(find_places(home, None), "default")
    in_force = policy_record(policy, lambda _: DIGEST)
    journal.put("run", run_header(settings, task, OfflineModel(), Choices(task=task.name), in_force))
    initial = Entry(
        candidate=Candidate(id=INITIAL, payload=task.initial),
        verdict=_verdict(1 << 20, "hidden"),
        island=None,
        number=0,
    )
    journal.put(INITIAL, entry_record(initial, journal) | {"payload": task.initial.digest})
    for number in range(1, what.commits + 1):
        for island in range(what.islands):
            _turn(journal, task, what, island, number)
    for island in range(what.islands):
        journal.put(f"i{island}/stop", {"reason": "commits"})
    for candidate in (INITIAL, commit_id(0, what.commits)):
        journal.put(f"final/fresh/{candidate}", {"payload": DIGEST, "verdict": to_record(_verdict(5, "fresh"))})
    journal.put("run/end", {"best": None})
    return journal


def _turn(journal: Journal, task: Task, what: Generated, island: int, number: int) -> None:
    """Perhaps an experiment, then a commit, perhaps a migration, and the requests for them."""
    program = _program(task, what, island, number)
    if number % what.thinking == 0:
        _experiment(journal, what, island, number, program)
    _request(journal, what, island, 2 * number, "commit")
    parents = [INITIAL] if number == 1 else [commit_id(island, number - 1)]
    if number > 1 and (number - 1) % what.interval == 0:
        parents += _shown(what, island, number - 1)
    entry = Entry(
        candidate=Candidate(
            id=commit_id(island, number),
            payload=FileTree({"program.py": program}),
            parents=tuple(parents),
            description=f"{what.words} {number} of island {island}",
        ),
        verdict=_verdict(_digits(island, number), "hidden", what.commits, number),
        island=island,
        number=number,
    )
    journal.put(commit_key(island, number), entry_record(entry, journal))
    if number % what.interval == 0 and number < what.commits:
        _migration(journal, what, island, number)
    if what.lost and number == what.commits:
        reserved = to_record(Usage(input_tokens=50, output_tokens=7, usd=Decimal("0.5")))
        journal.put(f"i{island}/request/{2 * number + 1:04d}/sent", {"conversation": DIGEST, "reserved": reserved})


def _experiment(journal: Journal, what: Generated, island: int, number: int, program: bytes) -> None:
    _request(journal, what, island, 2 * number - 1, "run_analysis")
    script = f"print({number})\n# {what.extra}\n".encode(errors="replace")
    files = FileTree({"program.py": program, "analysis.py": script})
    result = AnalysisResult(output=what.printed.encode(errors="replace"), omitted_bytes=0, outcome=OUTCOME)
    record = files_record(files, journal) | {"result": to_record(result)}
    journal.put(f"i{island}/analysis/{number // what.thinking:04d}", record)


def _migration(journal: Journal, what: Generated, island: int, number: int) -> None:
    shown = _shown(what, island, number)
    journal.put(f"i{island}/migration/{number // what.interval:02d}", {"shown": shown})


def _shown(what: Generated, island: int, number: int) -> list[str]:
    """The neighbour's last commit that is recorded when this island has committed so often."""
    neighbour = (island + 1) % what.islands
    seen = number if neighbour < island else number - 1
    return [commit_id(neighbour, seen)] if seen >= 1 and neighbour != island else []


def _request(journal: Journal, what: Generated, island: int, number: int, tool: str) -> None:
    usage = Usage(input_tokens=1000, cached_input_tokens=200, output_tokens=300, usd=what.usd)
    call = ToolCall(id="1", name=tool, arguments={})
    reply = Reply(message=AssistantMessage(text="", tool_calls=(call,)), usage=usage, stop=StopReason.TOOLS)
    record = {"reply": to_record(reply), "conversation": DIGEST}
    journal.put(f"i{island}/request/{number:04d}", record)


def _digits(island: int, number: int) -> int:
    return int(hashlib.sha256(f"{island}/{number}".encode()).hexdigest()[:8], 16)


def _program(task: Task, what: Generated, island: int, number: int) -> bytes:
    lines = [f"COST_{place} = {_digits(island, number * 1000 + place)}" for place in range(what.program_lines)]
    text = task.initial["program.py"].decode() + "\n".join(lines) + f"\n# {what.extra}\n"
    return text.encode(errors="replace")


def _verdict(digits: int, split: str, commits: int = 1, number: int = 1) -> Verdict:
    """Better and better with the number; every seventh fails."""
    if digits % 7 == 0:
        failure = Failure(ending=(Ending.TIMEOUT, Ending.ERROR)[digits % 2], exception="ValueError", line=3)
        return Verdict(split=split, metrics=None, failure=failure, secret=True, outcome=OUTCOME)
    excess = 8 - 5 * number / commits + digits % 1000 / 1000
    metrics = {
        "fitness": 1 / (1 + excess / 100), "excess_percent": excess,
        "ast_nodes": digits % 97 / 97, "deviation": digits % 89 / 89,
    }  # fmt: skip
    return Verdict(split=split, metrics=metrics, failure=None, secret=True, outcome=OUTCOME)


def page_run(journal: Journal, home: Path, run_id: str = RUN) -> PageRun:
    """A run as `report` gives it to its page."""
    view = read_view(run_id, journal)
    records = read_report_records(find_places(home, None), run_id, journal, view.history)
    return PageRun(view=view, document=document_of(view), records=records)


def document_of(view: RunView) -> RunDocument:
    """As `--json` has it."""
    return compared(view).run


def page_of(journal: Journal, home: Path) -> str:
    """The page of one run."""
    return report_page([page_run(journal, home)], [])


def data_of(page: str) -> dict[str, Any]:
    """The data in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def texts_of(data: Mapping[str, Any]) -> Iterator[str]:
    """All long texts of a page."""
    for block in data["texts"]["blocks"]:
        yield from json.loads(zlib.decompress(base64.b64decode(block)))


class Elements(HTMLParser):
    """Names and attributes of all elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
