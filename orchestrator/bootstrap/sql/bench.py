"""`sql bench`: a data set measured from its gold queries to the comparison of digests, resumable at any moment.

First every gold query runs, in containers of its own, and again like a prediction; only what can be evaluated is then
answered by the methods. The figures are computed from the journal alone (`results.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.bootstrap.model_choices import NOTHING_GIVEN, GivenAccess
from orchestrator.bootstrap.places import Places
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.configurations import Configuration
from orchestrator.bootstrap.sql.data import load_data
from orchestrator.bootstrap.sql.first_rounds import require_first_round
from orchestrator.bootstrap.sql.gold import run_gold
from orchestrator.bootstrap.sql.header import bench_header, read_header, require_same
from orchestrator.bootstrap.sql.question_texts import texts_bytes
from orchestrator.bootstrap.sql.questions import Follow, evaluate, recorded
from orchestrator.bootstrap.sql.running import Ended, Opened, Perform, Recorded, Watch, begin, go_on
from orchestrator.evaluation.sql_judge import SqlJudge
from orchestrator.methods.evosql import Settings
from orchestrator.ports import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A bench that has its journal."""

    run_id: str
    choices: BenchChoices
    settings: Settings
    questions: int


def begin_bench(places: Places, choices: BenchChoices, settings: Settings, watch: Watch[Begun]) -> Ended:
    """Measure a data set from the beginning.

    Raises:
        BudgetExhausted: The budget covers no question's first round; nothing is kept.
        EvolvariumError: As `running.begin`.
    """
    data = load_data(choices)

    def header(opened: Sequence[Opened], journal: Journal) -> Mapping[str, Any]:
        require_first_round(choices.budget, opened, [settings])
        texts = journal.put_blob(texts_bytes(data.questions))
        return bench_header(choices, settings, data, opened[0].conditions, texts)

    return begin(places, [(data, choices)], settings, watch, header=header, perform=_performer(watch))


def resume_bench(places: Places, name: str, watch: Watch[Begun], given: GivenAccess = NOTHING_GIVEN) -> Ended:
    """Continue a bench where its journal ends; one that has ended needs nothing.

    Args:
        places: Hold the home.
        name: Of the run.
        watch: Of the caller.
        given: What is said anew about its models.

    Raises:
        EvolvariumError: As `running.go_on`.
    """

    def read(run_id: str, journal: Journal) -> Recorded:
        header, choices, settings = read_header(run_id, journal)
        return Recorded(
            measured=lambda: [(load_data(choices), choices)],
            settings=settings,
            choices=choices,
            context_tokens=header.get("context_tokens", {}),
            require_same=lambda opened: require_same(header, opened[0].conditions),
            perform=_performer(watch),
        )

    return go_on(places, name, watch, read, given)


def _performer(watch: Watch[Begun]) -> Perform:
    return lambda opened, run_id, journal: _perform(opened[0], run_id, journal, watch)


def _perform(bench: Opened, run_id: str, journal: Journal, watch: Watch[Begun]) -> Mapping[str, Any]:
    """Answer what is not answered yet; gives the record of the end."""
    place, data = bench.place, bench.data
    watch.on_start(Begun(run_id=run_id, choices=bench.choices, settings=bench.settings, questions=len(data.questions)))
    judge = SqlJudge(journal, dataset=data.dataset.digest)
    evaluable = run_gold(place, data.questions, judge, label=data.dataset.name, note=watch.note)
    configuration = Configuration(
        settings=bench.settings,
        methods=bench.choices.methods,
        generator=bench.generator,
        critic=bench.critic,
        budget=bench.choices.budget.share(len(evaluable)),
    )
    before = (recorded(journal, question, configuration) for question in evaluable)
    watch.on_total(len(evaluable), (outcome for outcome in before if outcome is not None))
    evaluate(
        evaluable,
        configuration,
        place=place,
        texts=bench.texts,
        judge=judge,
        journal=journal,
        follow=Follow(token=watch.token, on_outcome=watch.on_outcome, on_event=watch.on_event),
    )
    return {"unchanged": sorted(place.paths)}
