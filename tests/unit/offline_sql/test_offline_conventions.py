"""Rules in plain English are recognised, and each changes an answer where the question leaves it open."""

from __future__ import annotations

import pytest

from orchestrator.llm.offline.sql.briefed.effects import EFFECTS
from orchestrator.llm.offline.sql.convention import Convention
from orchestrator.llm.offline.sql.conventions import CONVENTIONS, convention
from orchestrator.llm.offline.sql.instructions import MAX_INSTRUCTION_CHARACTERS, conventions_in
from tests.unit.offline_sql.briefed import BARE, CREATE, RICH, begin, query, repair, reply, said, verify

PEOPLE = """\
CREATE TABLE guest (guest_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, age INTEGER, score TEXT);
CREATE TABLE stay (stay_id INTEGER PRIMARY KEY, guest_id INTEGER REFERENCES guest (guest_id), nights INTEGER,
  city TEXT, channel TEXT);
guest.score: values: '7', '12'
stay.city: values: ' Oslo', 'Rome'
"""
KINDS = CREATE + "telescope.kind: values: 'optical', 'radio'\n"
OPEN: dict[str, tuple[str, str, str]] = {
    # rule: (analysis, question, evidence) that it answers differently
    "superlative-ties": (CREATE, "Which telescope label has the highest price?", ""),
    "count-distinct": (CREATE, "How many observatories have telescopes?", ""),
    "distinct-lists": (CREATE, "List the countries of all observatories.", ""),
    "with-measure": (PEOPLE, "Which city has the most stays?", ""),
    "full-names": (PEOPLE, "What are the first names of guests older than 30?", ""),
    "ids-not-names": (CREATE, "Which observatories have no telescopes?", ""),
    "group-last": (PEOPLE, "For each city, how many stays are there?", ""),
    "like-values": (PEOPLE, "How many stays are in Rome?", ""),
    "ignore-case": (PEOPLE, "How many stays are in Rome?", ""),
    "values-as-said": (PEOPLE, "How many stays are in Oslo?", ""),
    "skip-nulls": (CREATE, "Which telescope label has the lowest price?", ""),
    "cast-numbers": (PEOPLE, "Which guest last name has the highest score?", ""),
    "count-rows": (PEOPLE, "How many cities are there?", ""),
    "first-names": (PEOPLE, "What is the name of each guest?", ""),
    "group-first": (CREATE, "What is the number of telescopes and the kind for each kind?", ""),
    "asked-order": (PEOPLE, "How many stays are there for each guest?", ""),
    "except": (KINDS, "What are the names of observatories without radio telescopes?", ""),
    "percent-fraction": (KINDS, "What percentage of telescopes are radio?", ""),
    "percent-hundred": (
        CREATE,
        "What percentage of telescopes are cheap?",
        "cheap refers to price < 20; percentage = DIVIDE(COUNT(price < 20), COUNT(telescope_id))",
    ),
    "group-by-name": (CREATE, "Which observatory name has the most telescopes?", ""),
}


def test_every_rule_has_an_effect_and_every_effect_a_rule() -> None:
    assert set(EFFECTS) == {rule.id for rule in CONVENTIONS}


def test_opposites_are_mutual() -> None:
    pairs = {(rule.id, rule.opposite) for rule in CONVENTIONS if rule.opposite}
    assert all((other, rule) in pairs for rule, other in pairs)


