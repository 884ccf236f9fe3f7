"""What a bench and an evolution will take: figures counted by hand, and those of a recorded run."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.estimates.amounts import Line
from orchestrator.bootstrap.estimates.bench import estimate_bench, most_requests
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.evolution import course_of, estimate_evolution
from orchestrator.bootstrap.estimates.like_evolution import Course
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.config_file import settings_from
from orchestrator.bootstrap.robophd.data import data_view, load_evolve_data
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout, SqlBudget, methods_of
from orchestrator.cli.estimate_tables import estimate_document, estimate_parts
from orchestrator.cli.main import execute
from orchestrator.cli.terminal import Rows
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import ModelAccess, ModelEntry, Price, Provider
from orchestrator.methods.evosql import Settings
from tests.evolution_data import write_list

SETTINGS = Settings(candidates=4, rounds=3)
PRICE = Price(input=Decimal(1), cached_input=Decimal("0.1"), output=Decimal(10))
EVERY = ("evosql", "self_evolution", "majority", "best_of_k")
ACCESS = ModelAccess(
    models={
        name: ModelEntry(
            provider=Provider.OPENAI,
            model=name,
            base_url="http://127.0.0.1:1/v1",
            price=PRICE,
            context_tokens=100_000,
            options={},
        )
        for name in ("writer", "judge")
    }
)
ONE = Usage(input_tokens=100, cached_input_tokens=50, output_tokens=10, usd=Decimal(0))


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions on each of three databases."""
    return write_list(tmp_path_factory.mktemp("data"))


def bench(questions: Path, *methods: str, **fields: Any) -> BenchChoices:
    return BenchChoices(
        layout=Layout.JSONL, root=str(questions), methods=methods_of(methods or EVERY), model="writer",
        critic_model="judge", access=ACCESS, **fields,
    )  # fmt: skip


def evolution(questions: Path, **fields: Any) -> EvolveChoices:
    return EvolveChoices(
        datasets=(DatasetChoice(kind=Layout.JSONL, root=str(questions)),), evolver="judge", answerer="writer",
        access=ACCESS, **fields,
    )  # fmt: skip


def by_role(estimate: Estimate) -> Mapping[str, Line]:
    return {line.role: line for line in estimate.lines}


def test_requests_about_a_question_at_most(questions: Path) -> None:
    # 4 first candidates, 4 in each of 2 later rounds of both evolutions; 3 critiques, each asked for twice; a choice
    assert most_requests(bench(questions), SETTINGS) == {"generator": 20, "critic": 7}
    assert most_requests(bench(questions, "majority"), SETTINGS) == {"generator": 4, "critic": 0}
    sparing = SETTINGS.model_copy(update={"critic_last_round": False})
    assert most_requests(bench(questions, "evosql"), sparing) == {"generator": 12, "critic": 4}


def test_a_bench_is_what_one_counts_by_hand(questions: Path) -> None:
    assumptions = ["later_rounds_share=0.5", "repaired_share=0", "reply_tokens=200", "critique_tokens=50"]
    lines = by_role(estimate_bench(bench(questions), SETTINGS, assumptions))
    generator, critic = lines["generator"], lines["critic"]
    # a question: 4 first, 8 of self-evolution, 4 of EvoSQL, of which half of the questions make each later round
    assert generator.expected.requests == 18 * (4 + 8 + 4)
    assert generator.expected.usage.output_tokens == 18 * 16 * 200
    # a question: a critique of the first round, one of the two later ones, and a choice
    assert critic.expected.requests == 18 * 3
    assert critic.expected.usage.output_tokens == 18 * (2 * 4 * 50 + 200)
    assert (generator.at_most.requests, critic.at_most.requests) == (18 * 20, 18 * 7)


def test_schemas_are_assumed_and_what_is_asked_again_comes_from_the_cache(questions: Path) -> None:
    def usage(*assumptions: str) -> Usage:
        lines = by_role(estimate_bench(bench(questions, "majority"), SETTINGS, assumptions))
        return lines["generator"].expected.usage

    bare, long = usage("schema_tokens=0", "cached_share=0"), usage("schema_tokens=1000", "cached_share=0")
    assert long.input_tokens - bare.input_tokens == 18 * 4 * 1000
    assert bare.input_tokens > 18 * 4 * 50
    half = usage("schema_tokens=1000", "cached_share=0.5")
    assert half.cached_input_tokens == pytest.approx(long.input_tokens * 3 / 4 / 2, abs=18 * 3)
    assert half.input_tokens + half.cached_input_tokens == long.input_tokens
    assert half.usd is not None
    assert long.usd is not None
    assert half.usd < long.usd


