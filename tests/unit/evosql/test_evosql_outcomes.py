"""What became of the requests for queries, as the journal of a question tells it."""

from __future__ import annotations

from typing import Any

from orchestrator.errors import ContextTooLong
from orchestrator.methods.evosql.calls import read_outcomes
from orchestrator.search.reply_kinds import ReplyKind


def test_replies_for_queries_are_counted_and_those_of_the_critic_are_not(labs: Any) -> None:
    lab = labs(rounds=1)
    lab.solve()
    assert lab.critic.asked
    assert read_outcomes(lab.journal).counts == {ReplyKind.TEXT: 4}
    assert read_outcomes(lab.journal).too_long is None


def test_conversations_that_were_too_long_are_counted_with_what_was_said(labs: Any) -> None:
    lab = labs(rounds=1)

    def refuses(_request: Any, _sampling: Any) -> str:
        msg = "m: the context holds 8192 tokens"
        raise ContextTooLong(msg)

    lab.generator.answers = {"Write a SQLite query": refuses}
    lab.solve()
    outcomes = read_outcomes(lab.journal)
    assert set(outcomes.counts) == {ReplyKind.TOO_LONG}
    assert outcomes.too_long == "m: the context holds 8192 tokens"
