"""The Text-to-SQL part of `make results`: what it plans, holds to its targets and writes, from recorded documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.cli.sql_documents import SqlBenchDocument
from tests.bench.results.__main__ import HEADINGS
from tests.bench.results.pages import assembled
from tests.bench.results.records import Records, SqlRecord
from tests.bench.results.sql_page import MeasuredBench, accuracy_rows, sql_checks, sql_section
from tests.bench.results.sql_plan import QUESTIONS, SqlTargets, missing_data, planned_benches

METRICS = ("bird", "multiset", "spider", "strict", "relaxed")
EVALUABLE = 100


def shares(right: int) -> dict[str, Any]:
    return {metric: {"right": right, "of": EVALUABLE, "share": right / EVALUABLE} for metric in METRICS}


def document(
    questions: int, *, evosql: int = 60, majority: int = 55, repaired: int = 7, **more: Any
) -> SqlBenchDocument:
    """A finished bench."""
    row = {
        "round": None, "infill": 1000, "infill_equivalent": 1600, "decode": 200, "critic_infill": 50,
        "critic_decode": 10, "total": 1260, "total_equivalent": 1860,
    }  # fmt: skip
    tokens = {"rounds": [row], "total": row, "total_with_last_judgement": row}
    active = [{"round": n, "active": EVALUABLE - 40 * n, "outputs": 16, "stopped_share": 0.4 * n} for n in range(3)]
    stop = {
        "rounds": active, "aggregates_made": 1280, "aggregates_without_stopping": 3200, "aggregates_saved": 1920,
        "saved_share": 0.6,
    }  # fmt: skip
    difference = {
        "first": "evosql", "other": "self_evolution", "metric": "strict", "difference": 0.03, "low": -0.01, "high": 0.07
    }  # fmt: skip
    database = {
        "name": "shop", "source": "sha256:1", "volume": "sha256:2", "tables": 3, "hidden": 0, "questions": questions,
        "unchanged": True,
    }  # fmt: skip
    return SqlBenchDocument.model_validate(
        {
            "run": "abc", "state": "done", "dataset": "spider", "digest": "sha256:3", "questions": questions,
            "evaluable": EVALUABLE, "answered": EVALUABLE, "left_out": [], "gold_disagreeing": [],
            "standings": {"evaluable": EVALUABLE, "gold_error": questions - EVALUABLE},
            "gold_as_prediction": shares(EVALUABLE),
            "methods": {"evosql": shares(evosql), "self_evolution": shares(57), "majority": shares(majority),
                        "best_of_k": shares(59)},
            "avg_at_k": dict.fromkeys(METRICS, 0.5), "pass_hat_k": shares(30), "pass_at_k": shares(65),
            "pass_of_all_rounds": {"evosql": shares(70), "self_evolution": shares(66)},
            "rounds": {"evosql": [shares(54), shares(58), shares(evosql)], "self_evolution": [shares(55)]},
            "repaired": {"evosql": dict.fromkeys(METRICS, repaired), "self_evolution": dict.fromkeys(METRICS, 2)},
            "differences": [difference], "tokens": {"evosql": tokens}, "early_stop": {"evosql": stop},
            "endings": {"evosql": {"stable": 80, "rounds": 20}}, "unreadable": {"evosql": 0}, "flags": {},
            "nondeterministic": 0, "requests": 9000, "lost": 0,
            "usage": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1, "usd": 0},
            "databases": [database], "settings": {"candidates": 16, "seed": 0},
            "models": {"generator": "offline", "critic": "offline"},
            "policy": {"name": "default", "digest": "sha256:4"}, "images": {"sql": "sha256:5"}, "sqlite": "3.40.1",
            "prompts": {}, "versions": {}, "containers_left": 0,
        }
        | more
    )  # fmt: skip


def measured(seconds: float = 1500, **more: Any) -> list[MeasuredBench]:
    return [
        MeasuredBench(
            planned=planned,
            record=SqlRecord(
                arguments=planned.run.arguments,
                version="commit abc",
                wall_seconds=seconds,
                document=document(planned.questions, **more),
            ),
        )
        for planned in planned_benches(Path("/data"), None)
    ]


def missed(benches: list[MeasuredBench]) -> list[str]:
    return [check.what for check in sql_checks(benches, SqlTargets()) if not check.is_reached]


def test_every_question_of_both_data_sets_is_planned_and_no_folder_named() -> None:
    spider, bird = planned_benches(Path("/data"), None)
    assert spider.run.command == "evolvarium sql bench --dataset spider --root DIR/spider"
    assert spider.run.argv() == ["--dataset", "spider", "--root", "/data/spider"]
    assert (spider.questions, bird.questions) == (QUESTIONS["spider"], QUESTIONS["bird"]) == (556, 129)
    few, _ = planned_benches(Path("/data"), 5)
    assert (few.run.argv()[-2:], few.questions) == (["--limit", "5"], 5)


def test_missing_data_are_named_with_the_way_out(tmp_path: Path) -> None:
    assert "EVOLVARIUM_DATA" in (missing_data(tmp_path) or "")
    for name in QUESTIONS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "dev.json").write_text("[]")
    assert missing_data(tmp_path) is None


def test_targets_are_reached_at_their_very_values() -> None:
    assert missed(measured(seconds=1800, evosql=55, repaired=5)) == []


def test_each_target_is_missed_by_itself() -> None:
    gold = {**shares(EVALUABLE), "relaxed": {"right": 99, "of": 100, "share": 0.99}}
    assert missed(measured(gold_as_prediction=gold)) == ["spider, gold as prediction", "bird, gold as prediction"]
    assert missed(measured(evosql=54)) == [
        "spider, EvoSQL over Maj@16, strict",
        "spider, EvoSQL over Maj@16, bird",
        "bird, EvoSQL over Maj@16, strict",
        "bird, EvoSQL over Maj@16, bird",
    ]
    assert missed(measured(repaired=4)) == ["repaired questions, strict"]
    assert missed(measured(seconds=1801)) == ["all benches together"]
    ended = "questions that came to their end"
    assert missed(measured(state="budget-spent")) == [f"spider, {ended}", f"bird, {ended}"]
    assert missed(measured(answered=99)) == [f"spider, {ended}", f"bird, {ended}"]


def test_a_database_that_changed_is_a_missed_target() -> None:
    changed = document(1).databases[0].model_copy(update={"unchanged": None}).model_dump()
    assert missed(measured(databases=[changed])) == ["spider, databases that changed", "bird, databases that changed"]


def test_the_section_reports_accuracies_intervals_savings_and_commands() -> None:
    text = sql_section(measured(), SqlTargets(), "2 processors")
    assert "| spider | EvoSQL | 60.00 | 60.00 | 60.00 | 60.00 | 60.00 |" in text
    assert "| bird | EvoSQL - self-evolution | strict | +3.00 | -1.00 | +7.00 |" in text
    assert "| 100, 60, 20 | 1920 of 3200 (60.00 %) |" in text
    assert "| repaired questions, strict | at least 10 | 14 | yes |" in text
    assert "evolvarium sql bench --dataset bird --root DIR/bird" in text
    assert "Measured on 2 processors, SQLite 3.40.1, at commit abc." in text
    assert "/data" not in text


def test_every_method_stands_between_what_the_candidates_give_and_allow() -> None:
    methods = [row[1] for row in accuracy_rows(measured()).rows if row[0] == "bird"]
    assert methods == [
        "Avg@16", "Maj@16", "self-evolution", "EvoSQL", "EvoSQL + Best-of-16", "Pass@16 of the first round",
        "Pass of all rounds",
    ]  # fmt: skip


def test_a_bench_is_kept_and_found_again(tmp_path: Path) -> None:
    kept = measured()[0].record
    records = Records(tmp_path, SqlRecord)
    records.keep(kept)
    assert records.find(kept.arguments) == kept


def test_a_part_that_is_not_measured_stays_as_it_was() -> None:
    first = assembled("", {"Bin packing": "Words.\n\n## Targets\n\n| a |\n", "Text-to-SQL": None})
    assert "## Bin packing\n\nWords.\n\n### Targets\n" in first
    assert "## Text-to-SQL\n\nNot measured yet" in first
    second = assembled(first, {"Bin packing": None, "Text-to-SQL": "## Targets\n\n| b |\n"})
    assert "## Bin packing\n\nWords.\n\n### Targets\n\n| a |\n\n## Text-to-SQL\n\n### Targets\n\n| b |\n" in second
    assert assembled(second, {"Bin packing": None, "Text-to-SQL": None}) == second


def test_the_page_that_is_there_has_all_sections() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
    assert set(HEADINGS) == {"Bin packing", "Dynamic job shop", "Symbolic regression", "Text-to-SQL", "RoboPhD"}
    assert assembled(page, dict.fromkeys(HEADINGS)) == page
