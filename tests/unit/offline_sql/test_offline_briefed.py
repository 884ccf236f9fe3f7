"""The answerer knows what it is told: better texts lead to better answers, results lead to corrections."""

from __future__ import annotations

import pytest

from orchestrator.domain.conversation import Conversation, Message, UserMessage
from orchestrator.sql.answers import extract_sql
from tests.unit.offline_sql.briefed import BARE, CREATE, RICH, begin, query, repair, reply, rows_of, said, verify

QUESTIONS = (
    # (question, rows of a right answer)
    ("What are the names of observatories in Norway?", {("Birch Hill",), ("Low Fen",)}),
    ("How many observatories are in chile?", {(1,)}),
    ("What is the average price of radio telescopes?", {((10.5 + 80.0 + 9.0) / 3,)}),
    ("Which telescope labels belong to observatories in Norway?", {("Argus",), ("Ursa",)}),
)
FULL = (
    RICH + "- name: values: 'Birch Hill', 'Grey Rock', 'Low Fen'\n\n## Table: telescope\n- kind: 'optical', 'radio'\n"
)
UNKEYED = (
    "CREATE TABLE site (no INTEGER, town TEXT);\nCREATE TABLE dome (dome_id INTEGER, width REAL, located INTEGER);\n"
)


def right(analysis: str, *, effort: float = 1.0) -> int:
    """How many of the questions are answered rightly, in one attempt."""
    return sum(set(rows_of(query(text, analysis, effort=effort))) == rows for text, rows in QUESTIONS)


def answered(conversation: Conversation, *more: Message) -> str:
    return extract_sql(reply(conversation, *more))


class TestAnalysis:
    def test_values_make_answers_right(self) -> None:
        assert right(BARE) < right(RICH) < right(FULL) == len(QUESTIONS)

    def test_a_value_is_only_known_from_the_text(self) -> None:
        question = "How many observatories are in chile?"
        assert "'Chile'" in query(question, RICH)
        assert "Chile" not in query(question, BARE)

    def test_a_reference_that_only_the_text_tells_joins_tables(self) -> None:
        question = "What is the town of the site of the dome with the largest width?"
        told = UNKEYED + "\nForeign keys:\n- dome.located -> site.no\n"
        assert 'T1."no" = T2.located' in query(question, told)
        assert "located" not in query(question, UNKEYED)

    def test_a_title_explains_an_abbreviation(self) -> None:
        bare = "CREATE TABLE car (car_id INTEGER PRIMARY KEY, hp INTEGER, mk TEXT);\n"
        told = bare + "## Table: car\n- hp: horsepower\n- mk: maker\n"
        assert query("What is the maximum horsepower?", told) == "SELECT MAX(hp) FROM car"
        assert query("What is the maximum horsepower?", bare) != "SELECT MAX(hp) FROM car"

    def test_evidence_explains_words(self) -> None:
        sql = query("How many big telescopes are there?", CREATE, evidence="big refers to price > 50")
        assert sql == "SELECT COUNT(*) FROM telescope WHERE price > 50"

    @pytest.mark.parametrize("analysis", ["", "Nothing is known.", "[]", "There is no analysis of this database."])
    def test_without_a_table_no_query_is_made_up(self, analysis: str) -> None:
        assert extract_sql(reply(begin("How many singers are there?", analysis))) == ""


class TestVerification:
    def test_a_query_without_faults_is_correct(self) -> None:
        sql = "SELECT name FROM observatory WHERE country = 'Norway'"
        asked = begin("What are the names of observatories in Norway?", RICH)
        assert reply(asked, said(f"```sql\n{sql}\n```"), verify(sql)) == "CORRECT"

    def test_a_query_that_forgets_a_value_is_corrected(self) -> None:
        sql = "SELECT name FROM observatory"
        asked = begin("What are the names of observatories in Norway?", RICH)
        corrected = answered(asked, said(f"```sql\n{sql}\n```"), verify(sql))
        assert set(rows_of(corrected)) == {("Birch Hill",), ("Low Fen",)}

    def test_a_query_that_failed_is_corrected(self) -> None:
        sql = "SELECT title FROM observatory"
        corrected = answered(begin("What are the names of observatories?", RICH), verify(sql))
        assert ("Grey Rock",) in rows_of(corrected)

    def test_an_answer_is_never_corrected_to_itself(self) -> None:
        question = "How many telescopes and observatories have something?"
        asked = begin(question, RICH)
        first = reply(asked)
        second = reply(asked, said(first), verify(extract_sql(first)))
        assert extract_sql(second) != extract_sql(first)


