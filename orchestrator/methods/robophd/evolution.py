"""One evolution: an agent makes a package and tests it in Deep Focus; the better of its drafts is what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.methods.robophd import texts
from orchestrator.methods.robophd.answering import failure_text, text_tokens
from orchestrator.methods.robophd.conversation import EvolutionFailed, EvolverConversation
from orchestrator.methods.robophd.events import Event, Progress
from orchestrator.methods.robophd.focus import Reporter, iteration_table
from orchestrator.methods.robophd.members import Member, newcomer_id
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.reports import errors_document
from orchestrator.methods.robophd.scoring import Scored, Scorer
from orchestrator.methods.robophd.settings import Settings, Strategy
from orchestrator.methods.robophd.standings import ContestResult, Standings
from orchestrator.methods.robophd.toolbox import Toolbox
from orchestrator.search.replay import Steps
from orchestrator.search.tool_calls import ToolError

_EXCERPT_CHARACTERS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One contest with everything that its competitors answered."""

    contest: ContestResult
    scored: Mapping[str, Scored]
    """By competitor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolved:
    """What an evolution came to; exactly one of `member` and `failure` is set."""

    member: Member | None
    failure: str | None
    """Why there is no package."""
    requests: int
    drafts: int
    """Versions that were handed in."""

    @property
    def record(self) -> dict[str, Any]:
        """What the journal keeps of it."""
        return {
            "package": None if self.member is None else self.member.id,
            "failure": self.failure,
            "requests": self.requests,
            "drafts": self.drafts,
        }


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What all evolutions of a run share."""

    ports: RunPorts
    steps: Steps
    scorer: Scorer
    """Tests drafts."""
    before: Callable[[], object] = lambda: None
    """Called before a request that has no reply yet; what it raises keeps it from being made."""


