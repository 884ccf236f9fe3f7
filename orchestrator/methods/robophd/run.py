"""RoboPhD from beginning to end: contests, evolutions, ratings, and the choice of a champion.

Iteration 1 is a contest of the packages that are there. Every later one makes a package first, if its round does, and
then holds a contest. After the last one, everybody who was in a contest is scored once on the selection databases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.errors import BudgetExhausted, InputError, RunStateError
from orchestrator.methods.robophd.answering import AnswerContext
from orchestrator.methods.robophd.events import Event, Progress
from orchestrator.methods.robophd.evolution import Evolution, Past, Surroundings
from orchestrator.methods.robophd.members import (
    Member,
    check_initial_id,
    load_member,
    member_key,
    member_record,
)
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.questions import DataView
from orchestrator.methods.robophd.results import Ending, RunResult
from orchestrator.methods.robophd.schedule import Plan, plan_iteration
from orchestrator.methods.robophd.scoring import Scorer
from orchestrator.methods.robophd.settings import Settings, Strategy
from orchestrator.methods.robophd.standings import ContestResult, Standings, contest_record, iteration_key
from orchestrator.search.replay import Mode, Steps
from orchestrator.search.tournament import champion, choose_competitors

METHOD = "robophd"
RUN = "run"
RUN_END = "run/end"
_COMPARED = ("method", "settings", "models", "initial")


def select_key(member_id: str) -> str:
    """The journal key of a package's score on the selection databases."""
    return f"select/{member_id}"


def run_record(
    settings: Settings, initial: Mapping[str, AgentPackage], *, evolver: str, answerer: str
) -> dict[str, Any]:
    """What the record `run` must hold for this method; whoever writes it first may add to it."""
    return {
        "method": METHOD,
        "seed": settings.seed,
        "settings": settings.model_dump(mode="json"),
        "models": {"evolver": evolver, "answerer": answerer},
        "initial": {name: package.digest for name, package in initial.items()},
    }


def run_robophd(
    *,
    settings: Settings,
    data: DataView,
    initial: Mapping[str, AgentPackage],
    ports: RunPorts,
    earlier: Sequence[tuple[int, Settings]] = (),
) -> RunResult:
    """Run, resume or replay; the journal decides which, since steps it holds are not performed again.

    Args:
        settings: Equal to those the run was started with.
        data: Likewise.
        initial: The packages to begin with, by id; at least one.
        ports: Everything outside.
        earlier: Of a branch: (last iteration, settings) of the runs it comes from, the earliest first.

    Raises:
        InputError: Settings, data and packages do not fit each other.
        RunStateError: The journal belongs to another run, or a replay came to its end.
        EvolvariumError: A model, the sandbox or the journal failed, or somebody asked to stop; the run is paused, and
            calling this again with the same journal and an empty ledger continues it.
    """
    _check(settings, data, initial, earlier)
    # A run that has ended leaves nothing to perform; what its budget cut off is entered to be charged, in a replay too.
    steps = Steps(ports.journal, Mode.PERFORM if ports.journal.get(RUN_END) is not None else ports.mode)
    record = run_record(settings, initial, evolver=ports.evolver.name, answerer=ports.answerer.name)
    known = steps.recorded(RUN) or steps.once(RUN, lambda: record)
    for field in _COMPARED:
        if (before := known.get(field)) != record[field]:
            msg = f"the run was started with {_difference(field, before, record[field])}; use that, or start a new run"
            raise RunStateError(msg)
    return _Run(settings, data, initial, ports, steps, earlier).to_the_end()


