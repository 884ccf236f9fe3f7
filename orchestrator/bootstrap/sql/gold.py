"""The gold queries of a data set, run before anything is answered: what can be evaluated at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from orchestrator.bootstrap.sql.data import view_of
from orchestrator.bootstrap.sql.databases import Place, for_each
from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.evaluation.databases import Domain
from orchestrator.evaluation.sql_judge import Asked, Gold, SqlJudge, Standing

_REASON_CHARACTERS = 200


def run_gold(
    place: Place, questions: Sequence[Question], judge: SqlJudge, *, label: str, note: Callable[[str], None]
) -> list[Question]:
    """Run the gold queries, several databases at once; the questions that can be evaluated, by database.

    Args:
        place: Of their databases.
        questions: Of the run.
        judge: Keeps the results.
        label: Of the data set, in words.
        note: Told what takes a while, and what a data rule names that is not there.

    Raises:
        InputError: None of the questions can be evaluated, so that there would be nothing to say.
        EvolvariumError: As `SqlJudge.run_gold` and `DatabaseStore.open`.
    """
    note(f"running {len(questions)} gold queries of {label}, and each again like a prediction")

    def judged(name: str) -> tuple[list[tuple[Question, Gold]], Sequence[str]]:
        mine = [question for question in questions if question.database == name]
        asked = [Asked(key=view_of(question).key, gold=question.gold) for question in mine]
        checking = place.open(name, Domain.PREDICTED, is_patient=True)
        with place.open(name, Domain.GOLD) as gold, checking as predicted:
            golds = judge.run_gold(asked, gold, predicted)
        return list(zip(mine, golds, strict=True)), predicted.suspicions

    found = for_each(place, judged)
    for suspicion in [line for _, suspicions in found.values() for line in suspicions]:
        note(suspicion)
    every = [one for part, _ in found.values() for one in part]
    evaluable = [question for question, gold in every if gold.standing is Standing.EVALUABLE]
    if not evaluable:
        raise InputError(_nothing(every, label, place.run_id))
    return evaluable


def _nothing(every: Sequence[tuple[Question, Gold]], label: str, run_id: str) -> str:
    counts = Counter(gold.standing.value for _, gold in every)
    question, gold = every[0]
    return (
        f"none of the {len(every)} questions of {label} can be evaluated "
        f"({', '.join(f'{count} {standing}' for standing, count in counts.items())}; question {question.id}: "
        f"{gold.message[:_REASON_CHARACTERS]}); `evolvarium show {run_id}` says why of each: start anew with other "
        "questions, or under a policy that lets their gold queries run"
    )