class Evolution:
    """Makes one package from everything up to the last contest. Not thread-safe."""

    def __init__(
        self,
        iteration: int,
        strategy: Strategy,
        *,
        settings: Settings,
        around: Surroundings,
        standings: Standings,
        past: Sequence[Past],
    ) -> None:
        """Nothing is asked yet.

        Args:
            iteration: Which makes the package.
            strategy: How the agent is told to go about it.
            settings: Of the run, at this iteration.
            around: Of the run.
            standings: Before this iteration's contest.
            past: All contests so far, at least one.
        """
        self._iteration = iteration
        self._settings = settings
        self._model = around.ports.answerer
        self._scorer = around.scorer
        self._standings = standings
        self._past = past
        self._reporter = Reporter(around.ports.journal, settings.answers.shown_bounds, settings.evolver.errors_shown)
        self._toolbox = Toolbox(
            members=standings.members,
            databases=tuple(past[-1].contest.questions),
            errors=self._errors,
            run_tool=self._tried,
            tries=settings.evolver.tries,
        )
        self._conversation = EvolverConversation(
            iteration=iteration,
            opening=texts.first_message(self._situation(strategy), settings, around.ports.tool_limits),
            toolbox=self._toolbox,
            settings=settings,
            ports=around.ports,
            steps=around.steps,
            before=around.before,
            on_request=self._on_request,
        )
        self._drafts = 0
        self._description = ""

    def _situation(self, strategy: Strategy) -> texts.Situation:
        contest = self._past[-1].contest
        return texts.Situation(
            standings=self._standings.table,
            last=iteration_table(contest.iteration, contest.kind, self._past[-1].scored),
            competitors=frozenset(contest.right),
            databases=tuple(contest.questions),
            strategy=strategy,
        )

    def run(self) -> Evolved:
        """Until the package stands or the agent has failed, which costs what it cost and nothing else.

        Raises:
            BudgetExhausted: A ceiling of the run does not cover the next request.
            EvolvariumError: A model, the sandbox or the journal failed, or somebody asked to stop; the run is paused.
        """
        try:
            package = self._conversation.work()
        except EvolutionFailed as failed:
            return self._ended(None, str(failed))
        package = self._focused(self._handed_in(package))
        twin = self._twin(package)
        if twin is not None:
            return self._ended(None, f"it is the same as {twin}, which there is already")
        return self._ended(package, None)

    def _handed_in(self, package: AgentPackage) -> AgentPackage:
        self._drafts += 1
        self._description = self._toolbox.description
        return package

    def _twin(self, package: AgentPackage) -> str | None:
        """The id of a package that is the same; None: there is none."""
        return next((m.id for m in self._standings.members.values() if m.package.digest == package.digest), None)

    def _focused(self, package: AgentPackage) -> AgentPackage:
        """The best of a package and its revisions; a revision counts only if it is better on the same questions."""
        kept, label = "", self._label
        for past in islice(reversed(self._past), self._settings.evolver.deep_focus):
            if not self._conversation.has_requests:
                break  # nobody could make anything of the results
            before = self._tested(package, past, label)
            message = self._reporter.focus_message(past.contest.iteration, before, past.scored, kept)
            try:
                revised = self._conversation.revise(message)
            except EvolutionFailed:
                break  # a draft is there, and the agent has no more to say
            kept = ""
            if revised.digest == package.digest:
                package, self._description = revised, self._toolbox.description  # its account may be another
                continue
            description = self._description
            self._handed_in(revised)
            if self._is_better(revised, past, before):
                package, label = revised, self._label
                continue
            kept = "your revision was not better, so the version before it was kept; the draft is that version again"
            self._toolbox.draft.restore(package)
            self._description = description
        return package

    @property
    def _label(self) -> str:
        """Of the draft that was handed in last, for instance `p03.0`."""
        return f"{newcomer_id(self._iteration)}.{self._drafts - 1}"

    def _is_better(self, revised: AgentPackage, past: Past, before: Scored) -> bool:
        """Whether it has more right than the version before it; a copy of another package is nothing new."""
        return self._twin(revised) is None and len(self._tested(revised, past, self._label).right) > len(before.right)

    def _tested(self, package: AgentPackage, past: Past, label: str) -> Scored:
        sample = next(iter(past.scored.values())).sample
        scored = self._scorer.score(label, package, sample, iteration=self._iteration)
        self._scorer.tell(
            Progress(
                event=Event.FOCUS,
                iteration=self._iteration,
                subject=label,
                figures={label: len(scored.right) / scored.total},
            )
        )
        return scored

    def _ended(self, package: AgentPackage | None, failure: str | None) -> Evolved:
        member = None
        if package is not None:
            member = Member(
                id=newcomer_id(self._iteration),
                package=package,
                iteration=self._iteration,
                parents=tuple(self._toolbox.read_members),
                description=self._description,
            )
        return Evolved(member=member, failure=failure, requests=self._conversation.requests, drafts=self._drafts)

    def _errors(self, member_id: str, database: str) -> Mapping[str, Any]:
        own = [past for past in reversed(self._past) if member_id in past.contest.right]
        if not own:
            msg = f"package {member_id} was in no contest yet, so there are no errors of it"
            raise ToolError(msg)
        past = next((past for past in own if database in past.contest.questions), None)
        if past is None:
            names = ", ".join(sorted({name for past in own for name in past.contest.questions}))
            msg = f"{member_id} was asked nothing about {database[:80]!r}; it was asked about {names}"
            raise ToolError(msg)
        errors = self._reporter.errors(past.scored[member_id], database)
        return errors_document(member_id, database, errors, limit=self._reporter.limit)

    def _tried(self, package: AgentPackage, database: str) -> Mapping[str, Any]:
        report, text = self._scorer.try_tool(package, database)
        if text is None:
            return {
                "ok": False,
                "failure": report.failure.value if report.failure else "",
                "detail": failure_text(report),
                "findings": [
                    {"file": finding.file, "line": finding.line, "message": finding.message}
                    for finding in report.findings
                ],
            }
        return {
            "ok": True,
            "tokens": text_tokens(self._model, text),
            "text": text[:_EXCERPT_CHARACTERS],
            "omitted_characters": max(0, len(text) - _EXCERPT_CHARACTERS),
        }

    def _on_request(self, number: int) -> None:
        self._scorer.tell(
            Progress(event=Event.REQUEST, iteration=self._iteration, done=number, total=self._settings.evolver.requests)
        )