class _Run:
    def __init__(
        self,
        settings: Settings,
        data: DataView,
        initial: Mapping[str, AgentPackage],
        ports: RunPorts,
        steps: Steps,
        earlier: Sequence[tuple[int, Settings]],
    ) -> None:
        self._settings = settings
        self._earlier = earlier
        self._data = data
        self._steps = steps
        self._ports = ports
        context = AnswerContext(
            model=ports.answerer,
            steps=steps,
            ledger=ports.ledger,
            settings=settings.answers,
            seed=self._at(1).seed,  # of a branch, too: what was answered before it stays answered
            cancel=ports.cancel,
            before=self._stop_where_it_stopped,
        )
        has_ended = ports.mode is Mode.REPLAY or steps.recorded(RUN_END) is not None
        self._scorer = Scorer(context, ports, reads_only=has_ended)
        self._around = Surroundings(ports=ports, steps=steps, scorer=self._scorer, before=self._stop_where_it_stopped)
        self._standings = Standings(elo=settings.elo)
        self._past: list[Past] = []
        self._failures: dict[int, str] = {}
        for name, package in initial.items():
            self._join(Member(id=name, package=package, iteration=0))

    def to_the_end(self) -> RunResult:
        ending = Ending.ITERATIONS
        scores: dict[str, tuple[int, int]] = {}
        try:
            for iteration in range(1, self._settings.iterations + 1):
                self._iterate(iteration)
            for name in self._contested():
                scores[name] = self._selected(name)
        except BudgetExhausted:
            self._ports.cancel.check()  # whoever asked to stop has paused the run, not ended it
            ending = Ending.BUDGET
        best = self._champion(scores)
        record = {"ending": ending.value, "champion": best, "selected": list(scores)}
        self._steps.once(RUN_END, dict, identity=record)
        self._tell(Progress(event=Event.END, iteration=0, subject=best, note=ending.value))
        return RunResult(
            ending=ending,
            members=tuple(self._standings.members.values()),
            contests=tuple(self._standings.contests),
            ratings=self._standings.ratings,
            failures=dict(self._failures),
            selection=scores,
            champion=best,
        )

    def _iterate(self, iteration: int) -> None:
        settings = self._at(iteration)
        plan = plan_iteration(settings, self._data.evolve, iteration)
        self._steps.once(iteration_key(iteration, "plan"), dict, identity=plan.record)
        self._tell(Progress(event=Event.ITERATION, iteration=iteration, subject=plan.kind.value))
        newcomer = None if plan.strategy is None else self._evolved(iteration, settings, plan.strategy)
        competitors = choose_competitors(
            plan.kind,
            self._standings.for_choice,
            slots=plan.slots,
            start=settings.elo.start,
            seed=settings.seed,
            iteration=iteration,
            newcomer=newcomer,
            pending_winners=self._past[-1].contest.winners if self._past else (),
        )
        self._contest(iteration, plan, competitors)

    def _evolved(self, iteration: int, settings: Settings, strategy: Strategy) -> str | None:
        """The id of a newcomer that has joined; None: the evolution failed."""
        evolution = Evolution(
            iteration,
            strategy,
            settings=settings,
            around=self._around,
            standings=self._standings,
            past=self._past,
        )
        found = evolution.run()
        member = found.member
        if member is not None:
            self._join(member)
        self._steps.once(iteration_key(iteration, "evolve/end"), dict, identity=found.record)
        if found.failure is not None:
            self._failures[iteration] = found.failure
        subject = "" if member is None else member.id
        note = found.failure or ("" if member is None else member.description)
        self._tell(Progress(event=Event.PACKAGE, iteration=iteration, subject=subject, note=note))
        return None if member is None else member.id

    def _contest(self, iteration: int, plan: Plan, competitors: Sequence[str]) -> None:
        scored = {
            name: self._scorer.score(name, self._standings.members[name].package, plan.sample, iteration=iteration)
            for name in competitors
        }
        contest = ContestResult(
            iteration=iteration,
            kind=plan.kind.value,
            questions={name: tuple(question.id for question in asked) for name, asked in plan.sample.items()},
            right={name: one.right for name, one in scored.items()},
        )
        self._standings.apply(contest)
        record = {
            **contest_record(contest, self._standings.ratings),
            "analyses": {name: one.analyses_record for name, one in scored.items()},
        }
        self._steps.once(iteration_key(iteration, "end"), dict, identity=record)
        self._past.append(Past(contest=contest, scored=scored))
        figures = {name: contest.accuracy(name) for name in competitors}
        self._tell(Progress(event=Event.CONTEST, iteration=iteration, subject=plan.kind.value, figures=figures))

    def _contested(self) -> list[str]:
        """Everybody who was in a contest; the best rated first, since a budget may not reach all of them."""
        return [row.member.id for row in self._standings.table if row.tests]

    def _selected(self, name: str) -> tuple[int, int]:
        sample = {database: questions for database, questions in self._data.select.items() if questions}
        scored = self._scorer.score(name, self._standings.members[name].package, sample, iteration=0)
        record = {"right": sorted(scored.right), "questions": scored.total, "analyses": scored.analyses_record}
        self._steps.once(select_key(name), dict, identity=record)
        self._tell(
            Progress(event=Event.SELECT, iteration=0, subject=name, figures={name: len(scored.right) / scored.total})
        )
        return len(scored.right), scored.total

    def _champion(self, scores: Mapping[str, tuple[int, int]]) -> str:
        born = {name: member.iteration for name, member in self._standings.members.items()}
        if scores:
            return champion(scores, self._standings.ratings, born)
        return (self._contested() or list(self._standings.members))[0]

    def _join(self, member: Member) -> None:
        identity = {"digest": member.package.digest}
        self._steps.once(member_key(member.id), lambda: member_record(member, self._ports.journal), identity=identity)
        self._standings.join(load_member(member.id, self._ports.journal))

    def _at(self, iteration: int) -> Settings:
        """The settings that count in an iteration."""
        return next((settings for last, settings in self._earlier if iteration <= last), self._settings)

    def _stop_where_it_stopped(self) -> None:
        """A budget that has ended a run has ended it for good: its champion may have been used."""
        if self._steps.recorded(RUN_END) is not None:
            msg = "the run has stopped at this request before"
            raise BudgetExhausted(msg)

    def _tell(self, progress: Progress) -> None:
        self._scorer.tell(progress)


def _difference(field: str, before: object, now: object) -> str:
    """In words; of two mappings, the first entry that differs."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        name = next(name for name in {**before, **now} if before.get(name) != now.get(name))
        return _difference(f"{field}.{name}", before.get(name), now.get(name))
    return f"{field} {str(before)[:80]!r}, now it is {str(now)[:80]!r}"


def _check(
    settings: Settings,
    data: DataView,
    initial: Mapping[str, AgentPackage],
    earlier: Sequence[tuple[int, Settings]],
) -> None:
    if not initial:
        msg = "a run begins with at least one package; leave --package out to begin with the naive one"
        raise InputError(msg)
    names: dict[str, str] = {}
    for name, package in initial.items():
        twin = names.setdefault(package.digest, check_initial_id(name))
        if twin != name:
            msg = f"the packages {twin!r} and {name!r} are the same; leave one of them out"
            raise InputError(msg)
    for what, part in (("evolve", data.evolve), ("select", data.select)):
        if not any(part.values()):
            msg = f"no question is left for {what}; give more databases, or other shares"
            raise InputError(msg)
    for _, one in earlier:
        if one.answers != settings.answers or one.elo != settings.elo:
            msg = "a branch keeps the settings 'answers' and 'elo' of its run, since what it takes over rests on them"
            raise InputError(msg)
