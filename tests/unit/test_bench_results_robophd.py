"""The RoboPhD part of `make results`: what it plans, holds to its targets and writes, from recorded documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.cli.evolution_documents import EvolutionDocument, FinalDocument
from tests.bench.results.pages import assembled
from tests.bench.results.records import EvolutionRecord, FinalRecord, Records
from tests.bench.results.robophd_page import MeasuredEvolution, robophd_checks, robophd_section, score_rows
from tests.bench.results.robophd_plan import MODELS, RobophdTargets, planned_evolution, planned_final

USAGE = {"input_tokens": 900, "cached_input_tokens": 0, "output_tokens": 100, "usd": 0.5}


def package(id_: str, select: int) -> dict[str, Any]:
    return {
        "id": id_, "digest": "sha256:1", "iteration": 0, "parents": [], "description": "", "rating": 1500.0,
        "bradley_terry": None, "tests": 1, "questions": 10, "right": 5, "select_right": select, "select_questions": 20,
    }  # fmt: skip


def evolution(**more: Any) -> EvolutionDocument:
    iteration = {
        "kind": "standard", "strategy": None, "newcomer": None, "failure": None, "requests": 0, "databases": ["a"],
        "questions": 10, "accuracy": {"naive": 0.5}, "hybrid_analyses": 0, "analyses": 1,
    }  # fmt: skip
    return EvolutionDocument.model_validate(
        {
            "run": "abc", "method": "robophd", "state": "done", "seed": 0,
            "models": {"evolver": "offline", "answerer": "offline"}, "policy": "default",
            "databases": {"evolve": ["a"], "select": ["s"], "final": ["f", "g"]}, "branch": None,
            "standings": {"evaluable": 10}, "left_out": [],
            "iterations": [{**iteration, "iteration": number} for number in range(1, 7)], "of_iterations": 6,
            "packages": [package("p03", 15), package("naive", 10)], "champion": "p03", "finals": [], "spent": {},
            "lost": 0, "refusal": None, "containers_left": 0,
        }
        | more
    )  # fmt: skip


def score(name: str, model: str, right: int, advantages: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "package": name, "model": model, "right": right, "questions": 40, "accuracy": right / 40,
        "databases": {"f": [right - 5, 20], "g": [5, 20]}, "hybrid_databases": 1, "requests": 80, "usage": USAGE,
        "tokens_per_question": 25.0, "usd_per_question": 0.0125, "hybrid_share": 0.1, "advantages": advantages,
    }  # fmt: skip


def measured(difference: float = 0.2, half: float = 0.1, seconds: float = 1200, **more: Any) -> MeasuredEvolution:
    over = {
        "over": "naive", "difference": difference, "low": difference - half, "high": difference + half,
        "half_width": half, "groups": 30,
    }  # fmt: skip
    scores = [part for model in MODELS for part in (score("p03", model, 28, [over]), score("naive", model, 20, []))]
    planned, final = planned_evolution(Path("/data"), None), planned_final("abc")
    return MeasuredEvolution(
        planned=planned,
        record=EvolutionRecord(
            arguments=planned.arguments, version="commit abc", wall_seconds=seconds, document=evolution(**more)
        ),
        planned_final=final,
        final=FinalRecord(
            arguments=final.arguments,
            version="commit abc",
            wall_seconds=60,
            document=FinalDocument.model_validate(
                {"run": "abc", "champion": "p03", "databases": ["f", "g"], "scores": scores}
            ),
        ),
    )


def missed(one: MeasuredEvolution) -> list[str]:
    return [check.what for check in robophd_checks(one, RobophdTargets()) if not check.is_reached]


def test_all_data_are_planned_with_default_settings_and_no_folder_is_named() -> None:
    planned = planned_evolution(Path("/data"), None)
    assert planned.command == ("evolvarium sql evolve --spider DIR/spider --bird DIR/bird --iterations 6 --seed 0")
    assert planned.argv() == ["--spider", "/data/spider", "--bird", "/data/bird", "--iterations", "6", "--seed", "0"]
    final = planned_final("0123456789ab")
    assert final.command == "evolvarium final RUN --model offline --model offline/effort-0.5"
    assert final.argv()[0] == "0123456789ab"


def test_each_target_is_missed_by_itself() -> None:
    assert missed(measured()) == []
    assert missed(measured(seconds=1800)) == []
    assert missed(measured(seconds=1801)) == ["the evolution"]
    better = "champion over the naive package, final databases"
    assert missed(measured(difference=0.1, half=0.1)) == [better], "the half-width itself is not more than it"
    assert missed(measured(champion="naive")) == [better]
    assert missed(measured(state="budget-spent")) == ["iterations that came to their end"]


def test_the_page_has_every_score_the_split_and_the_commands() -> None:
    text = robophd_section(measured(), RobophdTargets(), "2 processors")
    assert (
        "| p03 | offline | 70.00 | 28/40 | +20.00 | +10.00 to +30.00 | 10.00 | 1 of 2 (10.0 %) | 25 | 1.250 |" in text
    )
    assert "| naive | offline/effort-0.5 | 50.00 | 20/40 | - | - | - |" in text
    assert "- final figures: f, g" in text
    assert "| p03 (champion) | 1500 | 1 | 5/10 | 15/20 | - |" in text
    assert "evolvarium final RUN --model offline" in text
    assert "20.0 minutes for the evolution" in text
    assert len(score_rows(measured()).rows) == 4
    page = assembled("", {"RoboPhD": text})
    assert assembled(page, {"RoboPhD": None}) == page


def test_what_was_measured_is_read_again(tmp_path: Path) -> None:
    records = Records(tmp_path, EvolutionRecord)
    one = measured().record
    records.keep(one)
    assert records.find(one.arguments) == one
    assert Records(tmp_path, FinalRecord).find(one.arguments) is None
