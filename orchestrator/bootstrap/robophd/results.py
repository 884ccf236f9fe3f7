"""An evolution's figures, from its journal alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from orchestrator.bootstrap.pauses import pause_of
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.bootstrap.robophd.final import PREFIX
from orchestrator.bootstrap.robophd.header import read_header
from orchestrator.bootstrap.robophd.records import (
    EndRecord,
    EvolveEndRecord,
    FinalRecord,
    PlanRecord,
    RunEndRecord,
    SelectRecord,
    parsed,
    read,
    sound,
)
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.domain.conversation import Reply, Usage
from orchestrator.domain.records import from_record
from orchestrator.evaluation.sql_judge import GOLD, Gold, Standing, read_gold
from orchestrator.methods.robophd.keys import journal_name
from orchestrator.methods.robophd.members import Member, load_members
from orchestrator.methods.robophd.run import RUN_END, select_key
from orchestrator.methods.robophd.settings import Settings
from orchestrator.methods.robophd.standings import (
    ContestResult,
    Row,
    Standings,
    contest_from_record,
    iteration_key,
)
from orchestrator.ports import Journal
from orchestrator.search.bradley_terry import Estimate, QuestionOutcome, fit
from orchestrator.search.paired import PairedDifference, paired_difference
from orchestrator.search.spending import Spending
from orchestrator.search.streams import stream

_ROLES = {"it": "evolver", "hybrid": "hybrid", "answer": "answerer"}
_FINAL = "final"
"""In the place of a role, what answers and analyses on the final databases took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalScore:
    """One package and answer model on the final databases."""

    package: str
    model: str
    right: Mapping[str, bool]
    """By question id."""
    groups: Mapping[str, Hashable]
    """Of equal ones, questions are no independent evidence."""
    databases: Mapping[str, tuple[int, int]]
    """(right, questions) of each."""
    hybrid_databases: int
    """Where the tool failed and a model made up for it."""
    requests: int
    usage: Usage
    hybrid_usage: Usage
    """The part of it that making up for tools took."""

    @property
    def accuracy(self) -> float:
        """From 0 to 1."""
        return sum(self.right.values()) / len(self.right)

    @property
    def usd_per_question(self) -> Decimal | None:
        """None: a price is unknown."""
        return None if self.usage.usd is None else self.usage.usd / len(self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationResult:
    """One iteration as far as it came."""

    number: int
    kind: str
    strategy: str | None
    newcomer: str | None
    failure: str | None
    """Of its evolution; None: it made a package, or there was none."""
    requests: int
    """Of the evolver."""
    contest: ContestResult | None
    """None: it has not ended."""
    ratings: Mapping[str, float]
    """After it."""
    hybrid: int
    """Analyses that a model made because a tool failed."""
    analyses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldStanding:
    """Whether one question can be evaluated."""

    id: str
    database: str
    gold: Gold


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionResults:
    """A run as its journal has it."""

    run_id: str
    choices: EvolveChoices
    settings: Settings
    models: Mapping[str, str]
    data: Mapping[str, Any]
    iterations: tuple[IterationResult, ...]
    members: tuple[Member, ...]
    table: tuple[Row, ...]
    """Best rating first."""
    bradley_terry: Mapping[str, Estimate]
    selection: Mapping[str, tuple[int, int]]
    """Package to (right, questions)."""
    golds: tuple[GoldStanding, ...]
    """Of the questions whose gold queries have run."""
    champion: str | None
    """None: the run has not ended."""
    ending: str | None
    """Likewise."""
    finals: tuple[FinalScore, ...]
    spent: Mapping[str, tuple[int, Usage]]
    """Role to (requests, usage), from the replies that were recorded; lost calls are only in a live ledger. `final` is
    all that was asked on the final databases, whatever the role."""
    ledger: tuple[Spending, ...]
    """By role and model, on all databases together."""
    pause: str | None
    """Why it is paused; None: it is not."""

    @property
    def standings(self) -> dict[str, int]:
        """How many questions can be evaluated, and how many cannot, by reason."""
        return dict(Counter(one.gold.standing.value for one in self.golds))

    @property
    def left_out(self) -> list[GoldStanding]:
        """The questions that cannot be evaluated."""
        return [one for one in self.golds if one.gold.standing is not Standing.EVALUABLE]

    def advantage(self, score: FinalScore, over: FinalScore) -> PairedDifference:
        """How much more accurate one final score is than another, with its interval."""
        ids = list(score.right)
        return paired_difference(
            [score.right[id_] for id_ in ids],
            [over.right[id_] for id_ in ids],
            [score.groups[id_] for id_ in ids],
            generator=stream(self.settings.seed, "final"),
        )


def read_results(run_id: str, journal: Journal) -> EvolutionResults:
    """The figures of a run, ended or not.

    Raises:
        RunStateError: It is no evolution, or its journal is damaged.
    """
    header, choices, settings, _ = read_header(run_id, journal)
    with sound(run_id):
        return _results(run_id, journal, header, choices, settings)


def _results(
    run_id: str, journal: Journal, header: Mapping[str, Any], choices: EvolveChoices, settings: Settings
) -> EvolutionResults:
    members = load_members(journal)
    standings = Standings(elo=settings.elo)
    for member in members:
        standings.join(member)
    iterations = tuple(_iterations(journal, settings))
    for one in iterations:
        if one.contest is not None:
            standings.apply(one.contest)
    end = read(RunEndRecord, journal, RUN_END)
    if end is not None and end.champion not in standings.members:
        msg = f"there is no package {end.champion!r}, its champion"
        raise ValueError(msg)
    selection = {
        member.id: (len(record.right), record.questions)
        for member in members
        if (record := read(SelectRecord, journal, select_key(member.id))) is not None
    }
    return EvolutionResults(
        run_id=run_id,
        choices=choices,
        settings=settings,
        models=header["models"],
        data=header["data"],
        iterations=iterations,
        members=members,
        table=standings.table,
        bradley_terry=fit(_outcomes(journal, iterations), generator=stream(settings.seed, "bradley-terry")),
        selection=selection,
        golds=tuple(_golds(journal, header)),
        champion=None if end is None else end.champion,
        ending=None if end is None else end.ending,
        finals=_finals(journal),
        spent=_spent(journal, header),
        ledger=read_ledger(journal),
        pause=pause_of(journal),
    )


def _iterations(journal: Journal, settings: Settings) -> Iterator[IterationResult]:
    for number in range(1, settings.iterations + 1):
        plan = read(PlanRecord, journal, iteration_key(number, "plan"))
        if plan is None:
            return
        evolved = read(EvolveEndRecord, journal, iteration_key(number, "evolve/end"))
        end = read(EndRecord, journal, iteration_key(number, "end"))
        sources = [] if end is None else [one.source for by in end.analyses.values() for one in by.values()]
        yield IterationResult(
            number=number,
            kind=plan.kind,
            strategy=plan.strategy,
            newcomer=None if evolved is None else evolved.package,
            failure=None if evolved is None else evolved.failure,
            requests=0 if evolved is None else evolved.requests,
            contest=None if end is None else contest_from_record(number, end.model_dump()),
            ratings={} if end is None else end.ratings,
            hybrid=sources.count("hybrid"),
            analyses=len(sources),
        )


def _outcomes(journal: Journal, iterations: Sequence[IterationResult]) -> list[QuestionOutcome]:
    found = []
    for one in iterations:
        plan = None if one.contest is None else read(PlanRecord, journal, iteration_key(one.number, "plan"))
        if one.contest is None or plan is None:
            continue
        competitors = frozenset(one.contest.right)
        for questions in plan.questions.values():
            for id_, group in questions:
                right = frozenset(name for name, ids in one.contest.right.items() if id_ in ids)
                found.append(QuestionOutcome(group=group, right=right, wrong=competitors - right))
    return found


def _golds(journal: Journal, header: Mapping[str, Any]) -> Iterator[GoldStanding]:
    for key, id_, database in header["questions"]:
        gold = read_gold(journal, key + GOLD)
        if gold is not None:
            yield GoldStanding(id=id_, database=database, gold=gold)


def _finals(journal: Journal) -> tuple[FinalScore, ...]:
    found = []
    for key, record in journal.records(PREFIX):
        one = parsed(FinalRecord, key, record)
        found.append(
            FinalScore(
                package=one.package,
                model=one.model,
                right={str(id_): bool(is_right) for id_, _, is_right in one.rows},
                groups={str(id_): group for id_, group, _ in one.rows},
                databases={
                    name: (sum(bool(row[2]) for row in mine), len(mine)) for name, mine in one.questions.items()
                },
                hybrid_databases=list(one.analyses.values()).count("hybrid"),
                requests=one.requests,
                usage=from_record(Usage, one.usage),
                hybrid_usage=from_record(Usage, one.hybrid_usage),
            )
        )
    if any(score.groups != found[0].groups for score in found):
        msg = "final scores are of different questions"
        raise ValueError(msg)
    return tuple(found)


def _spent(journal: Journal, header: Mapping[str, Any]) -> dict[str, tuple[int, Usage]]:
    final = set(header["data"]["final"])
    names = {
        "answer": {journal_name(id_) for _, id_, database in header["questions"] if database in final},
        "hybrid": set(map(journal_name, final)),
    }
    spent: dict[str, tuple[int, Usage]] = {}
    for start, role in _ROLES.items():
        for key, record in journal.records(start):
            if "/request/" in key and "reply" in record:
                about = _FINAL if key.split("/")[2] in names.get(start, ()) else role
                requests, usage = spent.get(about, (0, Usage()))
                spent[about] = (requests + 1, usage + from_record(Reply, record["reply"]).usage)
    return dict(sorted(spent.items(), key=lambda one: one[0] == _FINAL))
