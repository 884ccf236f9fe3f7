"""A run walked through once more from its journal alone: nothing is performed, and everything must come out the same.

What a run recorded is compared with what follows from its recorded requests, tool runs and queries: every contest with
its ratings, every package, the champion, and what was spent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from orchestrator.bootstrap.model_choices import access_in_force
from orchestrator.bootstrap.models import Models
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.bootstrap.robophd.data import EvolveData, data_view, load_evolve_data
from orchestrator.bootstrap.robophd.header import data_record, read_header, require_same, split_seed
from orchestrator.bootstrap.robophd.ports import JournalJudge
from orchestrator.bootstrap.robophd.running import UNCHANGED, Begun, Watch, recorded_packages, spent_record
from orchestrator.bootstrap.robophd.site import required_policy
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.bootstrap.sql.data import view_of
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.budgets import Budget, LedgerSnapshot
from orchestrator.domain.data_access import Access
from orchestrator.domain.model_access import ModelRole
from orchestrator.domain.policies import Policy, Purpose
from orchestrator.domain.sql import Description, QueryResult, Question
from orchestrator.domain.tool_runs import ToolRun
from orchestrator.errors import RunStateError
from orchestrator.evaluation.sql_judge import GOLD, SqlJudge, Standing, read_gold
from orchestrator.llm.unasked import UnaskedModel
from orchestrator.methods.robophd.members import load_members
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.results import RunResult
from orchestrator.methods.robophd.run import RUN_END, run_robophd
from orchestrator.ports import Database, Journal, LanguageModel
from orchestrator.runtime.ledger import Ledger
from orchestrator.search.replay import Mode
from orchestrator.search.sampling import DatabaseSplit

_REQUEST = re.compile(r"(?P<base>.*)/request/\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A run that came out the same."""

    run_id: str
    result: RunResult
    spent: LedgerSnapshot