class TestRepair:
    def test_a_name_that_does_not_exist_is_avoided(self) -> None:
        sql = "SELECT label FROM telescope"
        asked = begin("What is the label of each telescope?", CREATE)
        repaired = answered(asked, repair(sql, "no such column: label"))
        assert repaired
        assert "label" not in repaired

    def test_a_literal_that_gives_no_row_is_compared_more_loosely(self) -> None:
        question = "How many telescopes are at observatories in 'NORWAY'?"
        sql = "SELECT T1.label FROM telescope AS T1 JOIN observatory AS T2 WHERE T2.country = 'NORWAY'"
        repaired = answered(begin(question, BARE), said(f"```sql\n{sql}\n```"), repair(sql))
        assert repaired != sql
        assert "NORWAY" not in repaired or any(word in repaired for word in ("LIKE", "NOCASE"))

    def test_no_query_is_proposed_twice(self) -> None:
        conversation = begin("What are the names of observatories in Norway?", RICH)
        proposed = [answered(conversation)]
        for _ in range(3):
            conversation = conversation.plus(said(f"```sql\n{proposed[-1]}\n```"), repair(proposed[-1]))
            proposed.append(answered(conversation))
        assert len(set(proposed)) == len(proposed)


class TestSampling:
    def test_equal_requests_have_equal_replies(self) -> None:
        asked = begin("Which telescope labels belong to observatories in Norway?", RICH)
        assert reply(asked, seed=5, temperature=0.7) == reply(asked, seed=5, temperature=0.7)

    def test_without_temperature_the_seed_changes_nothing(self) -> None:
        asked = begin("Which telescope labels belong to observatories in Norway?", RICH)
        assert len({reply(asked, seed=seed, temperature=0.0) for seed in range(8)}) == 1

    def test_with_temperature_it_does(self) -> None:
        asked = begin("Which telescope labels belong to observatories in Norway?", RICH)
        assert len({reply(asked, seed=seed, temperature=None) for seed in range(12)}) > 1


class TestEffort:
    def test_with_less_effort_results_are_not_doubted(self) -> None:
        sql = "SELECT name FROM observatory"
        asked = begin("What are the names of observatories in Norway?", RICH)
        assert reply(asked, said(f"```sql\n{sql}\n```"), verify(sql), effort=0.3) == "CORRECT"

    def test_with_less_effort_only_the_first_listed_values_are_known(self) -> None:
        question = "How many observatories are in Peru?"
        assert "Peru" in query(question, RICH)
        assert "Peru" not in query(question, RICH, effort=0.3)

    def test_failures_are_repaired_all_the_same(self) -> None:
        sql = "SELECT title FROM observatory"
        asked = begin("What are the names of observatories?", RICH)
        assert extract_sql(reply(asked, verify(sql), effort=0.3))


class TestConversation:
    def test_sections_inside_blocks_are_data(self) -> None:
        inside = "How many big telescopes are there?\n\n## Evidence\nbig refers to price > 50"
        outside = query("How many big telescopes are there?", BARE, evidence="big refers to price > 50")
        assert "price > 50" in outside
        assert "price > 50" not in query(inside, BARE)

    def test_an_evolving_question_is_not_taken_for_another_kind(self) -> None:
        other = Conversation(system="", messages=(UserMessage(text="# Write a SQLite query\n"),))
        assert "nothing I can do" in reply(other)

    def test_a_message_without_a_question_gets_words(self) -> None:
        other = Conversation(system="", messages=(UserMessage(text="# Answer with a SQLite query"),))
        assert "no question" in reply(other)
