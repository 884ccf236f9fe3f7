"""The final figures: packages on databases that nothing was decided by, scored once each.

The first call opens the final databases, and the journal records that and every score; what has a score keeps it. With
several answer models this is the paper's Table 1: one package, many models, accuracy and cost of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.bootstrap.ledger import RememberingLedger
from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess, access_in_force, record_access
from orchestrator.bootstrap.model_names import name_in_records, require_name
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.robophd.data import by_database, view_of
from orchestrator.bootstrap.robophd.header import read_header, require_same, split_seed
from orchestrator.bootstrap.robophd.ports import JournalJudge, SharedDatabases
from orchestrator.bootstrap.robophd.running import UNCHANGED, Watch
from orchestrator.bootstrap.robophd.site import Site, evaluable_questions, evolution_models, open_site
from orchestrator.bootstrap.runs import find_run, run_store
from orchestrator.bootstrap.sql.choices import SqlBudget
from orchestrator.bootstrap.sql.databases import compare_digests
from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import ModelAccess, ModelRole
from orchestrator.domain.policies import Purpose
from orchestrator.domain.records import to_record
from orchestrator.errors import RunStateError
from orchestrator.evaluation.database_tools import SandboxDatabaseTools
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.robophd.answering import AnswerContext
from orchestrator.methods.robophd.keys import AnswerKeys, journal_name
from orchestrator.methods.robophd.members import load_member
from orchestrator.methods.robophd.ports import RunPorts
from orchestrator.methods.robophd.run import RUN_END
from orchestrator.methods.robophd.scoring import Scored, Scorer
from orchestrator.ports import Journal
from orchestrator.search.replay import Steps

NO_CEILING = SqlBudget()
OPENED = "final/opened"
PREFIX = "final/score/"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRequest:
    """What is to be scored."""

    packages: tuple[str, ...] = ()
    """Ids; empty: the champion and the packages that the run began with."""
    models: tuple[str, ...] = ()
    """Answer models; empty: the run's."""
    budget: SqlBudget = NO_CEILING
    """Of everything that is scored together; what an interrupted call has answered counts again."""
    given: GivenAccess = NOTHING_GIVEN
    """What is said anew about models."""


def final_key(package: str, model: str) -> str:
    """The journal key of a final score.

    Args:
        package: Id.
        model: Name.
    """
    return f"{PREFIX}{package}:{journal_name(model)}"


def score_final(
    places: Places,
    name: str,
    request: FinalRequest,
    watch: Watch,
    on_score: Callable[[Mapping[str, Any]], object] = lambda _: None,
) -> str:
    """Score packages on the final databases, each once for each model; what has a score is not scored again.

    Args:
        places: Of this invocation.
        name: Of the run.
        request: What is to be scored.
        watch: Of the caller.
        on_score: Told the record of every score, old ones as well.

    Returns:
        The run's id.

    Raises:
        RunStateError: The run has not ended, has no such package, or data, policy or images have changed.
        InputError: There is no such model.
        BudgetExhausted: The budget did not cover all of it; what was answered is recorded.
        EvolvariumError: Otherwise as `begin_evolution`.
    """
    run_id = find_run(run_store(places), name)
    with run_store(places).open(run_id) as journal:
        header, choices, settings, earlier = read_header(run_id, journal)
        champion = _champion(run_id, journal)
        packages = tuple(dict.fromkeys(request.packages or (champion, *header["initial"])))
        before = access_in_force(journal, choices.access)
        access = request.given.over(before)
        models = _models(request.models or (header["models"]["answerer"],), access)
        members = {package: load_member(package, journal).package for package in packages}
        wanted = [(package, model) for model in models for package in packages]
        missing = [one for one in wanted if journal.get(final_key(*one)) is None]
        if missing:
            with (
                evolution_models(
                    places,
                    choices,
                    access=access,
                    wanted=[(ModelRole.ANSWERER, model) for model in dict.fromkeys(model for _, model in missing)],
                    in_usd=request.budget.usd is not None,
                    token=watch.token,
                    note=watch.note,
                    context_tokens=header.get("context_tokens", {}),
                    said=request.given,
                ) as found,
                open_site(
                    places,
                    choices,
                    settings,
                    run_id=run_id,
                    token=watch.token,
                    note=watch.note,
                    models=found.find,
                    split_seed=split_seed(settings, earlier),
                ) as site,
            ):
                require_same(header, site.conditions)
                record_access(journal, before, access)
                ledger = _ledger(request.budget)
                finals = _Finals(site, run_id, journal, watch, ledger=ledger, own_model=header["models"]["answerer"])
                for package, model in missing:
                    finals.score(package, members[package], model)
        for one in wanted:
            on_score(journal.get(final_key(*one)) or {})
    return run_id


