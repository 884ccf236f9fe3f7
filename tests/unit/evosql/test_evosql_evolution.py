"""EvoSQL's loop: rounds help, it stops when it may, and every mode of it does what the paper says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.sql import QueryStatus
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.errors import InputError
from orchestrator.methods.evosql import Ending, Event, explain, majority_answer
from orchestrator.methods.evosql.execution import NO_QUERY
from orchestrator.search.memory import Evidence


def generator_says(lab: Any, answer: Any) -> None:
    lab.generator.answers = dict.fromkeys(lab.generator.answers, answer)


def test_critique_leads_to_repair_and_rounds_help(kit: Any, labs: Any) -> None:
    lab = labs(candidates=8)
    first = lab.elicit()
    assert kit.RIGHT not in {candidate.sql for candidate in first.candidates}
    solution = lab.solve(first)
    assert solution.answer.sql == kit.RIGHT
    assert solution.answer_at(0).sql != kit.RIGHT
    assert [round_.answer.sql for round_ in solution.rounds] == [solution.answer_at(n).sql for n in range(3)]
    assert next(entry.confidence for entry in solution.entries if entry.content.sql == kit.BROKEN) == -1
    assert {entry.confidence for entry in solution.entries if entry.content.sql == kit.EMPTY} == {0.0}
    stored = result_from_bytes(lab.journal.get_blob(solution.answer.execution.result))
    assert stored.rows == (("Ann",), ("Cy",))


def test_it_stops_after_the_first_round_if_all_agree_with_confidence(kit: Any, labs: Any) -> None:
    lab = labs()
    generator_says(lab, kit.says(kit.RIGHT, kit.ALIKE))
    solution = lab.solve()
    assert (solution.ending, len(solution.rounds)) == (Ending.STABLE, 1)
    assert solution.rounds[0].assessment.share == 1.0
    assert [solution.answer_at(n) for n in (0, 1, 2)] == [solution.answer] * 3
    assert len(lab.generator.asked) == 4
    assert len(lab.critic.asked) == 1


def test_without_confidence_nothing_stops_it_although_all_agree(kit: Any, labs: Any) -> None:
    lab = labs()
    generator_says(lab, kit.says(kit.WRONG))
    solution = lab.solve()
    assert (solution.ending, len(solution.rounds), len(solution.entries)) == (Ending.ROUNDS, 3, 12)
    assert len(lab.critic.asked) == 3


def test_the_utilities_of_a_run_are_those_of_the_equations(kit: Any, labs: Any) -> None:
    lab = labs(candidates=2, rounds=2)
    lab.generator.answers = {
        "Write a SQLite query": kit.says(kit.WRONG),
        "Improve a SQLite query": kit.says(kit.RIGHT),
    }
    solution = lab.solve()
    assert solution.rounds[0].assessment.utilities == (3.0, 3.0)
    assert solution.rounds[1].assessment.utilities == pytest.approx(
        [0.9 * 3, 0.9 * 3, 10 + 0.3 * math.log(3), 10 + 0.3 * math.log(3)]
    )
    assert solution.ending is Ending.STABLE  # TopK are the two new ones


def test_each_different_query_is_run_once_per_question_whatever_its_white_space(kit: Any, labs: Any) -> None:
    lab = labs(candidates=6)
    generator_says(lab, kit.says(kit.WRONG, "select name\n  from p", "SELECT name FROM p ", "SELECT Name FROM p"))
    lab.everything()
    assert len(lab.database.performed) == 2  # a name in another case is another text
    assert {" ".join(sql.split()).lower() for sql in lab.database.performed} == {"select name from p"}


def test_the_same_candidates_and_runs_serve_all_methods(labs: Any) -> None:
    lab = labs()
    first, solution, other, choice = lab.everything()
    assert len(lab.generator.of("Write a SQLite query")) == 4
    for found in (solution, other):
        assert [entry.content.sql for entry in found.entries[:4]] == [c.sql for c in first.candidates]
    assert len(lab.database.performed) == len(set(lab.database.performed))
    assert majority_answer(first) in first.candidates
    assert choice.answer in choice.candidates


def test_self_evolution_has_no_critic_no_summary_and_no_early_stop(kit: Any, labs: Any) -> None:
    lab = labs(confidence_threshold=7.5)
    generator_says(lab, kit.says(kit.RIGHT, kit.ALIKE, kit.BROKEN, kit.EMPTY))
    solution = lab.self_evolve()
    assert (solution.ending, len(solution.rounds), lab.critic.asked) == (Ending.ROUNDS, 3, [])
    by_evidence = {entry.evidence: entry.confidence for entry in solution.entries}
    assert by_evidence.items() <= {Evidence.SOUND: 7.5, Evidence.EMPTY: 0.0, Evidence.INVALID: -1.0}.items()
    asked = lab.generator.of("Improve a SQLite query without a critic")
    assert len(asked) == 8
    assert all(set(request.sections) == {"Schema", "Question", "Hint", "Candidates"} for request in asked)
    assert not any("critique" in candidate for request in asked for candidate in request.candidates)


def test_payload_critique_and_summary_reach_the_generator(labs: Any) -> None:
    lab = labs(payload=2)
    solution = lab.solve()
    shown = lab.generator.of("Improve a SQLite query")
    memory = {entry.content.sql: entry for entry in solution.entries}
    for request in shown:
        assert request.sections["Summary"] == "The city counts."
        assert [candidate["index"] for candidate in request.candidates] == list(range(1, len(request.candidates) + 1))
        assert len({candidate["sql"] for candidate in request.candidates}) == len(request.candidates) <= 2
        for candidate in request.candidates:
            entry = memory[candidate["sql"]]
            assert entry.evidence is not Evidence.INVALID
            assert candidate["execution"] == entry.content.execution.shown
            assert candidate["critique"]["issues"] == [
                {"problem": "no restriction to Oslo", "repair": "restrict city to Oslo"}
            ]
    assert max(len(request.candidates) for request in shown) == 2


def test_invalid_candidates_are_refined_only_if_all_are_invalid(kit: Any, labs: Any) -> None:
    lab = labs()
    generator_says(lab, kit.says(kit.BROKEN, "SELECT nope FROM p", "DELETE FROM p", "no query at all"))
    solution = lab.solve()
    assert {entry.confidence for entry in solution.entries} == {-1.0}
    shown = {c["execution"]["status"] for r in lab.generator.of("Improve a SQLite query") for c in r.candidates}
    assert shown <= {"error", "refused"}
    assert shown
    assert (solution.ending, solution.answer.is_valid) == (Ending.ROUNDS, False)
    assert {"DELETE FROM p", kit.BROKEN} & set(lab.database.performed)
    assert lab.database.query("SELECT count(*) FROM p", attempt_id="t").rows == ((4,),)


def test_an_answer_without_a_query_is_an_invalid_candidate_that_is_not_run(labs: Any) -> None:
    lab = labs()
    generator_says(lab, lambda _request, _sampling: "I cannot answer this.")
    first = lab.elicit()
    assert {candidate.sql for candidate in first.candidates} == {""}
    for candidate in first.candidates:
        assert candidate.execution.status is QueryStatus.REFUSED
        assert candidate.execution.shown["error"] == NO_QUERY
        assert candidate.execution.result is None
    assert lab.database.performed == []
    assert lab.solve(first).answer.sql == ""
    assert majority_answer(first) is first.candidates[0]
    comment = labs()
    generator_says(comment, lambda _request, _sampling: "```sql\n-- nothing to ask\n```")
    assert comment.solve().answer.execution.shown["error"] == NO_QUERY
    assert comment.database.performed == []


def test_empty_results_count_zero_unless_the_critic_may_judge_them(kit: Any, labs: Any) -> None:
    for is_suspect, confidence in ((True, 0.0), (False, 9.0)):
        lab = labs(empty_is_suspect=is_suspect)
        generator_says(lab, kit.says(kit.EMPTY))
        lab.critic.answers = {"Judge SQLite queries": kit.judges(lambda _: 9)}
        solution = lab.solve()
        assert {entry.confidence for entry in solution.entries} == {confidence}
        assert solution.ending is (Ending.ROUNDS if is_suspect else Ending.STABLE)
        assert lab.self_evolve().entries[0].confidence == (0.0 if is_suspect else 8.0)


def test_the_critic_sees_every_candidate_or_one_of_each_result(kit: Any, labs: Any) -> None:
    queries = (kit.RIGHT, kit.ALIKE, kit.WRONG)
    for mode in ("ungrouped", "grouped"):
        lab = labs(candidates=12, rounds=1, critic_mode=mode)
        generator_says(lab, kit.says(*queries))
        solution = lab.solve()
        listed = lab.critic.asked[0][0].candidates
        sqls = [entry.content.sql for entry in solution.entries]
        assert [candidate["index"] for candidate in listed] == list(range(1, len(listed) + 1))
        if mode == "ungrouped":
            assert [candidate["sql"] for candidate in listed] == sqls
            assert not any("members" in candidate for candidate in listed)
        else:
            assert len(listed) == 2
            assert {candidate["members"] for candidate in listed} == {
                sqls.count(kit.WRONG),
                12 - sqls.count(kit.WRONG),
            }
        assert {entry.confidence for entry in solution.entries if entry.content.sql != kit.WRONG} == {10.0}
        assert {entry.confidence for entry in solution.entries if entry.content.sql == kit.WRONG} == {3.0}


def test_four_scores_are_averaged(kit: Any, labs: Any) -> None:
    lab = labs(critic_scores="four", rounds=1)
    generator_says(lab, kit.says(kit.RIGHT))

    def four(request: Any, sampling: Any) -> str:
        del sampling
        document = kit.evaluations(request, lambda _: 0)
        for evaluation in document["evaluations"]:
            evaluation["scores"] = {"alignment": 10, "schema": 9, "logic": 7, "completeness": 4}
        return json.dumps(document)

    lab.critic.answers = {"Judge SQLite queries": four}
    solution = lab.solve()
    assert {entry.confidence for entry in solution.entries} == {7.5}
    assert json.loads(lab.critic.asked[0][0].sections["Scores"]) == ["alignment", "schema", "logic", "completeness"]


def test_a_critic_that_answers_garbage_is_asked_once_more_and_then_counts_for_nothing(kit: Any, labs: Any) -> None:
    lab = labs(rounds=1)
    generator_says(lab, kit.says(kit.RIGHT, kit.BROKEN, kit.EMPTY))
    lab.critic.answers = {"Judge SQLite queries": lambda _request, _sampling: '{"evaluations": NaN}'}
    solution = lab.solve()
    assert [request.turn for request, _, _ in lab.critic.asked] == [0, 1]
    repair = lab.critic.asked[1][1].messages[-1].text
    assert repair.startswith("# Answer again\n")
    assert "a number that is not finite" in repair
    expected = {Evidence.SOUND: 5.0, Evidence.EMPTY: 0.0, Evidence.INVALID: -1.0}
    assert all(entry.confidence == expected[entry.evidence] for entry in solution.entries)
    sound = sum(entry.evidence is Evidence.SOUND for entry in solution.entries)
    assert solution.rounds[0].unreadable == sound
    assert lab.journal.get("q/17/evosql/end")["unreadable"] == sound
    assert all(entry.content.critique is None for entry in solution.entries)


def test_a_repaired_answer_counts_and_what_was_readable_before_stays(kit: Any, labs: Any) -> None:
    lab = labs(rounds=1)
    generator_says(lab, kit.says(kit.RIGHT))

    def forgetful(request: Any, sampling: Any) -> str:
        del sampling
        document = kit.evaluations(request, lambda _: 9 if request.turn else 7)
        document["evaluations"] = document["evaluations"][request.turn : 2]
        return json.dumps(document)

    lab.critic.answers = {"Judge SQLite queries": forgetful}
    solution = lab.solve()
    assert [entry.confidence for entry in solution.entries] == [7.0, 9.0, 5.0, 5.0]
    assert solution.rounds[0].unreadable == 2
    assert len(solution.rounds[0].calls) == 2


def test_a_summary_that_cannot_be_read_leaves_the_one_before(kit: Any, labs: Any) -> None:
    lab = labs()

    def silent(request: Any, sampling: Any) -> str:
        del sampling
        document = kit.evaluations(request, kit.true_score, "The city counts.")
        if "Summary" in request.sections:
            del document["cumulative_summary"]
        return json.dumps(document)

    lab.critic.answers = {"Judge SQLite queries": silent}
    generator_says(lab, kit.says(kit.WRONG))
    assert [round_.summary for round_ in lab.solve().rounds] == ["The city counts."] * 3


def test_without_a_critic_in_the_last_round_its_candidates_inherit(kit: Any, labs: Any) -> None:
    lab = labs(rounds=2, critic_last_round=False)
    lab.generator.answers = {
        "Write a SQLite query": kit.says(kit.RIGHT, kit.WRONG),
        "Improve a SQLite query": kit.says(kit.ALIKE, kit.WRONG, kit.BROKEN, "SELECT age FROM p"),
    }
    solution = lab.solve()
    assert len(lab.critic.asked) == 1
    assert [round_.is_judged for round_ in solution.rounds] == [True, False]
    expected = {kit.RIGHT: 10.0, kit.ALIKE: 10.0, kit.WRONG: 3.0, kit.BROKEN: -1.0, "SELECT age FROM p": 5.0}
    known = {entry.content.sql for entry in solution.entries[:4]}
    assert known == {kit.RIGHT, kit.WRONG}
    assert all(entry.confidence == expected[entry.content.sql] for entry in solution.entries)
    assert solution.ending is Ending.ROUNDS
    assert solution.answer_at(0).sql in {kit.RIGHT, kit.WRONG}


def test_best_of_k_lists_every_different_query_of_the_best_once(labs: Any) -> None:
    lab = labs(rounds=1)
    solution = lab.solve()
    choice = lab.choose(solution)
    (request,) = lab.critic.of("Choose a SQLite query")
    listed = [candidate["sql"] for candidate in request.candidates]
    assert listed == list(dict.fromkeys(entry.content.sql for entry in solution.best if entry.content.is_valid))
    assert choice.answer.sql == listed[1]
    assert choice.is_readable
    assert [call.phase.value for call in choice.calls] == ["choose"]


def test_best_of_k_takes_the_first_if_it_cannot_read_and_asks_nothing_if_there_is_one(kit: Any, labs: Any) -> None:
    lab = labs(rounds=1)
    lab.critic.answers = dict(lab.critic.answers) | {"Choose a SQLite query": lambda _r, _s: '{"choice": 99}'}
    solution = lab.solve()
    choice = lab.choose(solution)
    assert (choice.answer, choice.is_readable) == (choice.candidates[0], False)
    single = labs()
    generator_says(single, kit.says(kit.RIGHT))
    choice = single.choose(single.solve())
    assert (choice.answer.sql, choice.is_readable, choice.calls) == (kit.RIGHT, True, ())
    assert single.critic.of("Choose a SQLite query") == []


def test_a_prompt_that_leaves_no_room_is_not_sent(labs: Any) -> None:
    lab = labs(rounds=1)
    lab.critic.context_tokens = 50
    solution = lab.solve()
    assert lab.critic.asked == []
    assert solution.rounds[0].unreadable == sum(e.evidence is Evidence.SOUND for e in solution.entries)
    tiny = labs()
    tiny.generator.context_tokens = 10
    first = tiny.elicit()
    assert {candidate.sql for candidate in first.candidates} == {""}
    assert (tiny.generator.asked, first.calls) == ([], ())


def test_settings_may_share_a_first_round_under_names_of_their_own(labs: Any) -> None:
    lab = labs()
    first = lab.elicit()
    plain = lab.solve(first)
    lab.settings = lab.settings.model_copy(update={"consistency_weight": 0.0, "rounds": 2})
    other = lab.solve(first, name="no-consistency")
    assert len(other.rounds) == 2
    assert plain.entries[:4] == other.entries[:4]
    assert {key.split("/")[2] for key in lab.keys} == {"elicit", "sql", "evosql", "no-consistency"}
    for wrong in ("No/Name", "", "elicit", "sql", "a" * 41):
        with pytest.raises(InputError, match="no name for a method"):
            lab.solve(first, name=wrong)


def test_a_first_round_of_another_question_or_size_is_refused(labs: Any) -> None:
    lab = labs()
    first = lab.elicit()
    with pytest.raises(InputError, match="of question '18'"):
        lab.solve(replace(first, question=replace(lab.question, id="18")))
    with pytest.raises(InputError, match="has 3 candidates, not 4"):
        lab.solve(replace(first, candidates=first.candidates[:3]))


def test_it_tells_what_happens(labs: Any) -> None:
    lab = labs(rounds=2)
    lab.solve()
    told = [(event.event, event.method, event.round) for event in lab.events]
    assert told == [
        (Event.PROPOSED, "", 0),
        (Event.JUDGED, "evosql", 0),
        (Event.PROPOSED, "evosql", 1),
        (Event.JUDGED, "evosql", 1),
        (Event.ENDED, "evosql", 1),
    ]


def test_an_explanation_shows_rounds_critiques_and_clusters(kit: Any, labs: Any) -> None:
    lab = labs()
    solution = lab.solve()
    document = json.loads(json.dumps(explain(solution), allow_nan=False))
    assert document["answer"]["sql"] == solution.answer.sql == kit.RIGHT
    assert [len(round_["candidates"]) for round_ in document["rounds"]] == [4] * len(solution.rounds)
    last = document["rounds"][-1]
    assert sum(last["clusters"].values()) == len(solution.best)
    assert last["answer"]["result"] == document["answer"]["result"]
    assert document["rounds"][0]["candidates"][0]["critique"]["issues"][0]["repair"] == "restrict city to Oslo"


def test_the_best_of_a_dominant_cluster_wins_over_a_better_loner(kit: Any, labs: Any) -> None:
    lab = labs(candidates=6, rounds=1)
    ages = "SELECT age FROM p WHERE id = 1"
    generator_says(lab, kit.says(ages, kit.WRONG))
    lab.critic.answers = {"Judge SQLite queries": kit.judges(lambda c: 9 if c["sql"] == ages else 6)}
    solution = lab.solve()
    counts = [entry.content.sql for entry in solution.entries]
    dominant = max(dict.fromkeys(counts), key=lambda sql: (counts.count(sql), sql == ages))
    assert solution.answer.sql == dominant
