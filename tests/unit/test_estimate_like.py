"""What a search will take that is like a recorded one: itself again, longer ones, and what cannot be scaled."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.like import Measured
from orchestrator.bootstrap.estimates.search import estimate_search
from orchestrator.bootstrap.places import find_places
from orchestrator.cli.main import execute
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import ModelAccess, ModelEntry, Price, Provider
from orchestrator.evaluation.tasks import load_task
from tests.recorded_runs import Recording

ROOT = Path(__file__).parents[2]
TASK = ROOT / "tasks" / "online_bin_packing"
PRICE = Price(input=Decimal(1), cached_input=Decimal("0.1"), output=Decimal(10))
ACCESS = ModelAccess(
    models={
        name: ModelEntry(
            provider=Provider.OPENAI, model=name, base_url="http://127.0.0.1:1/v1", price=PRICE,
            context_tokens=100_000, options={},
        )
        for name in ("writer", "judge")
    }
)  # fmt: skip
Call = Callable[..., dict[str, Any]]


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


def recorded_search(requests: Sequence[Usage], *, commits: int, **changed: Any) -> Measured:
    """A search of one island on the model `writer`."""
    settings = method_settings(load_task(TASK).spec, islands=1, commits_per_island=commits)
    header = {
        "model": "writer", "context_tokens": 100_000, "settings": settings.model_dump(mode="json"),
        "task": {"name": "online_bin_packing"},
        "choices": Choices(task="online_bin_packing", model="writer", access=ACCESS).model_dump(mode="json"),
    }  # fmt: skip
    return Measured(
        run_id="0123456789ab", header={**header, **changed}, access=ACCESS, units=commits, made={},
        requests={f"i0/request/{number:04d}": usage for number, usage in enumerate(requests, 1)},
    )  # fmt: skip


def growing(requests: int, *, cached: bool = True) -> list[Usage]:
    """Each resends the conversation so far, of which nine tenths come from the cache."""
    found = []
    for number in range(requests):
        size, seen = 1000 + 500 * number, (500 + 500 * number if number else 0)
        part = seen * 9 // 10 if cached else 0
        found.append(Usage(input_tokens=size - part, cached_input_tokens=part, output_tokens=100))
    return found


def search(tmp_path: Path, measured: Measured, *, model: str = "writer", **chosen: Any) -> Estimate:
    choices = Choices(task=str(TASK), model=model, access=ACCESS)
    return estimate_search(find_places(tmp_path, None, {}), choices, chosen, like=measured)


def test_a_search_like_itself_takes_what_it_took(tmp_path: Path) -> None:
    measured = recorded_search(growing(8), commits=4)
    estimate = search(tmp_path, measured, islands=1, commits_per_island=4)
    took = sum(measured.requests.values(), Usage())
    expected = estimate.expected.usage
    assert expected.input_tokens + expected.cached_input_tokens == took.input_tokens + took.cached_input_tokens
    assert (expected.cached_input_tokens, expected.output_tokens) == (took.cached_input_tokens, took.output_tokens)
    assert estimate.notes == []


def test_a_longer_search_grows_as_a_conversation_does_and_not_by_its_commits_alone(tmp_path: Path) -> None:
    measured = recorded_search(growing(8), commits=4)
    estimate = search(tmp_path, measured, islands=2, commits_per_island=40)
    usage = estimate.expected.usage
    # two islands of 80 requests, each with 500 tokens more than the one before, as measured, which fit below 70,000
    assert estimate.expected.requests == 160
    assert usage.input_tokens + usage.cached_input_tokens == 2 * (80 * 1000 + 500 * 79 * 80 // 2)
    assert usage.output_tokens == 160 * 100
    assert usage.cached_input_tokens > 0.8 * 2 * 500 * 79 * 80 // 2
    assert any("much shorter: 4.0 commits an island, not 40" in note for note in estimate.notes)


def test_a_longer_search_is_compacted_at_the_context_of_the_model(tmp_path: Path) -> None:
    small = recorded_search(growing(8), commits=4)
    access = ACCESS.model_copy(
        update={"models": {"writer": ACCESS.models["writer"].model_copy(update={"context_tokens": 20_000})}}
    )
    choices = Choices(task=str(TASK), model="writer", access=access)
    chosen = {"islands": 1, "commits_per_island": 40}
    estimate = estimate_search(find_places(tmp_path, None, {}), choices, chosen, like=small)
    usage = estimate.expected.usage
    # 1000 to 14,000 takes 26 requests; each further conversation begins 3000 tokens later and has 20
    first, later = sum(range(1000, 14_000, 500)), sum(range(4000, 14_000, 500))
    last = sum(range(4000, 4000 + 14 * 500, 500))
    assert usage.input_tokens + usage.cached_input_tokens == first + 2 * later + last
    assert any("will be compacted, which the recorded run's were not" in note for note in estimate.notes)


def test_requests_end_at_their_limit(tmp_path: Path) -> None:
    measured = recorded_search(growing(8), commits=4)
    estimate = search(tmp_path, measured, islands=1, commits_per_island=400, requests_per_island=50)
    assert estimate.expected.requests == 50


def test_another_model_task_or_setting_of_a_search_is_named(tmp_path: Path) -> None:
    measured = recorded_search(growing(8, cached=False), commits=4, task={"name": "another"})
    estimate = search(
        tmp_path, measured, model="judge", islands=1, commits_per_island=4, analysis=False, max_output_tokens=1024
    )
    told = "; ".join(estimate.notes)
    assert "recorded run's model was writer, not judge" in told
    assert "recorded run's task was another, not online_bin_packing" in told
    assert "setting analysis was True and is False now" in told
    assert "setting max_output_tokens was 32000 and is 1024 now" in told
    assert "islands" not in told
    # nothing came from a cache there; this model's provider has one
    assert estimate.expected.usage.cached_input_tokens > 0


def test_an_offline_run_that_is_like_itself_takes_what_it_took(call: Call, tmp_path: Path) -> None:
    run_id = Recording.of(tmp_path / "home", load_task(TASK)).made()
    shown = call("show", run_id)
    document = call(
        "estimate", "run", "online_bin_packing", "--islands", "2", "--commits", "3", "--no-analysis", "--like", run_id
    )
    (line,) = document["lines"]
    assert line["expected"] == {"requests": shown["requests"], "usage": shown["usage"]}
    assert document["total"]["expected"] == line["expected"]
    assert (document["like"], document["assumptions"]) == (run_id, [])
    doubled = call(
        "estimate", "run", "online_bin_packing", "--islands", "4", "--commits", "3", "--like", run_id,
        "--model", "openai/any", "--price", "1/2",
    )  # fmt: skip
    (line,) = doubled["lines"]
    tokens = shown["usage"]["input_tokens"], shown["usage"]["output_tokens"]
    assert line["expected"]["requests"] == 2 * shown["requests"]
    assert line["expected"]["usage"]["usd"] == pytest.approx(2 * (tokens[0] + 2 * tokens[1]) / 1e6, rel=1e-4)
    assert any("model was offline, not openai/any" in note for note in doubled["notes"])


def test_without_a_model_the_recorded_runs_is_taken(call: Call, tmp_path: Path) -> None:
    access = ModelAccess(base_url="http://127.0.0.1:1/v1", price=PRICE)
    task = load_task(TASK)
    run_id = Recording.of(tmp_path / "home", task, model="openai/mine", access=access).made()
    (line,) = call("estimate", "run", "online_bin_packing", "--like", run_id)["lines"]
    assert line["model"] == "openai/mine"
    assert line["expected"]["usage"]["usd"] > 0
    (line,) = call("estimate", "run", "online_bin_packing", "--like", run_id, "--model", "offline")["lines"]
    assert line["model"] == "offline"
