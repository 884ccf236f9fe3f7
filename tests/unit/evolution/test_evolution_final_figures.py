"""Final figures from a journal, checked by hand, and what is to be known of them."""

from __future__ import annotations

import json

import pytest

from orchestrator.bootstrap.robophd.results import read_results
from orchestrator.cli.evolution_parts import evolution_parts, final_parts, final_rows
from orchestrator.cli.evolution_summaries import evolution_document, final_document
from orchestrator.cli.terminal import Rows
from orchestrator.domain.conversation import Reply
from orchestrator.domain.records import from_record
from orchestrator.methods.robophd.keys import journal_name
from orchestrator.methods.robophd.run import RUN
from tests.evolution_journal import JournalCopy, copy_of, with_finals
from tests.recorded_evolution import RecordedEvolutions


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


def test_an_advantage_is_paired_by_question_and_resampled_by_group(journal: JournalCopy) -> None:
    always = dict.fromkeys("wxyz", True)
    results = with_finals(journal, always, {id_: id_ for id_ in always})
    p02, naive = results.finals[0], results.finals[1]
    all_of_it = results.advantage(p02, naive)
    assert (all_of_it.difference, all_of_it.low, all_of_it.high, all_of_it.half_width) == (1, 1, 1, 0)
    half = {"w": True, "x": True, "y": False, "z": False}
    results = with_finals(journal, half, {"w": "1", "x": "1", "y": "2", "z": "2"})
    found = results.advantage(results.finals[0], results.finals[1])
    assert (found.difference, found.low, found.high, found.groups) == (0.5, 0, 1, 2)
    back = results.advantage(results.finals[1], results.finals[0])
    assert (back.difference, back.low, back.high) == (-0.5, -1, 0)


def test_final_scores_compare_packages_under_one_model_and_say_what_a_query_costs(journal: JournalCopy) -> None:
    with_finals(journal, {"w": True, "x": False}, {"w": "1", "x": "2"})
    document = evolution_document(read_results("r", journal))
    p02, naive, other = document.finals
    assert [(one.package, one.model) for one in (p02, naive, other)] == [
        ("p02", "offline"),
        ("naive", "offline"),
        ("p02", "offline/effort-0.5"),
    ]
    assert [one.over for one in p02.advantages] == ["naive"]
    assert naive.advantages == other.advantages == []
    assert (p02.accuracy, p02.right, p02.questions, p02.databases) == (0.5, 1, 2, {"museum": [1, 2]})
    assert (p02.hybrid_databases, p02.hybrid_share, naive.hybrid_databases) == (1, 0.1, 0)
    assert (p02.tokens_per_question, p02.usd_per_question) == (500, 0.04)
    assert final_rows(document.finals).rows[0][-1] == "4.000"


def test_what_was_asked_on_final_databases_is_a_row_of_its_own(journal: JournalCopy) -> None:
    before = read_results("r", journal)
    assert list(before.spent) == ["evolver", "answerer"]
    known = json.loads(journal.entries[RUN])
    (database,) = known["data"]["final"]
    id_ = next(id_ for _, id_, of in known["questions"] if of == database)
    key = next(key for key in journal.entries if key.startswith("answer/") and "/request/" in key)
    record = json.loads(journal.entries[key])
    for new in (
        f"answer/0123456789abcdef/{journal_name(id_)}/request/0001",
        f"answer:offline:effort-0.5/0123456789abcdef/{journal_name(id_)}/request/0001",
        f"hybrid/0123456789abcdef/{database}/request/0001",
    ):
        journal.change(new, record)
    after = read_results("r", journal)
    assert {**after.spent, "final": None} == {**before.spent, "final": None}
    requests, usage = after.spent["final"]
    assert (requests, usage.tokens) == (3, 3 * from_record(Reply, record["reply"]).usage.tokens)


def test_what_can_be_known_of_final_figures_is_said_where_they_are_spoken_of(journal: JournalCopy) -> None:
    def closing() -> list[str]:
        parts = evolution_parts(evolution_document(read_results("r", journal)))
        return [part for part in parts if isinstance(part, str) and "evolvarium final" in part]

    record = json.loads(journal.entries[RUN])
    assert closing() == ["`evolvarium final r` scores it, once, on the databases that nothing was decided by."]
    branch = {"run": "abcdefabcdef", "from_iteration": 2, "after_final": False}
    record["choices"]["branch"] = branch
    journal.change(RUN, record)
    assert closing() == ["`evolvarium final r` scores it, once, on the databases that nothing was decided by."]
    branch["after_final"] = True
    journal.change(RUN, record)
    (line,) = closing()
    assert "but run abcdefabcdef had opened them before this branch was made" in line
    assert line.endswith("so whoever made it may have known the figures.")


def test_final_scores_that_were_not_asked_for_are_pointed_at(journal: JournalCopy) -> None:
    results = with_finals(journal, {"w": True, "x": False}, {"w": "1", "x": "2"})
    whole = evolution_document(results)
    table, hint = final_parts(final_document(results, frozenset({("p02", "offline/effort-0.5")})), whole)
    assert isinstance(table, Rows)
    assert len(table.rows) == 1
    assert hint == "`evolvarium show r` prints all 3 final scores of the run."
    everything = frozenset((score.package, score.model) for score in results.finals)
    assert len(final_parts(final_document(results, everything), whole)) == 1
