"""Tables 11 and 12 and equation (14), by hand and from a run's journal."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.conversation import Usage
from orchestrator.errors import RunStateError
from orchestrator.methods.evosql.accounting import (
    Activity,
    Tokens,
    aggregate_savings,
    calls_by_question,
    early_stop_table,
    rounds_made,
    token_table,
)
from orchestrator.methods.evosql.calls import Call, Phase, read_calls, request_key


def call(phase: Phase, number: int, infill: int, decode: int, cached: int = 0) -> Call:
    usage = Usage(input_tokens=infill - cached, cached_input_tokens=cached, output_tokens=decode)
    return Call(phase=phase, round=number, usage=usage)


STOPPED = [
    *(call(Phase.ELICIT, 0, 100, decode) for decode in (10, 20, 30)),
    call(Phase.CRITIC, 0, 200, 7),
]
WHOLE = [
    *(call(Phase.ELICIT, 0, 110, 10, cached=50) for _ in range(3)),
    call(Phase.CRITIC, 0, 210, 8),
    call(Phase.CRITIC, 0, 220, 9),  # asked again
    *(call(Phase.AGGREGATE, 1, 300, 5) for _ in range(3)),
    call(Phase.CRITIC, 1, 230, 6),
    call(Phase.CHOOSE, 1, 9999, 9999),
]


def test_the_token_table_by_hand() -> None:
    first, second, total = token_table([STOPPED, WHOLE], rounds=2)
    assert first.generator == Tokens(infill=100 + 110, cached=50, decode=60 + 30)
    assert first.equivalent == Tokens(infill=300 + 330, cached=150, decode=60 + 30)
    assert first.critic == Tokens(infill=200 + 210 + 220, decode=7 + 8 + 9)
    assert (second.generator, second.equivalent) == (Tokens(infill=900, decode=15),) * 2
    assert second.critic == Tokens(infill=230, decode=6)
    assert (total.round, total.total) == (None, first.total + second.total)
    assert total.total_equivalent - total.total == 630 - 210


def test_without_the_last_rounds_critic_only_its_tokens_are_missing() -> None:
    with_it = token_table([STOPPED, WHOLE], rounds=2)
    without = token_table([STOPPED, WHOLE], rounds=2, critic_last_round=False)
    assert without[1].critic == Tokens()
    assert without[0] == with_it[0]
    assert with_it[-1].total - without[-1].total == 236


def test_no_questions_make_an_empty_table() -> None:
    assert [row.total for row in token_table([], rounds=2)] == [0, 0, 0]
    assert early_stop_table([], candidates=16, rounds=1)[0].stopped_share == 0
    assert aggregate_savings([], candidates=16, rounds=3).share is None


def test_the_totals_of_the_papers_table_12_come_out() -> None:
    made = [1] * (6136 - 3239) + [2] * (3239 - 2775) + [3] * 2775
    table = early_stop_table(made, candidates=16, rounds=3)
    assert [(a.outputs, a.active) for a in table] == [(98_176, 6136), (51_824, 3239), (44_400, 2775)]
    assert [f"{100 * a.stopped_share:.1f}" for a in table] == ["0.0", "47.2", "54.8"]
    savings = aggregate_savings(made, candidates=16, rounds=3)
    assert (savings.made, savings.without_stopping) == (51_824 + 44_400, 2 * 98_176)
    assert savings.share == pytest.approx(0.510, abs=5e-4)


def test_a_single_round_has_nothing_to_save() -> None:
    assert early_stop_table([1, 1], candidates=4, rounds=1) == (
        Activity(round=0, active=2, outputs=8, stopped_share=0.0),
    )
    assert aggregate_savings([1, 1], candidates=4, rounds=1).share is None


def test_a_journal_tells_what_the_solutions_tell(labs: Any) -> None:
    lab = labs()
    first, solution, other, choice = lab.everything()
    recorded = read_calls(lab.journal)
    assert set(recorded) == {"q/17"}
    methods = recorded["q/17"]
    assert set(methods) == {"", "evosql", "self-evolution"}
    assert methods[""] == first.calls
    chosen = tuple(c for c in methods["evosql"] if c.phase is Phase.CHOOSE)
    assert tuple(c for c in methods["evosql"] if c.phase is not Phase.CHOOSE) == solution.calls
    assert [c.usage for c in chosen] == [c.usage for c in choice.calls]
    assert methods["self-evolution"] == other.calls
    (calls,) = calls_by_question(recorded, "evosql")
    rows = token_table([calls], rounds=3)
    assert rows == token_table([(*first.calls, *solution.calls)], rounds=3)
    spent = lab.ledger.snapshot().by_role
    booked = sum(spent[role].usage.tokens for role in ("elicit", "evosql/aggregate", "evosql/critic"))
    assert rows[-1].total_equivalent == booked
    assert rounds_made([solution, other]) == (len(solution.rounds), 3)


def test_announcements_and_other_records_are_no_calls(labs: Any) -> None:
    lab = labs()
    lab.generator.is_repeatable = lab.critic.is_repeatable = False
    first, solution, _, _ = lab.everything()
    calls = read_calls(lab.journal)["q/17"]
    assert len(calls[""]) == len(first.calls)
    assert any(key.endswith("/sent") for key in lab.keys)
    assert sum(c.phase is not Phase.CHOOSE for c in calls["evosql"]) == len(solution.calls)


def test_a_request_without_a_reply_is_damage(kit: Any) -> None:
    journal = kit.MemoryJournal()
    journal.put(request_key("q/1", "evosql", Phase.CRITIC, 2, 1), {"conversation": "sha256:0"})
    with pytest.raises(RunStateError, match="it holds no reply"):
        read_calls(journal)