def test_replies_that_come_together_pay_for_their_prompt_once(questions: Path) -> None:
    def usage(refused: tuple[str, ...]) -> Usage:
        entry = ModelEntry(provider=Provider.OPENAI, model="gpt-4.1", price=PRICE, without=refused, options={})
        changed = {"access": ModelAccess(models={"writer": entry}), "critic_model": None}
        choices = bench(questions, "majority").model_copy(update=changed)
        ten = SETTINGS.model_copy(update={"candidates": 10})
        lines = by_role(estimate_bench(choices, ten, ["cached_share=0"]))
        return lines["generator"].expected.usage

    singly, together = usage(("n",)), usage(())
    assert together.output_tokens == singly.output_tokens
    assert together.input_tokens * 10 == singly.input_tokens * 2  # 10 replies come in calls of 8 and of 2


def test_a_limit_and_a_choice_of_databases_count(questions: Path) -> None:
    few = estimate_bench(bench(questions, "majority", limit=5), SETTINGS)
    assert few.expected.requests == 5 * 4
    garden = estimate_bench(bench(questions, "majority", databases=("garden",)), SETTINGS)
    assert garden.expected.requests == 6 * 4
    assert [line.role for line in garden.lines] == ["generator"]


def test_a_budget_is_the_ceiling_of_a_bench(questions: Path) -> None:
    budget = SqlBudget(usd=Decimal("0.25"), tokens=1000)
    estimate = estimate_bench(bench(questions, budget=budget), SETTINGS)
    assert (estimate.most_usd, estimate.most_tokens) == (Decimal("0.01"), 1000)  # so much 1000 tokens of output cost
    estimate = estimate_bench(bench(questions, budget=SqlBudget(usd=Decimal("0.25"))), SETTINGS)
    assert (estimate.most_usd, estimate.most_tokens) == (Decimal("0.25"), 2_500_000)  # as much cached input it buys
    document = estimate_document(estimate)
    assert any("less than what is expected" in part for part in estimate_parts(document) if isinstance(part, str))


def test_an_evolution_takes_the_course_that_its_seed_draws(questions: Path) -> None:
    settings = settings_from({"iterations": 3})
    data = load_evolve_data(evolution(questions))
    view = data_view(data.questions, data.split(settings.seed, (7, 3, 3)))
    # one database of 6 questions for contests, one for selection; 1, 2 and 3 packages are there in the 3 contests, and
    # each of 2 newcomers is tested twice on the contest before it
    assert course_of(settings, view, packages=1) == Course(
        evolutions=2, contest_answers=36, focus_answers=24, select_answers=18, analyses=13
    )


def test_an_evolution_is_what_one_counts_by_hand(questions: Path) -> None:
    settings = settings_from({"iterations": 3, "evolver": {"requests": 40}})
    assumptions = [
        "evolver_requests=2", "opening_tokens=1000", "evolver_reply_tokens=100", "result_tokens=300",
        "evolver_cached_share=0.5", "requests_per_answer=2", "reply_tokens=50", "hybrid_share=0",
    ]  # fmt: skip
    lines = by_role(estimate_evolution(evolution(questions), settings, assumptions))
    # each of 2 evolutions: 1000 fresh, then 1400, of which 500 come from the cache
    assert lines["evolver"].expected.usage == Usage(
        input_tokens=2 * 1900, cached_input_tokens=2 * 500, output_tokens=2 * 200, usd=Decimal("0.0079")
    )
    assert lines["answerer"].expected.requests == 2 * 78
    assert lines["answerer"].expected.usage.output_tokens == 2 * 78 * 50
    assert lines["hybrid"].expected.requests == 0
    most = {role: line.at_most.requests for role, line in lines.items()}
    assert most == {"evolver": 80, "answerer": 78 * 3, "hybrid": 13 * 24}


def test_the_commands_need_no_engine_and_no_key(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    model = "anthropic/claude-haiku-5-5"
    assert execute(["estimate", "bench", "--dataset", "jsonl", "--root", str(questions), "--model", model]) == 0
    printed = capsys.readouterr().out
    assert "18 questions on 3 databases" in printed
    assert "schema_tokens" in printed
    arguments = ["estimate", "evolve", "--jsonl", str(questions), "--iterations", "3", "--evolver-model", model]
    assert execute(arguments) == 0
    printed = capsys.readouterr().out
    assert "3 iterations, of which 2 make a package" in printed
    assert "Expected:" in printed
    assert not (tmp_path / "home").exists()


def test_the_tables_hold_every_line_and_their_sum(questions: Path) -> None:
    estimate = estimate_bench(bench(questions), SETTINGS)
    table = next(part for part in estimate_parts(estimate_document(estimate)) if isinstance(part, Rows))
    assert [(row[0], row[2]) for row in table.rows] == [
        ("generator", "expected"), ("", "at most"), ("critic", "expected"), ("", "at most"), ("all", "expected"),
        ("", "at most"),
    ]  # fmt: skip
    dollars = [Decimal(str(row[-1]).replace(",", "")) for row in table.rows]
    assert dollars[4] == pytest.approx(dollars[0] + dollars[2], abs=Decimal("0.01"))
    assert dollars[5] == pytest.approx(dollars[1] + dollars[3], abs=Decimal("0.01"))
