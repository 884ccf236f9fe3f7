"""What the engine makes of a Deep Focus test of its draft."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.conversation import UserMessage
from orchestrator.llm.offline.evolver.plans import Plan, read_plan
from orchestrator.llm.offline.evolver.rules import convention_rule
from orchestrator.llm.offline.evolver.sections import cut_sections, library
from orchestrator.llm.offline.evolver.symptoms import CONVENTIONS, Symptom
from orchestrator.llm.offline.sql.instructions import conventions_in
from tests.unit.offline_evolver.host import TIES, Host, package, report, rules_said

MANY_ROWS = "3 rows too many"


def plan_of(host: Host) -> Plan:
    plan = read_plan(host.draft["reasoning.md"])
    assert plan is not None
    return plan


def drafted(seed: int = 1, **settings: Any) -> Host:
    """A draft with at least one rule on trial."""
    errors = [report(MANY_ROWS)] * 9
    host = Host(pool={"p02": package([library()["ddl"]], ["Be brief."])}, errors={"p02": errors}, **settings)
    return host.run(seed=seed)


def with_a_rule_for_rows() -> Host:
    for seed in range(50):
        host = drafted(seed)
        if rules_said(host) & set(CONVENTIONS[Symptom.EXTRA_ROWS]):
            return host
    raise AssertionError


def test_a_new_rule_that_made_errors_of_its_own_goes_and_something_else_comes() -> None:
    host = with_a_rule_for_rows()
    before = rules_said(host)
    new = {found for text in plan_of(host).new_rules for found in conventions_in(text)}
    host.focus(
        {"iteration": 1, "questions": 60, "accuracy": {"p02": 0.6, "draft": 0.5}},
        unique_errors=[report(MANY_ROWS)] * 6,
        consensus_errors=[report("1 column too many")] * 4,
    )
    assert not rules_said(host) & new & set(CONVENTIONS[Symptom.EXTRA_ROWS])
    assert host.finished is not None
    account = host.draft["reasoning.md"]
    assert "## After Deep Focus 1" in account
    assert "- Accuracy on the same questions: p02 0.6000, draft 0.5000." in account
    assert "Its own errors: rows too many (6). Therefore this goes:" in account
    assert "Therefore this comes:" in account
    assert rules_said(host) != before


def test_a_draft_that_did_worse_for_no_known_reason_loses_all_that_was_on_trial() -> None:
    host = with_a_rule_for_rows()
    new = {found for text in plan_of(host).new_rules for found in conventions_in(text)}
    unexplained = report("the rows are right, and in another order than is wanted")
    host.focus({"accuracy": {"p02": 0.6, "draft": 0.5}}, unique_errors=[unexplained])
    assert not rules_said(host) & new


def test_a_rule_that_had_made_room_comes_back_when_its_opposite_goes() -> None:
    limit, ties = convention_rule("superlative-limit"), convention_rule("superlative-ties")
    pool = {"p02": package([library()["ddl"]], [limit.text.removeprefix("- ")])}
    for seed in range(80):
        host = Host(pool=pool, errors={"p02": [{**report("2 rows too few"), **TIES}] * 9}).run(seed=seed)
        if "superlative-ties" in rules_said(host):
            break
    assert rules_said(host) & {"superlative-limit", "superlative-ties"} == {"superlative-ties"}
    host.focus({"accuracy": {"p02": 0.6, "draft": 0.1}}, unique_errors=[report("2 rows too few")] * 9)
    texts = host.draft["eval_instructions.md"].split("\n")
    assert limit.text in texts
    assert ties.text not in texts


def test_a_draft_that_did_better_keeps_what_it_has_and_gets_something_against_what_is_left() -> None:
    host = with_a_rule_for_rows()
    before, sections = rules_said(host), cut_sections(host.draft["tools/analyze.py"])
    host.focus(
        {"accuracy": {"p02": 0.5, "draft": 0.6}},
        unique_successes=[{"question": "q", "evidence": "", "sql": "SELECT 1"}] * 6,
        consensus_errors=[report("no rows, where 1 are wanted", rows=0)] * 4,
    )
    after = cut_sections(host.draft["tools/analyze.py"])
    assert {name: after[name] for name in sections} == sections
    assert (len(rules_said(host) - before) == 1) is (len(after) == len(sections))
    assert len(after) + len(rules_said(host)) == len(sections) + len(before) + 1 - len(before - rules_said(host))


def test_a_draft_without_errors_is_handed_in_again_as_it_is() -> None:
    host = drafted()
    before, calls = dict(host.draft), len(host.calls)
    host.focus({"accuracy": {"p02": 0.5, "draft": 1.0}})
    assert [call.name for call in host.calls[calls:]] == ["finish"]
    assert host.draft == before


def test_an_analysis_over_the_budget_becomes_shorter_and_heeds_the_schemas_size() -> None:
    host = drafted()
    before = plan_of(host).max_bytes
    host.focus(
        {"accuracy": {"p02": 0.5, "draft": 0.1}},
        tool=[{"database": "zoo", "failure": "over-budget", "tokens": 300_000}],
    )
    assert plan_of(host).max_bytes == before // 2
    assert f"MAX_BYTES = {before // 2} " in host.draft["tools/analyze.py"]
    assert "size_adaptation" in cut_sections(host.draft["tools/analyze.py"])


def test_what_was_new_in_a_tool_that_failed_goes() -> None:
    host = drafted()
    new = set(plan_of(host).new_sections)
    if not new:
        pytest.fail("the draft should have a section on trial")
    host.focus(
        {"accuracy": {"p02": 0.5, "draft": 0.1}},
        tool=[{"database": "zoo", "failure": "timeout", "detail": "it took too long", "instead": "hybrid"}],
    )
    left = set(cut_sections(host.draft["tools/analyze.py"]))
    assert not left & (new - {"ddl", "size_adaptation"})
    assert "The analysis was of no use on zoo" in host.draft["reasoning.md"]


def test_after_a_revision_that_was_not_kept_the_version_before_is_worked_on_and_not_the_same_tried_again() -> None:
    host = with_a_rule_for_rows()
    first = dict(host.draft)
    figures = {"accuracy": {"p02": 0.5, "draft": 0.5}}
    errors = [report("1 column too many")] * 4
    host.focus(figures, consensus_errors=errors)
    tried = {found for text in plan_of(host).new_rules for found in conventions_in(text)} - rules_said(
        Host(draft=dict(first))
    )
    host.draft = dict(first)  # as the run restores it
    host.focus({**figures, "kept": "the version before it was kept"}, consensus_errors=errors, seed=9)
    assert not rules_said(host) & tried
    assert len(host.notebook().rejected) == 1
    assert host.draft["reasoning.md"].count("## After Deep Focus") == 1


def test_deep_focus_can_be_gone_through_several_times() -> None:
    host = drafted()
    for number in range(1, 4):
        host.focus({"accuracy": {"p02": 0.5, "draft": 0.6}}, consensus_errors=[report(MANY_ROWS)], seed=number)
        assert host.finished is not None
        assert f"## After Deep Focus {number}" in host.draft["reasoning.md"]
        host.package()
    assert host.draft["reasoning.md"].count("\nPlan: ") == 1


@pytest.mark.parametrize(
    "text", ["# Deep focus", "# Deep focus\n\n## Results\n```json\n[1, 2\n```", "# Deep focus\n```"]
)
def test_a_message_without_results_leads_to_the_same_package_again(text: str) -> None:
    host = drafted()
    before = dict(host.draft)
    host.conversation = host.conversation.plus(UserMessage(text=text))
    host.run()
    assert host.finished is not None
    assert host.draft == before
