"""What a bench and an evolution will take that are like recorded ones, and what cannot be scaled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.estimates.amounts import Line
from orchestrator.bootstrap.estimates.bench import estimate_bench
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.evolution import course_of, estimate_evolution
from orchestrator.bootstrap.estimates.like import Measured, read_measured
from orchestrator.bootstrap.model_choices import NO_ACCESS
from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.robophd.config_file import settings_from
from orchestrator.bootstrap.robophd.data import data_view, load_evolve_data
from orchestrator.bootstrap.runs import EVOLUTION, SQL_BENCH
from orchestrator.bootstrap.spending import read_ledger
from orchestrator.bootstrap.sql.choices import BenchChoices, Layout, methods_of
from orchestrator.cli.main import execute
from orchestrator.domain.conversation import AssistantMessage, Reply, StopReason, Usage
from orchestrator.domain.model_access import ModelAccess, ModelEntry, Price, Provider
from orchestrator.domain.records import to_record
from orchestrator.errors import InputError
from orchestrator.methods.evosql import Settings
from orchestrator.storage.runs import RunStore
from tests.evolution_data import write_list
from tests.recorded_evolution import SETTINGS as EVOLVED
from tests.recorded_evolution import RecordedEvolutions
from tests.scripted_bench import SETTINGS as BENCHED
from tests.scripted_bench import Bench

SETTINGS = Settings(candidates=4, rounds=3)
PRICE = Price(input=Decimal(1), cached_input=Decimal("0.1"), output=Decimal(10))
EVERY = ("evosql", "self_evolution", "majority", "best_of_k")
ACCESS = ModelAccess(
    models={
        name: ModelEntry(
            provider=Provider.OPENAI, model=name, base_url="http://127.0.0.1:1/v1", price=PRICE,
            context_tokens=100_000, options={},
        )
        for name in ("writer", "judge")
    }
)  # fmt: skip
ONE = Usage(input_tokens=100, cached_input_tokens=50, output_tokens=10, usd=Decimal(0))
Call = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions on each of three databases."""
    return write_list(tmp_path_factory.mktemp("data"))


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The document of a command line, without engine, key or network."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")

    def run(*arguments: str) -> dict[str, Any]:
        code = execute([*arguments, "--json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        document: dict[str, Any] = json.loads(printed.out)
        return document

    return run


def by_role(estimate: Estimate) -> Mapping[str, Line]:
    return {line.role: line for line in estimate.lines}


def bench(questions: Path, *methods: str, **fields: Any) -> BenchChoices:
    return BenchChoices(
        layout=Layout.JSONL, root=str(questions), methods=methods_of(methods or EVERY), model="writer",
        critic_model="judge", access=ACCESS, **fields,
    )  # fmt: skip


def recorded(home: Path, header: Mapping[str, Any], keys: Sequence[str], ends: Mapping[str, Any]) -> str:
    """A run with one reply for each key."""
    reply = Reply(message=AssistantMessage(text="so"), usage=ONE, stop=StopReason.END)
    run_id, journal = RunStore(home).create()
    with journal:
        journal.put("run", header)
        for key in keys:
            journal.put(key, {"reply": to_record(reply)})
        for key, end in ends.items():
            journal.put(key, end)
    return run_id


def recorded_bench(questions: Path, home: Path, *methods: str, settings: Settings = SETTINGS) -> Measured:
    """Two questions, of which one makes every round and the other stops after the first; a third is not answered."""
    asked = [f"q/{one}/elicit/request/{number:04d}" for one in (1, 2, 3) for number in range(1, 5)]
    for method in ("evosql", "self-evolution"):
        for number in range(1, settings.rounds):
            asked += [f"q/1/{method}/r{number}/aggregate/request/{index:04d}" for index in range(1, 5)]
    asked += [f"q/1/evosql/r{number}/critic/request/0001" for number in range(settings.rounds)]
    asked += ["q/2/evosql/r0/critic/request/0001", "q/1/evosql/choose/request/0001"]
    header = {
        "kind": SQL_BENCH, "settings": settings.model_dump(mode="json"),
        "choices": bench(questions, *methods).model_dump(mode="json"), "models": {},
    }  # fmt: skip
    run_id = recorded(home, header, asked, {"q/1/outcome": {}, "q/2/outcome": {}})
    return read_measured(RunStore(home), run_id, SQL_BENCH)


def test_a_bench_like_itself_takes_what_it_took(questions: Path, tmp_path: Path) -> None:
    measured = recorded_bench(questions, tmp_path)
    estimate = estimate_bench(bench(questions, limit=2), SETTINGS, like=measured)
    lines = by_role(estimate)
    # the third question is not answered, so what it took counts for nothing
    assert lines["generator"].expected.requests == 8 + 2 * 8
    assert lines["generator"].expected.usage == Usage(
        input_tokens=2400, cached_input_tokens=1200, output_tokens=240, usd=Decimal("0.00492")
    )
    assert lines["critic"].expected.requests == 4 + 1
    assert estimate.notes == []
    larger = by_role(estimate_bench(bench(questions), SETTINGS, like=measured))
    assert larger["generator"].expected.requests == 9 * 24
    assert larger["critic"].expected.usage.output_tokens == 9 * 50


def test_a_real_bench_that_is_like_itself_takes_what_it_took(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    run_id, journal = made.begun()
    with journal:
        made.run(journal, made.configuration())
        spent = {one.account.role: (one.requests, one.usage.tokens) for one in read_ledger(journal)}
    measured = read_measured(RunStore(made.home), run_id, SQL_BENCH)
    lines = by_role(estimate_bench(made.choices, BENCHED, like=measured))
    assert set(spent) == {"generator", "critic"}
    assert {role: (line.expected.requests, line.expected.usage.tokens) for role, line in lines.items()} == spent


def test_methods_candidates_and_rounds_of_a_bench_are_scaled(questions: Path, tmp_path: Path) -> None:
    measured = recorded_bench(questions, tmp_path)

    def found(*methods: str, **settings: Any) -> tuple[int, int]:
        chosen = SETTINGS.model_copy(update=settings)
        lines = by_role(estimate_bench(bench(questions, *methods, limit=2), chosen, like=measured))
        return tuple(lines[role].expected.requests if role in lines else 0 for role in ("generator", "critic"))  # type: ignore[return-value]

    assert found("majority") == (8, 0)
    assert found("evosql") == (8 + 8, 4)
    assert found("evosql", "best_of_k") == (8 + 8, 5)
    assert found("majority", candidates=16) == (32, 0)
    assert found("evosql", candidates=2) == (4 + 4, 4)
    assert found("evosql", rounds=2) == (8 + 4, 3)
    assert found("evosql", rounds=1) == (8, 2)
    assert found("evosql", rounds=4) == (8 + 12, 5)
    assert found("evosql", rounds=3, critic_last_round=False) == (8 + 8, 3)


def test_what_a_recorded_bench_did_not_do_is_refused(questions: Path, tmp_path: Path) -> None:
    majority = recorded_bench(questions, tmp_path, "majority")
    with pytest.raises(InputError, match=r"did not measure evosql, .*--methods majority"):
        estimate_bench(bench(questions, "evosql"), SETTINGS, like=majority)
    single = recorded_bench(questions, tmp_path, settings=SETTINGS.model_copy(update={"rounds": 1}))
    with pytest.raises(InputError, match="says nothing of later ones"):
        estimate_bench(bench(questions), SETTINGS, like=single)


def test_a_setting_of_a_bench_that_cannot_be_scaled_is_named(questions: Path, tmp_path: Path, call: Call) -> None:
    measured = recorded_bench(questions, tmp_path / "home")
    changed = SETTINGS.model_copy(update={"payload": 4, "stop_share": 0.5, "candidates": 8, "seed": 3})
    notes = estimate_bench(bench(questions), changed, like=measured).notes
    assert [note.split(";")[0] for note in notes] == [
        "setting payload was 1 and is 4 now",
        "setting stop_share was 0.9 and is 0.5 now",
    ]
    document = call(
        "estimate", "bench", "--dataset", "jsonl", "--root", str(questions), "--like", measured.run_id,
        "--candidates", "4", "--set", "payload=4",
    )  # fmt: skip
    assert [line["model"] for line in document["lines"]] == ["writer", "judge"]
    assert [note.split(";")[0] for note in document["notes"]] == ["setting payload was 1 and is 4 now"]


def evolution(questions: Path, **fields: Any) -> EvolveChoices:
    return EvolveChoices(
        datasets=(DatasetChoice(kind=Layout.JSONL, root=str(questions)),), evolver="judge", answerer="writer",
        access=ACCESS, **fields,
    )  # fmt: skip


def recorded_evolution(questions: Path, home: Path, iterations: int = 3) -> Measured:
    """A whole evolution with three requests for each package, one for each answer, and `final` after it."""
    settings = settings_from({"iterations": iterations})
    data = load_evolve_data(evolution(questions))
    split = data.split(settings.seed, (7, 3, 3))
    (contest,) = split.evolve
    asked, ends = list[str](), dict[str, Any]()
    content = "answer/0123456789abcdef"
    for number in range(1, iterations + 1):
        ids = [f"{contest}-{index}" for index in range(6)]
        names = [f"p{index}" for index in range(min(number, 3))]
        ends[f"it/{number:02d}/end"] = {"questions": {contest: ids}, "competitors": names}
        asked += [f"{content}/{name}-{number}-{one}/request/0001" for name in names for one in ids]
        if number > 1:
            ends[f"it/{number:02d}/evolve/end"] = {}
            asked += [f"it/{number:02d}/evolve/request/{index:04d}" for index in (1, 2, 3)]
            asked += [f"{content}/draft-{number}-{index}/request/0001" for index in range(12)]
    for index in range(iterations):
        ends[f"select/p{index}"] = {"questions": 6, "analyses": {split.select[0]: {}}}
        asked += [f"{content}/select-{index}-{one}/request/0001" for one in range(6)]
    finals = [question.id for question in data.questions if question.database in split.final]
    asked += [f"{content}/{one}/request/{number:04d}" for one in finals for number in (1, 2, 3)]
    asked += [f"answer:other/0123456789abcdef/{one}/request/0001" for one in finals]
    asked += [f"hybrid/0123456789abcdef/{split.final[0]}/request/0001"]
    header = {
        "kind": EVOLUTION, "settings": settings.model_dump(mode="json"),
        "choices": evolution(questions).model_dump(mode="json"),
        "questions": [[f"q/{one.id}", one.id, one.database] for one in data.questions],
        "data": {"final": list(split.final)},
    }  # fmt: skip
    run_id = recorded(home, header, asked, ends)
    return read_measured(RunStore(home), run_id, EVOLUTION)


def test_an_evolution_like_itself_takes_what_it_took_without_final(questions: Path, tmp_path: Path) -> None:
    measured = recorded_evolution(questions, tmp_path)
    estimate = estimate_evolution(evolution(questions), settings_from({"iterations": 3}), like=measured)
    found = {role: line.expected.requests for role, line in by_role(estimate).items()}
    assert found == {"evolver": 2 * 3, "answerer": 36 + 24 + 18, "hybrid": 0}
    assert estimate.notes == []
    assert any("2 packages and 78 answers" in fact for fact in estimate.facts)


def test_a_real_evolution_that_is_like_itself_takes_what_it_took(tmp_path: Path) -> None:
    evolutions = RecordedEvolutions(tmp_path)
    evolver = EVOLVED.evolver.model_copy(update={"requests": 3})
    settings = EVOLVED.model_copy(update={"questions_per_database": 1, "evolver": evolver})
    run_id = evolutions.made(settings)
    with evolutions.store.open(run_id, read_only=True) as journal:
        spent = {one.account.role: (one.requests, one.usage) for one in read_ledger(journal)}
    measured = read_measured(evolutions.store, run_id, EVOLUTION)
    lines = by_role(estimate_evolution(evolutions.choices, settings, like=measured))
    assert set(spent) == {"evolver", "answerer"}
    for role, took in spent.items():
        assert (lines[role].expected.requests, lines[role].expected.usage) == took


def test_an_evolution_is_scaled_by_packages_and_by_answers(questions: Path, tmp_path: Path) -> None:
    measured = recorded_evolution(questions, tmp_path)
    settings = settings_from({"iterations": 6, "questions_per_database": 3})
    data = load_evolve_data(evolution(questions))
    course = course_of(settings, data_view(data.questions, data.split(settings.seed, (7, 3, 3))), packages=1)
    lines = by_role(estimate_evolution(evolution(questions), settings, like=measured))
    assert lines["evolver"].expected.requests == 3 * course.evolutions
    assert lines["answerer"].expected.requests == course.answers


def test_a_setting_of_an_evolution_that_cannot_be_scaled_is_named(questions: Path, tmp_path: Path) -> None:
    measured = recorded_evolution(questions, tmp_path)
    settings = settings_from({"iterations": 4, "answers": {"corrections": 4}, "elo": {"k": 16}})
    notes = estimate_evolution(
        evolution(questions).model_copy(update={"answerer": "judge"}), settings, like=measured
    ).notes
    assert [note.split(";")[0] for note in notes] == [
        "the recorded run's answerer was writer, not judge",
        "setting answers.corrections was 2 and is 4 now",
    ]


def test_an_evolution_without_a_package_says_nothing_of_the_evolver(questions: Path, tmp_path: Path) -> None:
    measured = recorded_evolution(questions, tmp_path, 1)
    with pytest.raises(InputError, match="has made no package, so it says nothing of the evolver"):
        estimate_evolution(evolution(questions), settings_from({"iterations": 3}), like=measured)


def test_the_models_of_a_recorded_evolution_are_taken(questions: Path, tmp_path: Path, call: Call) -> None:
    measured = recorded_evolution(questions, tmp_path / "home")
    document = call("estimate", "evolve", "--jsonl", str(questions), "--iterations", "3", "--like", measured.run_id)
    assert {line["role"]: line["model"] for line in document["lines"]} == {
        "evolver": "judge", "answerer": "writer", "hybrid": "writer",
    }  # fmt: skip
    assert document["notes"] == []


def test_a_run_that_has_made_nothing_gives_no_average(tmp_path: Path) -> None:
    run_id = recorded(tmp_path, {"kind": SQL_BENCH}, [], {})
    with pytest.raises(InputError, match="has no questions that are answered"):
        read_measured(RunStore(tmp_path), run_id, SQL_BENCH)


def test_nothing_is_said_of_models_where_nothing_was(tmp_path: Path) -> None:
    header = {"kind": SQL_BENCH, "choices": {"model": "offline"}}
    run_id = recorded(tmp_path, header, [], {"q/1/outcome": {}})
    measured = read_measured(RunStore(tmp_path), run_id, SQL_BENCH)
    assert (measured.access, measured.models()) == (NO_ACCESS, {"model": "offline"})
