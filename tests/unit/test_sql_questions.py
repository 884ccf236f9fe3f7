"""What `show` tells of the questions of a bench: all that is recorded of one, and lists of those that failed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.sql.blind_journal import BlindJournal
from orchestrator.bootstrap.sql.outcomes import Method
from orchestrator.bootstrap.sql.question_texts import read_texts
from orchestrator.cli.sql_question_documents import SqlQuestionDocument, SqlQuestionsDocument
from orchestrator.domain.budgets import Budget
from orchestrator.storage.runs import RunStore
from tests.in_process import Call, without_engine
from tests.scripted_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Of its six questions the first has no gold query, and the second has evidence and cannot be got right."""
    bench = Bench(tmp_path)
    first, second, *others = bench.data.questions
    questions = (replace(first, gold=None), replace(second, evidence="names are first names"), *others)
    bench.data = replace(bench.data, questions=questions)
    return bench


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return without_engine(bench.home, monkeypatch, capsys)


def measured(bench: Bench, **more: Any) -> str:
    """A bench whose writer never gets the second question right; its id."""
    run_id, journal = bench.begun()
    configuration = bench.configuration(**more)
    wrong = bench.data.questions[1]
    configuration.generator._golds[wrong.text] = "SELECT first_name, 7 FROM customers"  # type: ignore[attr-defined]
    with journal:
        bench.run(journal, configuration)
    return run_id


def shown(call: Call, *arguments: str) -> SqlQuestionDocument:
    code, out, err = call("show", *arguments, "--json")
    assert code == 0, err
    return SqlQuestionDocument.model_validate_json(out)


