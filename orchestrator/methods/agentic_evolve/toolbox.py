"""What an agent's tools do on its island: files, analyses, commits and reading commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.domain.budgets import Account, Spend
from orchestrator.domain.candidates import Candidate, FileTree
from orchestrator.domain.conversation import ToolCall, ToolResult
from orchestrator.domain.records import from_record, to_record
from orchestrator.domain.verdicts import Verdict
from orchestrator.errors import InputError
from orchestrator.methods.agentic_evolve import texts
from orchestrator.methods.agentic_evolve.archive import IslandArchive, migrant_lines
from orchestrator.methods.agentic_evolve.context import RunContext
from orchestrator.methods.agentic_evolve.entries import (
    INITIAL,
    Entry,
    check_verdict,
    commit_id,
    commit_key,
    entry_from_record,
    entry_record,
    files_record,
)
from orchestrator.methods.agentic_evolve.events import Event
from orchestrator.methods.agentic_evolve.migration import Migration
from orchestrator.methods.agentic_evolve.workspace import Workspace
from orchestrator.ports import AnalysisResult
from orchestrator.search.tool_calls import ToolError, checked_arguments, refusal, success

Tell = Callable[[Event, str], None]


class Toolbox:
    """One island's files, archive and counters. Not thread-safe; lives as long as the island, through compactions."""

    def __init__(self, context: RunContext, island: int, *, tell: Tell, requests_left: Callable[[], int]) -> None:
        settings, task = context.settings, context.task
        self._context = context
        self._island = island
        self._tell = tell
        self._requests_left = requests_left
        self.workspace = Workspace(task.initial, has_analysis=settings.analysis)
        self.archive = IslandArchive(context.initial, task, bins=settings.bins)
        self._migration = Migration(context, island, self.archive)
        self._base = INITIAL
        self._reads: list[str] = []
        self._numbered = 0
        self._analyses_since_commit = 0
        self.commits = 0
        """Evaluated ones; duplicates do not count."""
        self.analyses = 0
        self.latest: dict[str, Any] | None = None
        """The answer to the last commit, without summary, budget and notice; None: nothing was committed yet."""

    @property
    def commits_left(self) -> int:
        """How many more evaluations the island may spend."""
        return self._context.settings.commits_per_island - self.commits

    def budget(self) -> dict[str, int]:
        """What is left, as the agent sees it."""
        left = {"commits_left": self.commits_left, "requests_left": self._requests_left()}
        if self._context.settings.analysis:
            left["analyses_left"] = self._context.settings.analyses_per_commit - self._analyses_since_commit
        return left

    def execute(self, call: ToolCall, *, is_nearly_full: Callable[[], bool]) -> ToolResult:
        """Do what a tool call asks for, or tell the agent what is wrong with it.

        Args:
            call: From the model.
            is_nearly_full: Whether the context is so long that the answer to a commit must ask to end the turn.

        Raises:
            EvolvariumError: Not the agent's fault; see the ports.
        """
        try:
            arguments = checked_arguments(call, self._context.tools)
            return success(call, self._perform(call.name, arguments, is_nearly_full))
        except ToolError as error:
            return refusal(call, error)

    def stop(self) -> None:
        """Leave the final elites to the neighbours."""
        self._migration.stop()

    def _perform(self, name: str, arguments: Mapping[str, str], is_nearly_full: Callable[[], bool]) -> str:
        match name:
            case "read":
                return self.workspace.read(arguments["file"])
            case "write":
                size = self.workspace.write(arguments["file"], arguments["content"])
                self._note_base()
                return texts.as_json({"file": arguments["file"], "bytes": size})
            case "edit":
                size = self.workspace.edit(arguments["file"], arguments["old"], arguments["new"])
                self._note_base()
                return texts.as_json({"file": arguments["file"], "bytes": size})
            case "run_analysis":
                return self._run_analysis()
            case "commit":
                return texts.as_json(self._commit(arguments["description"], is_nearly_full))
            case _:
                return self._read_commit(arguments["id"])

    def _run_analysis(self) -> str:
        limit = self._context.settings.analyses_per_commit
        files = self.workspace.for_analysis()
        if self.commits_left <= 0 or self._analyses_since_commit >= limit:
            msg = f"no analysis is left: {self._analyses_since_commit} of {limit} were run before the next commit"
            raise ToolError(msg)
        number = self.analyses + 1
        record = self._context.step(
            f"i{self._island}/analysis/{number:04d}",
            lambda: self._analyse(files, number),
            identity={"payload": files.digest},
            spend=Spend(analyses=1),
            account=Account(role="analysis", island=self._island),
        )
        self.analyses = number
        self._analyses_since_commit += 1
        result = from_record(AnalysisResult, record["result"])
        self._tell(Event.ANALYSIS, _analysis_id(self._island, number))
        printed = self._context.ports.disclosure.analysis(result)
        newline = "" if printed.endswith("\n") or not printed else "\n"
        count = f"{self._analyses_since_commit} of {limit}"
        return f"{printed}{newline}[analysis {count} before the next commit: {result.outcome.ending.value}]"

    def _analyse(self, files: FileTree, number: int) -> Mapping[str, Any]:
        analyst = self._context.ports.analyst
        if analyst is None:
            msg = "a configuration with analyses needs an analyst"
            raise InputError(msg)
        attempt = _analysis_id(self._island, number)
        result = analyst.analyse(files, run_id=self._context.run_id, attempt_id=attempt)
        return files_record(files, self._context.ports.journal) | {"result": to_record(result)}

    def _commit(self, description: str, is_nearly_full: Callable[[], bool]) -> dict[str, Any]:
        if self.commits_left <= 0:
            msg = "no commit is left; end your turn"
            raise ToolError(msg)
        entry = self._evaluated(description)
        self._numbered = entry.number
        self._base, self._reads = entry.id, []
        self.archive.add(entry)
        answer: dict[str, Any] = {"commit": entry.id, "duplicate_of": entry.duplicate_of}
        answer |= self._context.ports.disclosure.verdict(entry.verdict)
        shown = None
        if entry.duplicate_of is None:
            self.commits += 1
            self._analyses_since_commit = 0
            shown = self._migration.after_commit(self.commits)
        self._tell(Event.COMMIT if entry.duplicate_of is None else Event.DUPLICATE, entry.id)
        summary = self.archive.summary(self._context.ports.disclosure)
        if shown is not None:
            summary["migration"] = migrant_lines(shown, self._context.ports.disclosure)
            self._tell(Event.MIGRATION, "")
        self.latest = answer | ({"migration": summary["migration"]} if shown is not None else {})
        return answer | summary | {"budget": self.budget(), "notice": self._notice(is_nearly_full)}

    def _evaluated(self, description: str) -> Entry:
        number = self._numbered + 1
        payload = self.workspace.candidate
        entry_id = commit_id(self._island, number)
        parents = tuple(dict.fromkeys([self._base, *self._reads]))
        candidate = Candidate(id=entry_id, payload=payload, parents=parents, description=description)
        twin = self.archive.twin(payload)

        def perform() -> Mapping[str, Any]:
            verdict = twin.verdict if twin is not None else self._verdict(candidate)
            entry = Entry(
                candidate=candidate,
                verdict=verdict,
                island=self._island,
                number=number,
                duplicate_of=None if twin is None else twin.id,
            )
            return entry_record(entry, self._context.ports.journal)

        record = self._context.step(
            commit_key(self._island, number),
            perform,
            identity={"payload": payload.digest},
            spend=Spend(commits=1) if twin is None else None,
            account=Account(role="evaluation", island=self._island),
        )
        return entry_from_record(entry_id, record, self._context.ports.journal)

    def _verdict(self, candidate: Candidate) -> Verdict:
        evaluator, run_id = self._context.ports.evaluator, self._context.run_id
        verdict = evaluator.evaluate(candidate.payload, run_id=run_id, attempt_id=candidate.id)
        return check_verdict(verdict, self._context.task, candidate.id)

    def _notice(self, is_nearly_full: Callable[[], bool]) -> str | None:
        if self.commits_left <= 0 or self._requests_left() <= 0:
            return texts.fixed_text("budget_exhausted")
        return texts.fixed_text("context_limit") if is_nearly_full() else None

    def _read_commit(self, entry_id: str) -> str:
        entry = self.archive.find(entry_id)
        if entry is None:
            msg = f"there is no commit {entry_id[:80]!r} among your own and those you were shown"
            raise ToolError(msg)
        self._reads.append(entry.id)
        self.archive.read(entry)
        return texts.tree_text(entry.candidate.payload)

    def _note_base(self) -> None:
        """What is committed next was made from the known program that the files last equalled."""
        known = self.archive.known(self.workspace.candidate)
        if known is not None:
            self._base = known.id


def _analysis_id(island: int, number: int) -> str:
    return f"i{island}-a{number:04d}"