def _models(names: Sequence[str], access: ModelAccess) -> tuple[str, ...]:
    """Models as records name them, each once."""
    for name in names:
        require_name(name, access)
    return tuple(dict.fromkeys(map(name_in_records, names)))


def _champion(run_id: str, journal: Journal) -> str:
    """The champion of a run that nothing can change any more."""
    end = journal.get(RUN_END)
    if end is None or journal.get(UNCHANGED) is None:
        msg = (
            f"run {run_id} has not ended, and final databases are opened only for packages that nothing can change any "
            f"more; `evolvarium resume {run_id}` ends it"
        )
        raise RunStateError(msg)
    return str(end["champion"])


def _ledger(budget: SqlBudget) -> RememberingLedger:
    return RememberingLedger(
        Budget(usd=budget.usd, tokens=budget.tokens),
        spender="this scoring",
        way_out="what is answered is kept, so score again with a higher limit on",
    )


class _Finals:
    """The final databases, opened once for everything that is scored on them."""

    def __init__(
        self, site: Site, run_id: str, journal: Journal, watch: Watch, *, ledger: RememberingLedger, own_model: str
    ) -> None:
        self._site = site
        self._run_id = run_id
        self._journal = journal
        self._watch = watch
        self._ledger = ledger
        self._own_model = own_model
        self._judge = SqlJudge(journal, dataset=site.data.digest)
        self._questions = evaluable_questions(site, site.split.final, self._judge, watch.note)
        self._steps = Steps(journal)
        opened = {"databases": list(site.split.final), "questions": len(self._questions)}
        self._steps.once(OPENED, dict, identity=opened)

    def score(self, label: str, package: AgentPackage, model_name: str) -> None:
        """Record a package's final score, once its databases are seen to be what they were."""
        place = self._site.only(self._site.split.final)
        sample = by_database(list(map(view_of, self._questions)), self._site.split.final)
        scored = self._scorer(model_name).score(label, package, sample, iteration=0)
        compare_digests(place, self._site.conditions["databases"])
        self._journal.put(final_key(label, model_name), {"package": label, **_record(scored, model_name)})

    def _scorer(self, model_name: str) -> Scorer:
        model, sandbox = self._site.models(model_name, ModelRole.ANSWERER), self._site.place.sandbox
        ports = RunPorts(
            evolver=model,
            answerer=model,
            tools=SandboxDatabaseTools(sandbox, run_id=self._run_id),
            tool_limits=sandbox.policy.purposes[Purpose.TOOL].limits,
            databases=SharedDatabases(self._site.place),
            judge=JournalJudge(self._judge, self._journal, {question.id: question for question in self._questions}),
            journal=self._journal,
            ledger=self._ledger,
            cancel=self._watch.token,
            workers=self._site.place.workers,
            on_event=self._watch.on_event,
        )
        context = AnswerContext(
            model=model,
            steps=self._steps,
            ledger=self._ledger,
            settings=self._site.settings.answers,
            seed=self._site.seed,
            cancel=ports.cancel,
            keys=AnswerKeys(variant="" if model_name == self._own_model else model_name),
        )
        return Scorer(context, ports)


def _record(scored: Scored, model: str) -> dict[str, Any]:
    usages = [answer.usage for answer in scored.answers.values()]
    usages += [analysis.hybrid_usage for analysis in scored.analyses.values()]
    total = sum(usages, Usage())
    return {
        "model": model,
        "questions": {
            name: [[question.id, question.group, scored.judged[question.id].is_right] for question in questions]
            for name, questions in scored.sample.items()
        },
        "analyses": {name: analysis.source.value for name, analysis in scored.analyses.items()},
        "requests": sum(answer.requests for answer in scored.answers.values()),
        "usage": to_record(total),
        "hybrid_usage": to_record(sum((a.hybrid_usage for a in scored.analyses.values()), Usage())),
    }
