"""A whole evolution by the offline engine, from the first message to the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.domain.conversation import AssistantMessage, Conversation, Sampling, StopReason, UserMessage
from orchestrator.llm.offline.evolver import is_evolver_request, respond_evolver
from orchestrator.llm.offline.evolver.plans import read_plan
from orchestrator.llm.offline.evolver.rules import convention_rule, read_rules
from orchestrator.llm.offline.evolver.sections import cut_sections, library
from orchestrator.llm.offline.evolver.symptoms import CONVENTIONS, SECTIONS, Symptom
from orchestrator.llm.offline.model import OfflineModel
from orchestrator.llm.offline.sql.conventions import CONVENTIONS as KNOWN
from orchestrator.llm.offline.sql.instructions import conventions_in
from tests.unit.offline_evolver.databases import SHOP, made, odd_databases
from tests.unit.offline_evolver.host import (
    FOREIGN,
    LIMIT,
    NAIVE,
    TIES,
    TOOLS,
    Host,
    package,
    report,
    rules_said,
    section_names,
    two_parents,
)

SEEDS = range(12)


def test_only_the_title_of_the_first_message_makes_an_evolvers_request() -> None:
    text = Host().opening()
    assert is_evolver_request(Conversation(system="", messages=(UserMessage(text=text),)))
    for other in (f"x\n{text}", text.replace("# Evolve", "# Write"), ""):
        assert not is_evolver_request(Conversation(system="", messages=(UserMessage(text=other),)))
    assert not is_evolver_request(Conversation(system="", messages=()))
    assert not is_evolver_request(Conversation(system="", messages=(AssistantMessage(text=text),)))


def test_the_offline_model_gives_these_replies_and_they_fit_into_the_usual_size() -> None:
    host = Host(pool={"p02": package(list(library().values()), [convention.sentence for convention in KNOWN])}).run()
    messages = host.conversation.messages
    model = OfflineModel()
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            before = Conversation(system=host.conversation.system, messages=messages[:place])
            reply = model.complete(before, TOOLS, Sampling(seed=1 + place // 2, max_output_tokens=32_000))
            assert reply.message == message
            assert reply.stop is StopReason.TOOLS


def test_an_evolution_reads_then_accounts_then_builds_then_tries_then_hands_in(tmp_path: Path) -> None:
    files = {"shop": made(tmp_path / "shop.sqlite", SHOP), **odd_databases(tmp_path / "odd")}
    host = Host(folder=tmp_path / "tries", databases=files).run()
    order = list(dict.fromkeys(call.name for call in host.calls))
    assert order == ["read_package", "read_errors", "write", "try_tool", "finish"]
    assert host.called("write")[0]["file"] == "reasoning.md"
    assert host.finished is not None
    assert host.package().manifest.output == "tool_output/analysis.md"
    assert "ddl" in section_names(host)
    assert len(section_names(host)) > 2


def test_the_account_cites_figures_of_the_message_and_says_what_is_tried() -> None:
    host = two_parents(errors={"p02": [report("1 column too many")], "p03": []}).run()
    account = host.draft["reasoning.md"]
    assert "p02 (rating 1510.0, accuracy 0.6000 over 60 questions; accuracy 0.6000 in the last contest)" in account
    assert "- columns too many: 2" in account
    plan = read_plan(account)
    assert plan is not None
    for text in plan.new_rules:
        assert f"Rule on trial: {text.removeprefix('- ')}" in account
    assert account.rstrip().split("\n")[-1] == plan.line()


def test_a_tool_without_marks_is_noted_and_not_taken_over() -> None:
    host = Host().run()
    assert "a tool without marked sections, whose text is not taken over" in host.draft["reasoning.md"]
    assert "nothing is marked here" not in host.draft["tools/analyze.py"]
    assert host.draft["eval_instructions.md"].startswith(NAIVE["eval_instructions.md"])


@pytest.mark.parametrize("seed", SEEDS)
def test_cross_pollination_keeps_texts_and_parameters_of_parents_and_adds_something(seed: int) -> None:
    host = two_parents().run(seed=seed)
    found = cut_sections(host.draft["tools/analyze.py"])
    assert set(found) >= {"ddl", "trends", "enumerations"}
    plan = read_plan(host.draft["reasoning.md"])
    assert plan is not None
    if "trends" not in plan.new_sections:
        assert found["trends"].text == FOREIGN
    if "enumerations" not in plan.new_sections:
        assert found["enumerations"] == library()["enumerations"].varied({"limit": 37})
    rules = [rule.text for rule in read_rules(host.draft["eval_instructions.md"])]
    assert "- Prefer short queries." in rules
    assert "- Mind the units." in rules
    assert plan.new_sections or plan.new_rules
    own = sum(name not in {"ddl", "trends", "enumerations"} for name in found)
    assert own + len(plan.new_rules) <= 3


def test_sections_that_define_one_name_twice_or_are_too_long_together_do_not_meet_in_one_tool() -> None:
    trends = cut_sections(FOREIGN)["trends"]
    other = cut_sections(
        FOREIGN.replace("section: trends", "section: trends_years_x").replace(
            "section_trends", "section_trends_years_x"
        )
    )
    texts = [FOREIGN.replace("trends", f"more{n}").replace("TRENDS", f"MORE{n}") for n in range(5)]
    long = [
        cut_sections(text.replace("YEARS = 5", f"YEARS = 5  # {'x' * 15_000}"))[f"more{n}"]
        for n, text in enumerate(texts)
    ]
    assert not other["trends_years_x"].is_sound()
    host = Host(pool={"p02": package([library()["ddl"], trends, *long])}).run()
    assert {"ddl", "more0", "more1"} <= section_names(host)
    assert len(host.draft["tools/analyze.py"]) < 90_000
    assert host.finished is not None


def test_now_and_then_a_rule_that_everybody_has_is_left_out_the_likelier_the_more_errors_speak_against_it() -> None:
    ids = ("superlative-ties", "full-names")
    shared = [convention_rule(id_).text.removeprefix("- ") for id_ in ids]
    pool = {id_: package([library()["ddl"]], shared) for id_ in ("p02", "p03")}
    wrong = report("2 rows too many", sql="SELECT a FROM t WHERE b = (SELECT MAX(b) FROM t)")
    errors = [{**wrong, "question": "Which is the oldest?"}] * 9
    lost = dict.fromkeys(ids, 0)
    for seed in range(60):
        host = Host(pool=pool, errors={"p02": errors, "p03": errors}).run(seed=seed)
        gone = read_plan(host.draft["reasoning.md"])
        assert gone is not None
        for id_ in ids:
            lost[id_] += convention_rule(id_).text in gone.dropped
    assert lost["superlative-ties"] > 3 * lost["full-names"]
    assert lost["superlative-ties"] < 60


def test_what_the_worse_packages_alone_have_is_not_taken_over() -> None:
    host = two_parents()
    host.ratings = {"p02": 1550.0, "p03": 1450.0}
    host.run()
    plan = read_plan(host.draft["reasoning.md"])
    assert plan is not None
    assert {choice.source for choice in plan.sections} <= {"p02", ":library"}
    assert "- Mind the units." not in host.draft["eval_instructions.md"]


def test_a_rule_that_goes_with_bad_ranks_is_left_out() -> None:
    pool = {f"p{n:02}": package([library()["ddl"]], ["Be brief.", *([LIMIT] if n < 5 else [])]) for n in range(2, 7)}
    pool["p06"]["eval_instructions.md"] += f"- {LIMIT}\n"
    ratings = {"p02": 1400.0, "p03": 1400.0, "p04": 1400.0, "p05": 1590.0, "p06": 1600.0}
    dropped = 0
    for seed in SEEDS:
        host = Host(pool=pool, ratings=ratings).run(seed=seed)
        plan = read_plan(host.draft["reasoning.md"])
        assert plan is not None
        assert plan.base == "p06"
        dropped += f"- {LIMIT}" in plan.dropped
    assert dropped == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_refinement_reads_the_best_alone_and_changes_one_thing(seed: int) -> None:
    host = two_parents(strategy="refinement")
    host.ratings["p02"] = 1600.0
    host.run(seed=seed)
    assert {call["id"] for call in host.called("read_package")} == {"p02"}
    before = cut_sections(host.pool["p02"]["tools/analyze.py"])
    after = cut_sections(host.draft["tools/analyze.py"])
    changed = {name for name in before if after.get(name) != before[name]}
    said, said_before = rules_said(host), conventions_in(host.pool["p02"]["eval_instructions.md"])
    opposites = {c.opposite for c in KNOWN if c.id in said - said_before}
    lost = (said_before - said) - opposites
    assert len(changed) + len(set(after) - set(before)) + len(said - said_before) + len(lost) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_error_focus_adds_only_what_is_for_the_commonest_kind(seed: int) -> None:
    errors = [report("no rows, where 3 are wanted", rows=0)] * 5 + [report("1 column too many")]
    host = two_parents(strategy="error-focused", errors={"p02": errors, "p03": errors}).run(seed=seed)
    before = {"ddl", "trends", "enumerations"}
    assert section_names(host) - before <= set(SECTIONS[Symptom.EMPTY])
    assert section_names(host) - before
    added = rules_said(host) - {"superlative-limit"}
    assert added
    assert added <= set(CONVENTIONS[Symptom.EMPTY])
    assert cut_sections(host.draft["tools/analyze.py"])["enumerations"].parameters in (
        {"limit": 74, "longest": 60},
        {"limit": 37, "longest": 120},
    )


def test_research_takes_what_the_papers_speak_of() -> None:
    papers = "Foreign keys matter. " * 200 + "Percentages: compute a percentage as 100.0 * part / whole. " * 50
    taken = [two_parents(strategy="research-driven", papers=papers).run(seed=seed) for seed in SEEDS]
    keys = sum("keys_and_cardinalities" in section_names(host) for host in taken)
    percentages = sum("percent-hundred" in rules_said(host) for host in taken)
    silent = [two_parents().run(seed=seed) for seed in SEEDS]
    assert keys == len(taken)
    assert percentages > sum("percent-hundred" in rules_said(host) for host in silent)


def test_an_unknown_strategy_is_taken_for_cross_pollination() -> None:
    host = two_parents(strategy="```\n## Pool\nnone").run()
    assert section_names(host) >= {"ddl", "trends", "enumerations"}


def test_errors_push_what_is_drawn() -> None:
    def added(*difference: str) -> frozenset[str]:
        errors = [report(*difference)] * 9
        hosts = [two_parents(errors={"p02": errors, "p03": errors}).run(seed=seed) for seed in range(30)]
        return frozenset(name for host in hosts for name in rules_said(host) if name in counted)

    counted = set(CONVENTIONS[Symptom.EXTRA_COLUMNS])
    assert added("1 column too many") == counted
    hosts = [two_parents(errors={"p02": [report("1 column too many")] * 9}).run(seed=seed) for seed in range(30)]
    for_columns = sum(bool(rules_said(host) & counted) for host in hosts)
    assert for_columns > 15


def test_equal_arguments_have_equal_replies_and_other_seeds_other_packages() -> None:
    drafts = [json.dumps(two_parents().run(seed=seed).draft, sort_keys=True) for seed in (1, 1, 2, 3, 4)]
    assert drafts[0] == drafts[1]
    assert len(set(drafts)) > 3
    conversation = Conversation(system="", messages=(UserMessage(text=two_parents().opening()),))
    assert respond_evolver(conversation, TOOLS, 5) == respond_evolver(conversation, TOOLS, 5)


def test_a_package_is_unlike_those_that_were_read_even_if_there_is_nothing_left_to_add() -> None:
    rules = {convention.id: convention.sentence for convention in KNOWN}
    whole = package(list(library().values()), list(rules.values()))
    host = Host(pool={"p02": whole}).run()
    draft = {name: text for name, text in host.draft.items() if name != "reasoning.md"}
    assert draft != {name: text for name, text in whole.items() if name != "reasoning.md"}


@pytest.mark.parametrize("requests", [1, 2, 3, 4, 5, 6, 7, 8, 9, 12])
def test_a_package_is_handed_in_within_the_requests_there_are(requests: int) -> None:
    host = two_parents(requests=requests).run()
    assert sum(isinstance(message, AssistantMessage) for message in host.conversation.messages) <= requests
    assert host.finished is not None


def test_without_tools_to_read_and_try_it_builds_from_the_library() -> None:
    host = Host(tools=tuple(tool for tool in TOOLS if tool.name in {"write", "finish"})).run()
    assert section_names(host) == set(library())
    assert host.finished is not None


def test_without_tools_to_write_it_ends_its_turn_in_words() -> None:
    message = respond_evolver(Conversation(system="", messages=(UserMessage(text=Host().opening()),)), (), 1)
    assert not message.tool_calls
    assert "write and finish" in message.text


def test_after_a_message_that_was_too_long_it_writes_less() -> None:
    first = two_parents().run()
    again = two_parents()
    again.conversation = Conversation(
        system="",
        messages=(
            UserMessage(text=again.opening()),
            AssistantMessage(text="I write down"),
            UserMessage(text="# Continue\n\nYou have not called a tool."),
        ),
    )
    again.run()
    assert again.finished is not None
    assert len(again.draft["tools/analyze.py"]) < len(first.draft["tools/analyze.py"])
    assert len(again.draft["reasoning.md"]) < len(first.draft["reasoning.md"])


def test_a_rule_is_exchanged_for_its_opposite_and_never_stands_beside_it() -> None:
    rule = convention_rule("superlative-limit")
    pool = {"p02": package([library()["ddl"]], [rule.text.removeprefix("- ")])}
    errors = [{**report("2 rows too few"), **TIES}] * 9
    swapped = 0
    for seed in range(40):
        host = Host(pool=pool, errors={"p02": errors}).run(seed=seed)
        texts = [found.text for found in read_rules(host.draft["eval_instructions.md"])]
        both = {"superlative-limit", "superlative-ties"}
        assert len([text for text in texts if conventions_in(text) & both]) < 2
        swapped += "superlative-ties" in rules_said(host)
    assert swapped