def test_a_question_is_shown_with_what_was_asked_answered_judged_and_spent(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    question = bench.data.questions[1]
    document = shown(call, run_id, question.id)
    assert (document.text, document.evidence, document.database) == (question.text, question.evidence, "web_shop")
    assert (document.standing, document.answered, document.not_reached) == ("evaluable", True, [])
    assert [one.method for one in document.answers] == [method.value for method in Method]
    evosql = next(one for one in document.answers if one.method == "evosql")
    assert evosql.query.sql in {"SELECT first_name, 7 FROM customers", "SELECT 1"}
    assert evosql.query.status == "ok"
    assert evosql.query.rows
    assert evosql.right == []
    assert evosql.difference
    told = call("show", run_id, question.id)[1]
    assert f"Against the gold result: {'; '.join(evosql.difference)}." in told
    assert evosql.ending in {"stable", "rounds"}
    assert len(evosql.after_rounds) in {1, 2}
    assert document.candidates["strict"].of == 3
    assert {"elicit", "critic"} <= {one.phase for one in document.asked}
    assert sum(one.requests for one in document.asked) == document.requests
    assert sum(one.output_tokens for one in document.asked) == document.usage.output_tokens
    assert {one.sql for one in document.queries} >= {one.query.sql for one in document.answers}


def test_the_gold_query_is_shown_only_when_it_is_asked_for(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    question = bench.data.questions[1]
    assert question.gold is not None
    plain = call("show", run_id, question.id)
    assert plain[0] == 0
    assert question.gold not in plain[1]
    assert f"`evolvarium show {run_id} {question.id} --gold` shows it" in plain[1]
    assert question.gold not in call("show", run_id, question.id, "--json")[1]
    assert call("show", run_id, question.id)[1].count(question.text) == 1
    gold = shown(call, run_id, question.id, "--gold").gold
    assert gold is not None
    assert (gold.sql, gold.status) == (question.gold, "ok")
    assert gold.row_count > 0
    assert question.gold in call("show", run_id, question.id, "--gold")[1]


def test_gold_of_a_data_set_that_has_changed_since_is_not_shown(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    list_of_questions = Path(bench.choices.root)
    list_of_questions.write_text(list_of_questions.read_text().replace("customers", "clients"))
    code, out, err = call("show", run_id, bench.data.questions[1].id, "--gold")
    assert (code, out) == (2, "")
    assert f"has changed since run {run_id}" in err
    assert "leave out --gold" in err
    assert call("show", run_id, bench.data.questions[1].id)[0] == 0


def test_methods_find_no_gold_query_among_the_texts(bench: Bench) -> None:
    _, journal = bench.begun()
    with journal:
        blind = BlindJournal(journal, "/outcome")
        header = blind.get("run")
        assert header is not None
        texts = blind.get_blob(header["texts"]).decode()
        assert bench.data.questions[1].text in {one.text for one in read_texts(journal, header["texts"]).values()}
    assert all(json.dumps(question.gold) not in texts for question in bench.data.questions if question.gold)


def test_a_question_that_cannot_be_evaluated_is_shown_with_the_reason(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    first = bench.data.questions[0]
    document = shown(call, run_id, first.id)
    assert (document.standing, document.reason) == ("no_gold", "the data set gives no gold query")
    assert (document.text, document.answers, document.asked) == (first.text, [], [])


def test_lists_of_questions_agree_with_the_figures(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    figures = json.loads(call("show", run_id, "--json")[1])
    lists = {
        which: SqlQuestionsDocument.model_validate_json(call("show", run_id, "--questions", which, "--json")[1])
        for which in ("failed", "right", "left-out", "all")
    }
    ids = {which: [one.id for one in document.questions] for which, document in lists.items()}
    strict = figures["methods"]["evosql"]["strict"]
    assert len(ids["right"]) == strict["right"]
    assert len(ids["failed"]) == strict["of"] - strict["right"]
    assert bench.data.questions[1].id in ids["failed"]
    assert ids["left-out"] == [bench.data.questions[0].id] == [one["id"] for one in figures["left_out"]]
    assert ids["all"] == [question.id for question in bench.data.questions]
    assert sorted(ids["failed"] + ids["right"] + ids["left-out"]) == sorted(ids["all"])
    code, out, _ = call("show", run_id, "--questions", "failed")
    assert code == 0
    assert f"did not get right (strict): {len(ids['failed'])} of run {run_id}" in out
    assert "wrong" in out


def test_tables_name_the_questions_that_are_left_out_and_the_way_to_those_that_failed(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    out = call("show", run_id)[1]
    assert f"1: {bench.data.questions[0].id}" in out
    assert out.rstrip().splitlines()[-1].startswith("EvoSQL is right on ")


def test_an_answer_that_is_right_has_no_difference_and_one_that_is_not_says_which(bench: Bench, call: Call) -> None:
    third = bench.data.questions[2]
    assert third.gold is not None
    run_id, journal = bench.begun()
    configuration = bench.configuration(methods=(Method.MAJORITY,))
    configuration.generator._golds[third.text] = "SELECT * FROM customers LIMIT 0"  # type: ignore[attr-defined]
    with journal:
        bench.run(journal, configuration)
    found = [answer for q in bench.data.questions for answer in shown(call, run_id, q.id).answers]
    assert {"strict" in one.right for one in found} == {True, False}
    assert [not one.difference for one in found] == ["strict" in one.right for one in found]
    (wrong,) = shown(call, run_id, third.id).answers
    assert wrong.difference[0].startswith("no rows, where ")


def test_a_list_without_questions_is_a_sentence(bench: Bench, call: Call) -> None:
    run_id, journal = bench.begun()
    configuration = bench.configuration()
    with journal:
        bench.run(journal, configuration)
    assert json.loads(call("show", run_id, "--questions", "failed", "--json")[1])["questions"] == []
    code, out, _ = call("show", run_id, "--questions", "failed")
    assert code == 0
    assert out.splitlines() == [
        f"Questions that EvoSQL did not get right (strict): none of run {run_id}.",
        f"`evolvarium show {run_id} --questions all` lists every question.",
    ]


def test_a_question_that_the_budget_did_not_reach_says_so(bench: Bench, call: Call) -> None:
    run_id = measured(bench, budget=Budget(tokens=100))
    document = shown(call, run_id, bench.data.questions[1].id)
    assert (document.answers, document.requests) == ([], 0)
    assert document.not_reached == [method.value for method in Method]
    assert "The budget did not reach it." in call("show", run_id, bench.data.questions[1].id)[1]
    assert "not reached" in call("show", run_id, "--questions", "failed")[1]


def test_an_unknown_question_is_named_with_the_way_to_the_others(bench: Bench, call: Call) -> None:
    run_id = measured(bench)
    code, out, err = call("show", run_id, "shop-0")
    assert (code, out) == (2, "")
    assert "has no question 'shop-0'" in err
    assert "--questions all" in err


def test_a_bench_of_a_version_that_kept_less_is_shown_as_far_as_it_goes(bench: Bench, call: Call) -> None:
    made = RunStore(bench.home)
    old_id, old = made.create()
    with made.open(measured(bench), read_only=True) as new, old:
        for key, record in new.records():
            kept = {name: value for name, value in record.items() if name not in {"texts", "predictions"}}
            old.put(key, kept)
        for question in bench.data.questions:
            gold = new.get(f"q/{question.id}/gold")
            if gold is not None and gold["result"] is not None:
                old.put_blob(new.get_blob(gold["result"]))
        for _, record in new.records("q/"):
            if isinstance(record.get("result"), str) and record["result"].startswith("sha256:"):
                old.put_blob(new.get_blob(record["result"]))
    document = shown(call, old_id, bench.data.questions[1].id)
    assert (document.text, document.answers, document.answered) == (None, [], True)
    assert call("show", old_id, bench.data.questions[1].id)[0] == 0


@pytest.mark.parametrize("option", [["--questions", "all"], ["--gold"]])
def test_a_hostile_query_cannot_write_to_the_terminal(bench: Bench, call: Call, option: list[str]) -> None:
    run_id, journal = bench.begun()
    question = bench.data.questions[1]
    configuration = bench.configuration()
    hostile = "SELECT '\x1b[31m::set-output name=x' AS \"\x1b[2J\""
    configuration.generator._golds[question.text] = hostile  # type: ignore[attr-defined]
    with journal:
        bench.run(journal, configuration)
    arguments = [] if option == ["--questions", "all"] else [question.id]
    code, out, err = call("show", run_id, *arguments, *option)
    assert code == 0
    assert "\x1b" not in out + err
    assert "\n::set-output" not in out
