"""A question whose models are cut off, refuse, only think, lose replies or find it too long; and samples."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.domain.conversation import AssistantMessage, NativeMessage, Sampling, StopReason, Usage, UserMessage
from orchestrator.errors import BudgetExhausted, ContextTooLong, LostReply
from orchestrator.methods.evosql.accounting import token_table
from orchestrator.methods.evosql.calls import Call, Phase, read_calls
from orchestrator.ports import ManySamples
from orchestrator.search.replay import Mode
from tests.memory_journal import Killed

WRITE = "Write a SQLite query"
JUDGE = "Judge SQLite queries"


def state(lab: Any) -> dict[str, str]:
    """The journal without announcements, whose number tells how often a call was cut off."""
    return {key: text for key, text in lab.journal.entries.items() if not key.endswith(("/sent", "/void"))}


def sampling_lab(kit: Any, labs: Any, **settings: Any) -> Any:
    """A laboratory whose generator gives three replies at once."""
    lab = labs(**settings)
    plain = lab.generator
    lab.generator = kit.Sampler(plain.answers, name=plain.name, is_repeatable=False)
    lab.critic.is_repeatable = False
    assert isinstance(lab.generator, ManySamples)
    return lab


def answers(found: Any) -> Any:
    """What methods came to; which of the samples paid for the prompt depends on which of them came together."""
    first, solution, other, choice = found
    return first.candidates, [r.answer for r in solution.rounds], [r.answer for r in other.rounds], choice.answer


def raising(title: str, error: Exception, *, times: int = 1) -> Any:
    """Called before a request: raises for the first ones of a title."""
    left = [times]

    def before(request: Any, _: Sampling) -> None:
        if request.title == title and left[0] > 0:
            left[0] -= 1
            raise error

    return before


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_first_round_in_few_calls_is_the_one_that_many_calls_give(kit: Any, labs: Any, parallel: int) -> None:
    plain, lab = labs(candidates=8), sampling_lab(kit, labs, candidates=8)
    plain.generator.is_repeatable = plain.critic.is_repeatable = False
    lab.parallel = parallel
    expected, found = plain.elicit(), lab.elicit()
    assert found.candidates == expected.candidates
    assert sorted(lab.generator.calls) == [2, 3, 3]
    assert sorted(lab.keys) == sorted(plain.keys)
    assert lab.ledger.snapshot().spent.requests == plain.ledger.snapshot().spent.requests == 8


def test_equal_improvements_are_asked_for_together_too(kit: Any, labs: Any) -> None:
    lab = sampling_lab(kit, labs, candidates=4, rounds=2)
    lab.generator.answers = dict(lab.generator.answers) | {WRITE: kit.says(kit.WRONG)}
    solution = lab.solve()
    assert len(solution.rounds) == 2
    assert lab.generator.calls == [3, 1, 3, 1]  # every payload is the one query there is
    assert lab.solve() == solution


def test_a_prompt_that_was_paid_once_counts_as_where_it_was_paid_for_each(kit: Any, labs: Any) -> None:
    plain, lab = labs(candidates=8), sampling_lab(kit, labs, candidates=8)
    tables = [token_table([one.elicit().calls], rounds=1)[0] for one in (plain, lab)]
    assert tables[0] == tables[1]
    assert tables[0].equivalent.infill == 8 * tables[0].generator.infill > 0


@pytest.mark.parametrize("script", [None, LostReply("broke"), ContextTooLong("too long")])
def test_killed_at_every_single_point_a_sampled_question_comes_to_the_same(kit: Any, labs: Any, script: Any) -> None:
    def lab() -> Any:
        made = sampling_lab(kit, labs, candidates=4, rounds=1)
        if script is not None:
            made.generator.before = raising(WRITE, script)
        return made

    undisturbed = lab()
    expected = answers(undisturbed.everything())
    truly_lost = undisturbed.ledger.snapshot().lost_count
    assert truly_lost == (3 if isinstance(script, LostReply) else 0)
    touches, was_killed = 0, True
    while was_killed:
        found = lab()
        found.light(touches)
        try:
            found.everything()
            was_killed = False
        except Killed:
            pass
        found.light(None)
        if not isinstance(script, ContextTooLong):  # whether it is too long again is the provider's affair
            assert answers(found.everything()) == expected
            assert state(found).keys() == state(undisturbed).keys()
        else:
            found.everything()
        spent = found.ledger.snapshot()
        found.mode = Mode.REPLAY
        found.everything()
        assert found.ledger.snapshot() == spent
        assert spent.lost_count <= truly_lost + 3
        answered = sum(key.rpartition("/")[2].isdigit() and '"reply"' in text for key, text in state(found).items())
        assert spent.spent.requests == spent.lost_count + answered
        touches += 1
    assert touches > 20


def test_a_budget_that_covers_a_part_of_the_samples_ends_the_question_after_them(kit: Any, labs: Any) -> None:
    lab = sampling_lab(kit, labs, candidates=4)
    lab.budget = Budget(requests=2)
    for _ in range(2):
        lab.process()
        with pytest.raises(BudgetExhausted):
            lab.elicit()
        assert lab.ledger.snapshot().spent.requests == 2
    assert lab.generator.calls == [2]


@pytest.mark.parametrize("is_sampled", [True, False])
def test_a_schema_that_the_provider_finds_too_long_gives_candidates_without_a_query(
    kit: Any, labs: Any, is_sampled: bool
) -> None:
    lab = sampling_lab(kit, labs) if is_sampled else labs()
    lab.generator.before = raising(WRITE, ContextTooLong("too long"), times=99)
    first = lab.elicit()
    assert [(candidate.sql, candidate.is_valid) for candidate in first.candidates] == [("", False)] * 4
    assert first.calls == ()
    assert lab.ledger.snapshot().spent.requests == 0
    lab.generator.before = lambda *_: None
    lab.process()
    assert lab.elicit() == first
    assert lab.generator.asked == []
    solution = lab.solve(first)
    assert solution.rounds
    assert "" not in read_calls(lab.journal)["q/17"]


@pytest.mark.parametrize("title", [JUDGE, "Improve a SQLite query"])
def test_a_later_request_that_is_too_long_is_one_that_has_no_room(labs: Any, title: str) -> None:
    lab = labs(candidates=2, rounds=2)
    for model in (lab.generator, lab.critic):
        model.before = raising(title, ContextTooLong("too long"), times=99)
        model.is_repeatable = False
    solution, spent = lab.solve(), lab.ledger.snapshot()
    lab.process()
    lab.mode = Mode.REPLAY
    assert lab.solve() == solution
    assert lab.ledger.snapshot() == spent


CUT = "I think:\n\n```sql\nSELECT name FROM p"


@pytest.mark.parametrize(
    ("text", "stop", "sql"),
    [
        (CUT, StopReason.LENGTH, ""),
        (CUT, StopReason.REFUSAL, ""),
        (CUT, StopReason.END, "SELECT name FROM p"),
        (f"{CUT}\n```\nBesides", StopReason.LENGTH, "SELECT name FROM p"),
        ("SELECT name FROM p", StopReason.LENGTH, ""),
        ("I cannot help with that.", StopReason.REFUSAL, ""),
        ("", StopReason.THOUGHT, ""),
    ],
)
def test_a_reply_without_a_whole_query_is_a_failed_candidate(labs: Any, text: str, stop: StopReason, sql: str) -> None:
    lab = labs(candidates=2, rounds=2)
    lab.generator.answers = dict(lab.generator.answers) | {WRITE: lambda *_: text}
    lab.generator.stop_of = lambda _: stop
    first = lab.elicit()
    assert [candidate.sql for candidate in first.candidates] == [sql, sql]
    assert [candidate.is_valid for candidate in first.candidates] == [bool(sql)] * 2
    assert lab.solve(first).rounds


@pytest.mark.parametrize("text", ["", '{"evaluations": [{"index": 1,', "I would rather not."])
@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.REFUSAL, StopReason.THOUGHT])
def test_a_critic_that_is_cut_off_or_silent_is_asked_once_more_with_its_own_words(
    kit: Any, labs: Any, text: str, stop: StopReason
) -> None:
    lab = labs(candidates=2, rounds=1)
    honest = kit.judges(kit.true_score)
    native = NativeMessage(protocol="openai", model=lab.critic.name, body={"content": text})
    lab.critic.answers = {JUDGE: lambda r, s: honest(r, s) if r.turn else text}
    lab.critic.stop_of = lambda request: StopReason.END if request.turn else stop
    lab.critic.native = native
    solution = lab.solve()
    assert solution.rounds[0].unreadable == 0
    _, again, _ = lab.critic.asked[1]
    _, said, repair = again.messages
    assert isinstance(repair, UserMessage)
    assert ("was cut off" in repair.text) == (stop is StopReason.LENGTH)
    if text:
        assert said == AssistantMessage(text=text, native=native)
    else:
        assert said == AssistantMessage(text="(The answer is empty.)")


def test_lost_replies_are_in_the_ledger_and_not_in_the_question(labs: Any) -> None:
    plain, lab = labs(), labs()
    for one in (plain, lab):
        one.generator.is_repeatable = one.critic.is_repeatable = False
    lab.generator.before = raising(WRITE, LostReply("broke"))
    assert lab.everything()[1] == plain.everything()[1]
    lost, bill = lab.ledger.snapshot(), plain.ledger.snapshot()
    assert (lost.lost_count, bill.lost_count) == (1, 0)
    assert lost.spent.usage == bill.spent.usage + lost.lost.usage
    lab.everything()
    assert lab.ledger.snapshot() == lost


def test_records_name_the_role_and_the_model_that_pays(labs: Any) -> None:
    lab = labs(rounds=2)
    first = lab.elicit()
    lab.solve(first)
    lab.self_evolve(first)
    accounts = {
        (record["account"]["role"], record["account"]["model"])
        for key, record in lab.journal.records()
        if "/request/" in key
    }
    assert accounts == {
        ("elicit", "fake/generator"),
        ("evosql/aggregate", "fake/generator"),
        ("evosql/critic", "fake/critic"),
        ("self-evolution/aggregate", "fake/generator"),
    }


def test_input_that_a_cache_took_in_is_infill() -> None:
    usage = Usage(input_tokens=1, cached_input_tokens=2, cache_write_tokens=4, output_tokens=8)
    (row, _) = token_table([[Call(phase=Phase.ELICIT, round=0, usage=usage)]], rounds=1)
    assert (row.generator.infill, row.generator.cached, row.generator.decode) == (7, 2, 8)
