"""Commits: what they cost, what they answer, and what ends an island."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.domain.budgets import Budget
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.verdicts import Failure, Verdict
from orchestrator.errors import EvaluatorError, InputError
from orchestrator.methods.agentic_evolve import Event, RunPorts
from orchestrator.methods.agentic_evolve.run import run_agentic_evolve


def test_a_commit_answers_in_the_documented_form(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(60, 20, "two\nlines"), kit.try_out(65, 20)), islands=1)
    lab.run()
    first, second = lab.feedbacks()
    metrics = {"fitness": 90.0, "size": 0.6, "shape": 0.2, "excess": 0.3333}
    line = {"id": "i0-c01", "metrics": metrics, "description": "two lines"}
    start = {"fitness": 30.0, "size": 0.1, "shape": 0.1, "excess": 0.3333}
    assert first == {
        "commit": "i0-c01",
        "duplicate_of": None,
        "metrics": metrics,
        "failure": None,
        "island_best": line,
        "grid": [{"id": "initial", "metrics": start, "description": "the initial program"}, line],
        "budget": {"commits_left": 29, "requests_left": 332, "analyses_left": 3},
        "notice": None,
    }
    assert list(first) == [
        "commit", "duplicate_of", "metrics", "failure", "island_best", "grid", "budget", "notice",
    ]  # fmt: skip
    assert [elite["id"] for elite in second["grid"]] == ["initial", "i0-c02"]


def test_the_first_message_holds_the_program_its_evaluation_and_the_budget(kit: Any) -> None:
    lab = kit.Lab(islands=2)
    lab.run()
    text = lab.conversation(1).messages[0].text
    assert "```python\nx = 10\ny = 10\n```" in text
    assert json.loads(text.splitlines()[-1]) == {
        "initial": {"id": "initial", "metrics": {"fitness": 30.0, "size": 0.1, "shape": 0.1, "excess": 0.3333}},
        "island": 1,
        "islands": 2,
        "budget": {"commits_left": 30, "requests_left": 333, "analyses_left": 3},
    }


def test_a_failed_evaluation_costs_one_is_archived_and_shows_no_output(kit: Any) -> None:
    failing = kit.say("", kit.call("write", file="program.py", content="raise\n"), kit.call("commit", description="f"))
    lab = kit.Lab(kit.scripted(failing), islands=1)
    result = lab.run()
    (feedback,) = lab.feedbacks()
    assert feedback["metrics"] is None
    assert feedback["failure"] == {
        "ending": "error",
        "exception": "ValueError",
        "file": "program.py",
        "line": 1,
        "message": None,
    }
    assert feedback["island_best"]["id"] == "initial"
    assert feedback["budget"]["commits_left"] == 29
    assert "withheld" not in repr(lab.conversation(0))
    (entry,) = lab.history.commits
    assert entry.candidate.payload["program.py"] == b"raise\n"
    assert entry.verdict.outcome.output == b"withheld"
    assert (result.evaluations, result.endings, result.best_id) == (1, {"error": 1}, "initial")


def test_a_duplicate_gets_the_earlier_result_at_no_evaluation_and_no_new_analyses(kit: Any) -> None:
    script = kit.say("", kit.call("write", file="analysis.py", content="1"), *[kit.call("run_analysis")] * 2)
    lab = kit.Lab(
        kit.scripted(kit.try_out(50, 20), script, kit.try_out(40, 20), kit.try_out(50, 20, "again")), islands=1
    )
    result = lab.run()
    again = lab.feedbacks()[-1]
    assert (again["commit"], again["duplicate_of"]) == ("i0-c03", "i0-c01")
    assert again["metrics"]["fitness"] == 80.0
    assert again["budget"] == {"commits_left": 28, "requests_left": 329, "analyses_left": 3}
    assert lab.bench.performed == ["initial", "i0-c01", "i0-a0001", "i0-a0002", "i0-c02"]
    assert (result.evaluations, len(lab.history.commits)) == (2, 3)
    assert lab.ledger.snapshot().spent.commits == 2


def test_a_duplicate_gives_no_new_analyses(kit: Any) -> None:
    write = kit.call("write", file="analysis.py", content="1")
    analyse, commit = kit.call("run_analysis"), kit.call("commit", description="unchanged")
    lab = kit.Lab(kit.scripted(kit.say("", write, *[analyse] * 4), kit.say("", commit, analyse)), islands=1)
    result = lab.run()
    refused = "error: no analysis is left: 3 of 3 were run before the next commit"
    assert [answer for answer in lab.answers() if answer.startswith("error")] == [refused, refused]
    assert lab.feedbacks()[0]["duplicate_of"] == "initial"
    assert lab.feedbacks()[0]["budget"]["analyses_left"] == 0
    assert (result.analyses, result.evaluations) == (3, 0)


def test_a_duplicate_of_a_failure_is_answered_with_that_failure(kit: Any) -> None:
    write, commit = kit.call("write", file="program.py", content="raise"), kit.call("commit", description="d")
    lab = kit.Lab(kit.scripted(kit.say("", write, commit, commit)), islands=1)
    result = lab.run()
    first, second = lab.feedbacks()
    assert second["failure"] == first["failure"]
    assert second["duplicate_of"] == "i0-c01"
    assert result.endings == {"error": 1}


def test_the_same_program_on_two_islands_is_evaluated_twice(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(50, 50)), islands=2)
    assert lab.run().evaluations == 2


def test_analyses_are_counted_anew_after_every_evaluated_commit(kit: Any) -> None:
    write, analyse = kit.call("write", file="analysis.py", content="1"), kit.call("run_analysis")
    lab = kit.Lab(
        kit.scripted(kit.say("", write, *[analyse] * 3), kit.try_out(1, 1), kit.say("", *[analyse] * 4)), islands=1
    )
    assert lab.run().analyses == 6
    assert lab.answers()[-2].endswith("[analysis 3 of 3 before the next commit: ok]")
    assert lab.answers()[-1].startswith("error: no analysis is left")


def test_an_island_stops_when_its_commits_are_spent_and_the_agent_could_say_its_last_words(kit: Any) -> None:
    more = kit.say("last words", kit.call("commit", description="not carried out"))
    lab = kit.Lab(
        kit.scripted(kit.try_out(1, 1), kit.try_out(2, 2), more, kit.try_out(3, 3)), islands=1, commits_per_island=2
    )
    result = lab.run()
    assert lab.feedbacks()[0]["notice"] is None
    assert lab.feedbacks()[1]["notice"].startswith("[budget exhausted]")
    assert (result.stops, result.requests, result.evaluations) == ({0: "commits"}, 3, 2)


def test_commits_and_analyses_over_the_budget_in_one_message_are_errors(kit: Any) -> None:
    message = kit.say(
        "",
        kit.call("write", file="analysis.py", content="1"),
        *kit.try_out(1, 1).tool_calls,
        *kit.try_out(2, 2).tool_calls,
        kit.call("run_analysis"),
    )
    lab = kit.Lab(kit.scripted(message), islands=1, commits_per_island=1)
    result = lab.run()
    assert lab.answers()[-2:] == [
        "error: no commit is left; end your turn",
        "error: no analysis is left: 0 of 3 were run before the next commit",
    ]
    assert (result.evaluations, result.analyses) == (1, 0)


def test_an_island_stops_at_its_request_cap_and_carries_out_the_last_reply(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(*[kit.try_out(n, n) for n in range(20, 30)]), islands=1, requests_per_island=4)
    result = lab.run()
    assert (result.stops, result.requests, result.evaluations) == ({0: "requests"}, 4, 4)


def test_an_island_stops_after_idle_turns_in_a_row_only(kit: Any) -> None:
    idle = kit.say("hm")
    lab = kit.Lab(kit.scripted(idle, idle, kit.try_out(1, 1), idle, idle), islands=1, idle_turns=3)
    result = lab.run()
    assert (result.stops, result.requests) == ({0: "idle"}, 6)
    assert [m.text for m in lab.conversation(0).messages if hasattr(m, "text")][1:5] == [
        "hm", "Continue.", "hm", "Continue.",
    ]  # fmt: skip


@pytest.mark.parametrize(("budget", "requests"), [(Budget(usd=Decimal("0.08")), 4), (Budget(tokens=3300), 3)])
def test_an_island_stops_before_a_request_that_its_budget_does_not_cover(
    kit: Any, budget: Budget, requests: int
) -> None:
    lab = kit.Lab(kit.scripted(*[kit.try_out(n, n) for n in range(20, 40)]), islands=2)
    lab.per_island = budget
    result = lab.run()
    assert result.stops == {0: "budget-spent", 1: "budget-spent"}
    assert result.requests == 2 * requests
    spent = lab.ledger.snapshot()
    assert {island: spend.requests for island, spend in spent.by_island.items()} == {0: requests, 1: requests}
    assert spent.lost_count == 0


def test_read_commit_returns_own_commits_also_failed_ones_and_nothing_unseen(kit: Any) -> None:
    failing = kit.say("", kit.call("write", file="program.py", content="raise\n"), kit.call("commit", description="f"))
    reads = [kit.call("read_commit", id=name) for name in ("initial", "i0-c01", "i0-c02", "i1-c01", "i0-c09", "x")]
    lab = kit.Lab(
        kit.scripted(
            islands={0: [failing, kit.try_out(5, 5), kit.say("", *reads)], 1: [kit.try_out(6, 6)]},
        ),
        islands=2,
    )
    lab.run()
    answers = lab.answers(0)[-6:]
    assert answers[:3] == ["x = 10\ny = 10\n", "raise\n", "x = 5\ny = 5\n"]
    assert all(answer.startswith("error: there is no commit") for answer in answers[3:])


def test_parents_are_the_commit_before_and_what_was_read_since(kit: Any) -> None:
    read = kit.say("", kit.call("read_commit", id="i0-c01"))
    lab = kit.Lab(
        kit.scripted(kit.try_out(1, 1), kit.try_out(2, 2), read, read, kit.try_out(3, 3), kit.try_out(4, 4)), islands=1
    )
    lab.run()
    assert [entry.candidate.parents for entry in lab.history.commits] == [
        ("initial",), ("i0-c01",), ("i0-c02", "i0-c01"), ("i0-c03",),
    ]  # fmt: skip


def test_a_program_restored_whole_is_what_the_next_commit_was_made_from(kit: Any) -> None:
    initial = kit.call("write", file="program.py", content=kit.program(10, 10))
    first = kit.call("write", file="program.py", content=kit.program(1, 1))
    lab = kit.Lab(
        kit.scripted(
            kit.try_out(1, 1),
            kit.say("", initial),
            kit.try_out(2, 2),
            kit.say("", initial, first),
            kit.try_out(3, 3),
            kit.try_out(4, 4),
        ),
        islands=1,
    )
    lab.run()
    assert [entry.candidate.parents for entry in lab.history.commits] == [
        ("initial",), ("initial",), ("i0-c01",), ("i0-c03",),
    ]  # fmt: skip


def test_ties_keep_the_earliest(kit: Any) -> None:
    lab = kit.Lab(
        kit.scripted(islands={0: [kit.try_out(1, 1), kit.try_out(60, 20)], 1: [kit.try_out(80, 20)]}), islands=2
    )
    result = lab.run()
    assert result.best_id == "i1-c01"  # as good as i0-c02, but a first commit
    assert lab.feedbacks(0)[-1]["island_best"]["id"] == "i0-c02"


def test_a_run_without_any_better_program_ends_with_the_initial_one(kit: Any) -> None:
    result = kit.Lab(kit.scripted(kit.try_out(99, 99))).run()
    assert (result.best_id, result.best_metrics) == ("initial", result.initial_metrics)


def test_an_initial_program_that_fails_is_told_and_a_run_may_end_without_a_best(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(), islands=1)
    failure = Failure(ending=Ending.TIMEOUT)
    lab.bench.evaluations = lambda _: Verdict(
        split="hidden", metrics=None, failure=failure, secret=True, outcome=kit.OUTCOME
    )
    result = lab.run()
    assert (result.best_id, result.best_metrics, result.initial_metrics) == (None, None, None)
    facts = json.loads(lab.conversation(0).messages[0].text.splitlines()[-1])
    assert facts["initial"]["failure"]["ending"] == "timeout"


@pytest.mark.parametrize("metrics", [{"fitness": float("nan")}, {"size": 1.5}, {"shape": float("inf")}])
def test_metrics_that_no_archive_can_hold_are_the_evaluators_failure(kit: Any, metrics: dict[str, float]) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(50, 50)), islands=1)
    good = kit.verdict_of

    def evaluations(payload: Any) -> Verdict:
        verdict = good(payload)
        changed = verdict.metrics | (metrics if payload != lab.task.initial else {})
        return Verdict(split="hidden", metrics=changed, failure=None, secret=True, outcome=kit.OUTCOME)

    lab.bench.evaluations = evaluations
    with pytest.raises(EvaluatorError, match="i0-c01"):
        lab.run()
    assert lab.history.commits == ()


def test_agents_see_disclosed_metrics_and_selection_uses_the_true_ones(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(50, 50), kit.try_out(51, 51)), islands=1)

    def evaluations(payload: Any) -> Verdict:
        verdict = kit.verdict_of(payload)
        bonus = 1e-9 if b"51" in payload["program.py"] else 0.0
        metrics = {"fitness": 90.0 + bonus, "size": 0.5, "shape": 0.5, "excess": verdict.metrics["excess"]}
        return Verdict(split="hidden", metrics=metrics, failure=None, secret=True, outcome=kit.OUTCOME)

    lab.bench.evaluations = evaluations
    assert lab.run().best_id == "i0-c02"
    assert lab.feedbacks()[-1]["island_best"] == lab.feedbacks()[-1]["grid"][0]
    assert [f["metrics"]["fitness"] for f in lab.feedbacks()] == [90.0, 90.0]


def test_events_tell_how_far_each_island_is(kit: Any) -> None:
    lab = kit.Lab(kit.scripted(kit.try_out(60, 20), kit.try_out(60, 20)), islands=1, commits_per_island=1)
    lab.run()
    told = [(event.event, event.subject, event.commits, event.requests) for event in lab.events]
    assert told == [
        (Event.BEGIN, "", 0, 0),
        (Event.REQUEST, "", 0, 1),
        (Event.COMMIT, "i0-c01", 1, 1),
        (Event.REQUEST, "", 1, 2),
        (Event.STOP, "commits", 1, 2),
    ]
    assert (lab.events[-1].best_id, lab.events[-1].best_fitness) == ("i0-c01", 90.0)
    assert lab.events[-1].usage.usd == Decimal("0.02")


def test_a_run_with_analyses_needs_an_analyst_and_one_without_is_handed_none(kit: Any) -> None:
    lab = kit.Lab(islands=1)
    ports = lab.ports()
    without = RunPorts(
        model=ports.model,
        evaluator=ports.evaluator,
        analyst=None,
        disclosure=ports.disclosure,
        journal=ports.journal,
        ledger=ports.ledger,
    )
    with pytest.raises(InputError, match="need an analyst"):
        run_agentic_evolve(run_id="r", settings=lab.settings, task=lab.task, ports=without, cancel=lab.cancel)


def test_every_request_has_its_own_seed_and_no_more_output_than_fits(kit: Any) -> None:
    lab = kit.Lab(kit.searcher, max_output_tokens=4096, temperature=0.5, commits_per_island=5)
    lab.model.context_tokens = 6000
    lab.run()
    assert len({sampling.seed for _, sampling in lab.model.asked}) == len(lab.model.asked)
    for conversation, sampling in lab.model.asked:
        room = 6000 - lab.model.count_tokens(conversation, lab.tools)
        assert sampling.max_output_tokens == min(4096, room)
        assert sampling.temperature == 0.5