@pytest.mark.parametrize("rule", CONVENTIONS, ids=lambda rule: rule.id)
class TestEveryRule:
    def test_its_sentence_states_it_and_nothing_else(self, rule: Convention) -> None:
        assert conventions_in(f"# Rules\n\n- {rule.sentence}\n") == {rule.id}

    def test_its_sentence_is_found_inside_other_text(self, rule: Convention) -> None:
        text = f"You write SQLite. Think first.\n\n1. Be brief.\n2. **{rule.sentence}**\n3. Stop.\n"
        assert rule.id in conventions_in(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Use `ORDER BY x DESC LIMIT 1` for questions about the highest or most.", "superlative-limit"),
        ("Don't use LIMIT 1 for superlatives; several rows may tie.", "superlative-ties"),
        ("If rows are tied for the maximum, return every one of them.", "superlative-ties"),
        ("Always use COUNT(DISTINCT ...) when counting things.", "count-distinct"),
        ("Never use COUNT(DISTINCT x) if the question does not say so.", "count-rows"),
        ("Do not return extra columns: only the columns asked for.", "only-asked"),
        ("Select only the requested columns.", "only-asked"),
        ("Avoid duplicates in lists.", "distinct-lists"),
        ("Prefer names over ids when the question asks who or which.", "names-not-ids"),
        ("Text comparison should be case-insensitive.", "ignore-case"),
        ("The evidence's formulas must be followed exactly.", "evidence-literally"),
        ("An empty result can be correct. Do not treat no rows as an error.", "keep-empty"),
        ("Multiply ratios by 100 when a percentage is asked for: CAST(x AS REAL) * 100 / y.", "percent-hundred"),
        ("Exclude NULL values before sorting ascending.", "skip-nulls"),
    ],
)
def test_a_rule_may_be_phrased_otherwise(text: str, rule: str) -> None:
    assert rule in conventions_in(text)


def test_of_two_opposite_rules_the_later_holds() -> None:
    limit, ties = convention("superlative-limit").sentence, convention("superlative-ties").sentence
    assert conventions_in(f"- {limit}\n- {ties}\n") == {"superlative-ties"}
    assert conventions_in(f"- {ties}\n- {limit}\n") == {"superlative-limit"}


def test_what_is_no_rule_says_nothing() -> None:
    assert conventions_in("Write one query. Be careful with joins. Answer in SQLite's dialect.") == frozenset()


def test_what_is_over_the_bound_is_not_read() -> None:
    text = "x" * MAX_INSTRUCTION_CHARACTERS + "\n\n- " + convention("ignore-case").sentence
    assert conventions_in(text) == frozenset()


@pytest.mark.parametrize("rule", OPEN)
def test_a_rule_changes_the_answer_to_an_open_question(rule: str) -> None:
    analysis, question, evidence = OPEN[rule]
    plain = query(question, analysis, "", evidence)
    ruled = query(question, analysis, f"- {convention(rule).sentence}", evidence)
    assert ruled != plain


@pytest.mark.parametrize("rule", [rule for rule in OPEN if convention(rule).opposite])
def test_its_opposite_takes_it_back(rule: str) -> None:
    analysis, question, evidence = OPEN[rule]
    both = f"- {convention(rule).sentence}\n- {convention(convention(rule).opposite).sentence}"
    only = f"- {convention(convention(rule).opposite).sentence}"
    assert query(question, analysis, both, evidence) == query(question, analysis, only, evidence)


def test_a_result_is_doubted_as_far_as_rules_say() -> None:
    sql = "SELECT name FROM observatory"
    question = "What are the names of observatories in Norway?"
    asked = (said(f"```sql\n{sql}\n```"), verify(sql))
    assert reply(begin(question, RICH, convention("keep-query").sentence), *asked) == "CORRECT"
    assert "Norway" in reply(begin(question, RICH, convention("doubt-query").sentence), *asked)


def test_ties_are_all_returned_where_rules_say_so() -> None:
    question = "Which telescope label has the highest price?"
    assert "LIMIT 1" in query(question, CREATE)
    assert "MAX(price)" in query(question, CREATE, convention("superlative-ties").sentence)


def test_an_empty_result_stands_where_rules_say_so() -> None:
    sql = "SELECT name FROM observatory WHERE country = 'Peru'"
    question = "What are the names of observatories in Peru?"
    kept = begin(question, BARE, convention("keep-empty").sentence)
    free = begin(question, BARE)
    asked = (said(f"```sql\n{sql}\n```"), verify(sql))
    assert reply(kept, *asked) == "CORRECT"
    assert reply(free, *asked) != "CORRECT"
    assert sql in reply(kept, said(f"```sql\n{sql}\n```"), repair(sql))