def replay_evolution(places: Places, name: str, watch: Watch) -> Replayed:
    """Walk through a run that has ended, without a container and without writing anything.

    Args:
        places: Hold the home, and the policy.
        name: Of the run.
        watch: Of the caller.

    Raises:
        RunStateError: The run has not ended, its data or policy have changed, or something comes out otherwise than it
            was recorded; the message names the first difference.
        EvolvariumError: As `load_evolve_data` and `required_policy`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id, read_only=True) as journal:
        header, choices, settings, earlier = read_header(run_id, journal)
        unchanged = journal.get(UNCHANGED)
        if unchanged is None or journal.get(RUN_END) is None:
            msg = (
                f"run {run_id} has not ended, so there is nothing to compare with; `evolvarium resume {run_id}` ends it"
            )
            raise RunStateError(msg)
        policy = required_policy(places, choices)
        data = load_evolve_data(choices)
        split = data.split(split_seed(settings, earlier), choices.shares)
        _require_same_inputs(header, data, split, policy)
        select_questions = len(data.of(split.select))
        watch.on_start(
            Begun(run_id=run_id, choices=choices, settings=settings, split=split, select_questions=select_questions)
        )
        recorded = _Recorded(journal)
        ledger = Ledger(Budget(usd=choices.budget.usd, tokens=choices.budget.tokens))
        evaluable = [one for one in data.of((*split.evolve, *split.select)) if _is_evaluable(journal, one)]
        models = _stand_ins(choices, header, journal, policy, watch)
        try:
            result = run_robophd(
                settings=settings,
                data=data_view(evaluable, split),
                initial=recorded_packages(header, journal),
                ports=_ports(models, header, policy, data, evaluable, recorded, ledger, watch),
                earlier=earlier,
            )
            _require_same_results(result, ledger.snapshot(), journal, unchanged)
        except RunStateError as error:
            raise RunStateError(_difference(run_id, error, recorded)) from error
    return Replayed(run_id=run_id, result=result, spent=ledger.snapshot())


class _Recorded:
    """A journal that is only read, and remembers the first request it was asked for in vain."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.missing: str | None = None

    def get(self, key: str) -> Mapping[str, Any] | None:
        found = self._journal.get(key)
        asked = None if found is not None else _REQUEST.fullmatch(key)
        if asked is not None and self._journal.get(asked["base"]) is None:  # what has an outcome is only looked up
            self.missing = key
        return found

    def put(self, key: str, record: Mapping[str, Any]) -> NoReturn:  # noqa: ARG002 - as the port has it
        msg = f"step {key!r} is not in the journal"
        raise RunStateError(msg)

    def records(self, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        return self._journal.records(prefix)

    def put_blob(self, content: bytes) -> NoReturn:
        msg = f"a blob of {len(content)} bytes is not in the journal"
        raise RunStateError(msg)

    def get_blob(self, digest: str) -> bytes:
        return self._journal.get_blob(digest)


@dataclass(frozen=True, slots=True)
class _NoDatabase:
    """A database of which there is its digest alone."""

    name: str
    digest: str

    @property
    def description(self) -> Description:
        self._refuse("its description")

    @property
    def access(self) -> Access:
        self._refuse("its limits")

    def query(self, sql: str, *, attempt_id: str, reverse: bool = False) -> QueryResult:  # noqa: ARG002 - likewise
        self._refuse(f"query {sql[:60]!r} of step {attempt_id!r}")

    def query_all(self, queries: Sequence[str], *, attempt_id: str) -> list[QueryResult]:
        self._refuse(f"{len(queries)} queries of step {attempt_id!r}")

    def _refuse(self, what: str) -> NoReturn:
        msg = f"{what} on database {self.name!r} is not in the journal"
        raise RunStateError(msg)


class _NoDatabases:
    def __init__(self, header: Mapping[str, Any]) -> None:
        self._digests = {name: examined["volume"] for name, examined in header["databases"].items()}

    @contextmanager
    def open(self, name: str) -> Iterator[Database]:
        yield _NoDatabase(name, self._digests[name])


class _NoTools:
    def analyse(self, package: AgentPackage, database: Database, *, attempt_id: str, observe: bool = False) -> ToolRun:  # noqa: ARG002 - likewise
        msg = f"step {attempt_id!r} (package {package.digest[:19]} on {database.name!r}) is not in the journal"
        raise RunStateError(msg)


def _stand_ins(
    choices: EvolveChoices, header: Mapping[str, Any], journal: Journal, policy: Policy, watch: Watch
) -> tuple[LanguageModel, LanguageModel]:
    """Evolver and answerer; nobody is asked, so neither key nor server is needed."""
    models = Models(
        access_in_force(journal, choices.access),
        policy.models,
        token=watch.token,
        note=watch.note,
        context_tokens=header.get("context_tokens", {}),
        unasked=partial(UnaskedModel, is_priced=choices.budget.usd is not None),
    )
    return models.find(choices.evolver, ModelRole.EVOLVER), models.find(choices.answerer, ModelRole.ANSWERER)


def _ports(
    models: tuple[LanguageModel, LanguageModel],
    header: Mapping[str, Any],
    policy: Policy,
    data: EvolveData,
    evaluable: Sequence[Question],
    journal: _Recorded,
    ledger: Ledger,
    watch: Watch,
) -> RunPorts:
    judge = SqlJudge(journal, dataset=data.digest)
    return RunPorts(
        evolver=models[0],
        answerer=models[1],
        tools=_NoTools(),
        tool_limits=policy.purposes[Purpose.TOOL].limits,
        databases=_NoDatabases(header),
        judge=JournalJudge(judge, journal, {question.id: question for question in evaluable}),
        journal=journal,
        ledger=ledger,
        cancel=watch.token,
        mode=Mode.REPLAY,
        on_event=watch.on_event,
    )


def _is_evaluable(journal: Journal, question: Question) -> bool:
    gold = read_gold(journal, view_of(question).key + GOLD)
    return gold is not None and gold.standing is Standing.EVALUABLE


def _require_same_inputs(header: Mapping[str, Any], data: EvolveData, split: DatabaseSplit, policy: Policy) -> None:
    now = {"data": data_record(data, split), "policy": {"name": policy.name, "digest": policy.digest()}}
    require_same(header, {**header, **now})


def _require_same_results(
    result: RunResult, spent: LedgerSnapshot, journal: Journal, unchanged: Mapping[str, Any]
) -> None:
    """What no step's identity has compared already."""
    members = {member.id: member.package.digest for member in load_members(journal)}
    found = {member.id: member.package.digest for member in result.members}
    for name in {**members, **found}:
        if members.get(name) != found.get(name):
            msg = f"package {name!r} was recorded as {members.get(name)}, and now is {found.get(name)}"
            raise RunStateError(msg)
    ledger = spent_record(spent)
    for part, now in ledger.items():
        before = unchanged.get("spent", {}).get(part)
        if before != now:
            msg = f"{part} of the ledger was recorded as {before}, and now is {now}"
            raise RunStateError(msg)


def _difference(run_id: str, error: RunStateError, recorded: _Recorded) -> str:
    found = str(error)
    if RUN_END in found and recorded.missing is not None:
        found = f"request {recorded.missing!r} is not in the journal"
    return f"the replay of run {run_id} comes to something else than was recorded: {found}"
