"""What `sql ask` makes of a critic that cannot be read, or is never asked: no figure that nobody gave."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from orchestrator.bootstrap.sql.confidence import is_confident, known_confidence
from orchestrator.cli.sql_answers import critics_doubts
from orchestrator.domain.budgets import Budget
from orchestrator.methods.evosql import Ending
from orchestrator.runtime.ledger import Ledger

JUDGE = "Judge SQLite queries"


def test_a_critic_whose_replies_cannot_be_read_gives_no_confidence(kit: Any, labs: Any) -> None:
    lab = labs(rounds=1)
    lab.generator.answers = {**lab.generator.answers, "Write a SQLite query": kit.says(kit.RIGHT, kit.WRONG)}
    lab.critic.answers = {JUDGE: lambda _request, _sampling: "I cannot say."}
    solution = lab.solve()
    assert solution.answer.is_valid
    assert known_confidence(solution) is None
    assert critics_doubts(solution) == ["the critic's replies could not be read (4 of 4 candidates)"]
    assert not is_confident(known_confidence(solution), 0.0, withheld=(), unplaced=None)


def test_a_critic_that_can_be_read_gives_its_figure_and_what_it_found(labs: Any) -> None:
    solution = labs(rounds=1).solve()
    assert known_confidence(solution) == solution.rounds[-1].assessment.answer.confidence == 3.0
    assert critics_doubts(solution) == ["no restriction to Oslo"]


def test_a_candidate_left_out_of_a_readable_reply_has_no_figure_either(kit: Any, labs: Any) -> None:
    lab = labs(rounds=1)
    lab.generator.answers = {**lab.generator.answers, "Write a SQLite query": kit.says(kit.RIGHT, kit.WRONG)}

    def forgetful(request: Any, sampling: Any) -> str:
        del sampling
        document = kit.evaluations(request, lambda candidate: 0 if kit.true_score(candidate) > 3 else 1)
        document["evaluations"] = [one for one in document["evaluations"] if 0 not in one["scores"].values()]
        return json.dumps(document)

    lab.critic.answers = {JUDGE: forgetful}
    solution = lab.solve()
    left_out = sum(entry.content.critique is None for entry in solution.entries)
    assert 0 < left_out < 4
    assert known_confidence(solution) is None
    assert critics_doubts(solution) == [f"the critic's replies could not be read ({left_out} of 4 candidates)"]


def test_an_answer_that_the_budget_left_unjudged_has_no_figure(kit: Any, labs: Any) -> None:
    lab = labs(rounds=1)
    lab.generator.answers = {**lab.generator.answers, "Write a SQLite query": kit.says(kit.RIGHT)}
    lab.ledger = Ledger(Budget(usd=Decimal("0.085")))
    solution = lab.solve()
    assert solution.ending is Ending.BUDGET
    assert lab.critic.asked == []
    assert known_confidence(solution) is None
    assert critics_doubts(solution) == ["the budget was spent before anybody judged it"]
