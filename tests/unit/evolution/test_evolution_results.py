"""An evolution's figures from a journal, checked by hand, and what commands show of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orchestrator.bootstrap.robophd.final import PREFIX
from orchestrator.bootstrap.robophd.results import read_results
from orchestrator.bootstrap.robophd.scores import read_scores
from orchestrator.cli.evolution_parts import evolution_parts
from orchestrator.cli.evolution_summaries import evolution_document
from orchestrator.cli.terminal import Rows
from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.run import RUN, RUN_END
from orchestrator.search.bradley_terry import QuestionOutcome, fit
from orchestrator.search.streams import stream
from tests.evolution_journal import JournalCopy, copy_of, final_record
from tests.recorded_evolution import SETTINGS, RecordedEvolutions

ODD: tuple[Any, ...] = (None, 10**30, -1, 1.5, True, "", "x", [], {}, [None], {"": 0})
"""What stands in the place of a part of a record."""


@pytest.fixture(scope="module")
def evolutions(tmp_path_factory: pytest.TempPathFactory) -> RecordedEvolutions:
    return RecordedEvolutions(tmp_path_factory.mktemp("evolutions"), canary="x-canary")


@pytest.fixture(scope="module")
def run_id(evolutions: RecordedEvolutions) -> str:
    return evolutions.made()


@pytest.fixture
def journal(evolutions: RecordedEvolutions, run_id: str) -> JournalCopy:
    """A copy that may be changed."""
    return copy_of(evolutions, run_id)


def contest(
    journal: JournalCopy, number: int, rows: Mapping[str, Mapping[str, list[str]]], ratings: dict[str, float]
) -> None:
    """Put a contest by hand: database to question to the packages that had it right."""
    names = list(ratings)
    questions = {name: [[id_, f"group of {id_}"] for id_ in asked] for name, asked in rows.items()}
    right = {
        name: [id_ for asked in rows.values() for id_, winners in asked.items() if name in winners] for name in names
    }
    plan = {"kind": "standard", "strategy": None if number == 1 else "refinement", "questions": questions}
    end = {
        "kind": "standard",
        "questions": {name: list(asked) for name, asked in rows.items()},
        "competitors": names,
        "right": right,
        "ratings": ratings,
        "analyses": {name: {database: {"source": "tool", "failure": None} for database in rows} for name in names},
    }
    journal.change(f"it/{number:02d}/plan", plan)
    journal.change(f"it/{number:02d}/end", end)


FIRST = {"garden": {"a": ["naive"], "b": []}}
SECOND = {"garden": {"a": ["naive", "p02"], "b": ["p02"], "c": ["p02"]}, "harbor": {"d": ["naive"], "e": ["p02"]}}


@pytest.fixture
def by_hand(journal: JournalCopy) -> JournalCopy:
    contest(journal, 1, FIRST, {"naive": 1500.0})
    contest(journal, 2, SECOND, {"naive": 1484.0, "p02": 1516.0})
    return journal


def test_ratings_and_counts_are_those_of_the_contests(by_hand: JournalCopy) -> None:
    results = read_results("r", by_hand)
    rows = {row.member.id: row for row in results.table}
    assert [row.member.id for row in results.table] == ["p02", "naive"]
    assert (rows["p02"].rating, rows["naive"].rating) == (1516, 1484)  # 4 of 5 beats 2 of 5: half of K from even odds
    assert (rows["p02"].tests, rows["p02"].questions, rows["p02"].right) == (1, 5, 4)
    assert (rows["naive"].tests, rows["naive"].questions, rows["naive"].right) == (2, 7, 3)
    assert [one.contest.accuracy("naive") for one in results.iterations if one.contest] == [0.5, 0.4]


def test_bradley_terry_is_fitted_to_the_questions_that_packages_met_on(by_hand: JournalCopy) -> None:
    def outcome(id_: str, right: set[str], wrong: set[str]) -> QuestionOutcome:
        return QuestionOutcome(group=f"group of {id_}", right=frozenset(right), wrong=frozenset(wrong))

    expected = fit(
        [
            outcome("a", {"naive"}, set()),
            outcome("b", set(), {"naive"}),
            outcome("a", {"naive", "p02"}, set()),
            outcome("b", {"p02"}, {"naive"}),
            outcome("c", {"p02"}, {"naive"}),
            outcome("d", {"naive"}, {"p02"}),
            outcome("e", {"p02"}, {"naive"}),
        ],
        generator=stream(SETTINGS.seed, "bradley-terry"),
    )
    found = read_results("r", by_hand).bradley_terry
    assert found == expected
    assert found["p02"].rating > found["naive"].rating
    low, high = found["p02"].low, found["p02"].high
    assert low is not None
    assert high is not None
    assert low <= found["p02"].rating <= high


def test_the_ledger_of_an_evolution_holds_what_its_roles_have_spent(journal: JournalCopy) -> None:
    document = evolution_document(read_results("r", journal))
    requests = {line.role: line.requests for line in document.ledger}
    assert requests["evolver"] == document.spent["evolver"].requests > 0
    assert sum(requests.values()) == sum(one.requests for one in document.spent.values())
    titles = [part.title for part in evolution_parts(document) if isinstance(part, Rows)]
    assert "Spent on models" in titles


def test_the_champion_state_and_selection_are_the_records(journal: JournalCopy) -> None:
    document = evolution_document(read_results("r", journal))
    kept = {name: json.loads(journal.entries[f"select/{name}"]) for name in ("naive", "p02")}
    for package in document.packages:
        record = kept[package.id]
        assert (package.select_right, package.select_questions) == (len(record["right"]), record["questions"])
    assert document.champion == json.loads(journal.entries[RUN_END])["champion"]
    assert document.state == "done"
    journal.change(RUN_END, {"ending": "budget", "champion": "naive", "selected": []})
    assert evolution_document(read_results("r", journal)).state == "budget-spent"
    del journal.entries[RUN_END]
    document = evolution_document(read_results("r", journal))
    assert (document.state, document.champion) == ("unfinished", None)
    assert "`evolvarium resume r` goes on" in str(evolution_parts(document)[-1])


def test_scores_by_database_add_up_to_those_of_contests_and_selection(journal: JournalCopy) -> None:
    results = read_results("r", journal)
    for row in results.table:
        scores = read_scores("r", journal, row.member.id)
        contests = [one for one in scores if not one.is_select]
        select = [one for one in scores if one.is_select]
        assert {one.name for one in contests} == set(results.data["evolve"])
        assert {one.name for one in select} == set(results.data["select"])
        assert (sum(one.right for one in contests), sum(one.questions for one in contests)) == (
            row.right,
            row.questions,
        )
        assert (select[0].right, select[0].questions) == results.selection[row.member.id]
        assert {one.tool for one in scores} == {"ok"}


def test_questions_that_cannot_be_evaluated_are_named(journal: JournalCopy) -> None:
    gold_key = next(one for one in journal.entries if one.endswith("/gold"))
    known = {one[0]: one for one in json.loads(journal.entries[RUN])["questions"]}
    _, id_, database = known[gold_key.removesuffix("/gold")]
    record = json.loads(journal.entries[gold_key])
    journal.change(gold_key, {**record, "standing": "denied", "message": "secret may not be read", "result": None})
    document = evolution_document(read_results("r", journal))
    (left_out,) = document.left_out
    assert (left_out.id, left_out.database, left_out.standing) == (id_, database, "denied")
    assert document.standings == {"denied": 1, "evaluable": 13}
    text = "\n".join(part for part in evolution_parts(document) if isinstance(part, str))
    assert f"1 of 14 questions cannot be evaluated and take no part, for instance {id_} (denied: secret" in text


def test_tables_show_champion_intervals_and_failures(by_hand: JournalCopy) -> None:
    evolved = json.loads(by_hand.entries["it/02/evolve/end"])
    by_hand.change("it/02/evolve/end", {**evolved, "package": None, "failure": "it said nothing"})
    document = evolution_document(read_results("r", by_hand))
    tables = [part for part in evolution_parts(document) if isinstance(part, Rows)]
    iterations, packages, spent, *_ = tables
    assert iterations.rows[1][2] == "failed: it said nothing"
    assert iterations.rows[1][3] == "naive 40.00, p02 80.00"
    assert packages.rows[0][0] == f"p02{' *' if document.champion == 'p02' else ''}"
    assert str(packages.rows[0][2]).count(" to ") == 1
    assert [row[0] for row in spent.rows] == ["evolver", "answerer"]


def test_odd_records_are_an_error_or_change_nothing_that_is_read(journal: JournalCopy) -> None:
    random = Random(4)  # noqa: S311 - no secret
    journal.change(f"{PREFIX}p02:offline", final_record("p02", "offline", {"w": True}, {"w": "1"}))
    read_of = ("run", "package/", "it/01/", "it/02/plan", "it/02/evolve/end", "it/02/end", "select/", PREFIX)
    told = 0
    for key in [key for key in journal.entries if key.startswith(read_of)]:
        kept = journal.entries[key]
        places = list(_paths(json.loads(kept)))
        for path in random.sample(places, k=min(6, len(places))):
            journal.change(key, _changed(json.loads(kept), path, random.choice(ODD)))
            told += _is_refused(journal)
        journal.entries[key] = kept
    assert told > 20
    assert not _is_refused(journal)


def _is_refused(journal: JournalCopy) -> bool:
    """Whether the run's state is at fault; whatever else is raised is ours."""
    try:
        evolution_parts(evolution_document(read_results("r", journal)))
        read_scores("r", journal, "p02")
    except RunStateError:
        return True
    return False


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in a record."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*before, name)
        yield from _paths(part, (*before, name))


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    level = value
    for name in path[:-1]:
        level = level[name]
    level[path[-1]] = new
    return value


def test_a_run_of_another_version_is_told(journal: JournalCopy, tmp_path: Path) -> None:
    assert tmp_path
    record = json.loads(journal.entries[RUN])
    journal.change(RUN, {**record, "format": 99})
    with pytest.raises(RunStateError, match="was made by another version"):
        read_results("r", journal)


def test_an_evolution_whose_model_is_not_to_be_had_is_paused_until_it_goes_on(journal: JournalCopy) -> None:
    del journal.entries[RUN_END]
    journal.put("run/paused/0001", {"reason": "nobody serves"})
    document = evolution_document(read_results("r", journal))
    assert (document.state, document.pause) == ("paused", "nobody serves")
    assert "The run is paused: nobody serves." in [part for part in evolution_parts(document) if isinstance(part, str)]
    journal.put("it/09/plan/later", {})
    document = evolution_document(read_results("r", journal))
    assert (document.state, document.pause) == ("unfinished", None)
