"""What a run will take of its models: figures counted by hand, and the figures of a run that is like itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.bootstrap.choices import Choices, method_settings
from orchestrator.bootstrap.estimates.amounts import (
    Amounts,
    Line,
    Size,
    conversation,
    expected_amounts,
    most_amounts,
    total_of,
)
from orchestrator.bootstrap.estimates.assumptions import RunAssumptions, assumed
from orchestrator.bootstrap.estimates.estimate import Estimate
from orchestrator.bootstrap.estimates.models import ContextSource, EstimatedModel, estimated_models
from orchestrator.bootstrap.estimates.search import estimate_search, first_request_tokens
from orchestrator.bootstrap.places import find_places
from orchestrator.cli.main import execute
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import Member, ModelAccess, ModelEntry, ModelRole, Price, PriceTier, Provider
from orchestrator.errors import InputError
from orchestrator.evaluation.tasks import load_task
from orchestrator.llm.offline import DEFAULT_CONTEXT_TOKENS as OFFLINE_CONTEXT_TOKENS
from orchestrator.llm.prices import cost, price_table
from orchestrator.llm.providers.bodies import DEFAULT_CONTEXT_TOKENS
from tests.recorded_runs import Recording

ROOT = Path(__file__).parents[2]
TASK = ROOT / "tasks" / "online_bin_packing"
PRICE = Price(input=Decimal(4), cached_input=Decimal("0.5"), cache_write=Decimal(5), output=Decimal(20))
Call = Callable[..., tuple[int, str, str]]


def model(price: Price | None = PRICE, **fields: Any) -> EstimatedModel:
    known = {
        "name": "m", "price_source": "", "context_tokens": 100_000, "context_source": ContextSource.ENTRY,
        "max_output_tokens": None, "caches": True,
    }  # fmt: skip
    return EstimatedModel(price=price, **{**known, **fields})


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line without engine, key or network; gives exit code, stdout and stderr."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "EVOLVARIUM_PRICES"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def documented(call: Call, *arguments: str) -> dict[str, Any]:
    code, out, err = call(*arguments, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_a_conversation_resends_itself() -> None:
    assert list(conversation(3, first=1000, growth=200, limit=10_000, restart=1500)) == [
        (1, 1000, 0), (1, 1200, 1000), (1, 1400, 1200),
    ]  # fmt: skip


def test_a_full_conversation_begins_anew_with_its_handoff() -> None:
    # 1000 and 1200 fit below 1400; further ones begin at 1300 and have one request each
    assert list(conversation(5, first=1000, growth=200, limit=1400, restart=1300)) == [
        (1, 1000, 0), (1, 1200, 1000), (3, 1300, 0),
    ]  # fmt: skip


@given(st.integers(0, 500), st.integers(1, 5000), st.integers(1, 900), st.integers(1, 6000), st.integers(1, 5000))
def test_no_request_is_lost_on_the_way(requests: int, first: int, growth: int, limit: int, restart: int) -> None:
    sizes = list(conversation(requests, first=first, growth=growth, limit=limit, restart=restart))
    assert sum(size.requests for size in sizes) == requests
    assert all(size.seen <= size.tokens for size in sizes)
    assert all(size.tokens < limit for size in sizes if size.seen)


def test_expected_amounts_are_what_one_counts_by_hand() -> None:
    sizes = [Size(2, 1000, 0), Size(3, 2000, 1000)]
    found = expected_amounts(model(), sizes, output_tokens=100, cached_share=0.9)
    # cached: 3 * 900; written: 2 * 1000 + 3 * 1100; output: 5 * 100
    # dollars: (2700 * 0.5 + 5300 * 5 + 500 * 20) / 1e6
    assert found == Amounts(
        requests=5,
        usage=Usage(cached_input_tokens=2700, cache_write_tokens=5300, output_tokens=500, usd=Decimal("0.03785")),
    )


def test_where_nothing_is_cached_all_input_is_fresh() -> None:
    sizes = [Size(2, 1000, 900)]
    found = expected_amounts(model(caches=False), sizes, output_tokens=10, cached_share=1.0)
    assert found.usage == Usage(input_tokens=2000, output_tokens=20, usd=Decimal("0.0084"))
    no_writes = model(Price(input=Decimal(4), cached_input=Decimal(1), output=Decimal(20)))
    found = expected_amounts(no_writes, sizes, output_tokens=10, cached_share=1.0)
    assert found.usage == Usage(input_tokens=200, cached_input_tokens=1800, output_tokens=20, usd=Decimal("0.003"))


def test_an_unknown_price_leaves_the_tokens_known() -> None:
    found = expected_amounts(model(None), [Size(2, 1000, 0)], output_tokens=10, cached_share=0.5)
    assert found.usage == Usage(input_tokens=2000, output_tokens=20, usd=None)
    assert most_amounts(model(None), 3, output_limit=1000).usage.usd is None


def test_at_most_input_and_output_share_the_context() -> None:
    flat = Price(input=Decimal(1), output=Decimal(2))
    found = most_amounts(model(flat, context_tokens=10_000), 4, output_limit=3000)
    # each: 7000 of input and 3000 of output, (7000 * 1 + 3000 * 2) / 1e6
    assert found == Amounts(requests=4, usage=Usage(input_tokens=28_000, output_tokens=12_000, usd=Decimal("0.052")))
    assert most_amounts(model(flat, max_output_tokens=500), 1, output_limit=3000).usage.output_tokens == 500


def test_the_dearest_division_of_the_context_counts() -> None:
    dear_input = Price(input=Decimal(5), output=Decimal(1))
    assert model(dear_input, context_tokens=1000).most(900).usd == Decimal("0.004996")  # 999 * 5 + 1
    above = PriceTier(input=Decimal(9), output=Decimal(1))
    two_tiers = Price(input=Decimal(1), output=Decimal(8), above_input_tokens=400, above=above)
    # 401 * 9 + 599 * 1 and 100 * 1 + 900 * 8 lose against 999 * 9 + 1 * 1
    assert model(two_tiers, context_tokens=1000).most(900).usd == Decimal("0.008992")


prices = st.builds(
    Price,
    input=st.decimals(0, 50, places=2),
    output=st.decimals(0, 50, places=2),
    cached_input=st.none(),
    cache_write=st.none(),
    reasoning=st.none(),
    above_input_tokens=st.integers(1, 1200),
    above=st.builds(
        PriceTier,
        input=st.decimals(0, 50, places=2),
        output=st.decimals(0, 50, places=2),
        cached_input=st.none(),
        cache_write=st.none(),
        reasoning=st.none(),
    ),
)


@given(prices, st.integers(1, 1000), st.integers(0, 999), st.integers(0, 1000))
def test_no_request_that_fits_costs_more_than_the_most(price: Price, limit: int, size: int, out: int) -> None:
    one = model(price, context_tokens=1000)
    out = min(out, limit, 1000 - size)
    most = one.most(limit)
    assert most.usd is not None
    assert cost(price, Usage(input_tokens=size, output_tokens=out)) <= most.usd


def test_a_budget_is_the_ceiling_where_settings_allow_more() -> None:
    line = Line(
        role="agent",
        model=model(),
        expected=Amounts(requests=1, usage=Usage(input_tokens=10, usd=Decimal("0.1"))),
        at_most=Amounts(requests=9, usage=Usage(input_tokens=900, usd=Decimal(7))),
    )
    free = Estimate(method="run", subject="t", lines=(line,), assumptions=())
    assert (free.most_usd, free.most_tokens) == (Decimal(7), 900)
    bound = Estimate(method="run", subject="t", lines=(line,), assumptions=(), budget_usd=Decimal(2), budget_tokens=500)
    assert (bound.most_usd, bound.most_tokens) == (Decimal("0.01"), 500)  # that is what 500 tokens of output cost
    dear = replace(bound, budget_usd=Decimal("0.0002"), budget_tokens=None)
    assert (dear.most_usd, dear.most_tokens) == (Decimal("0.0002"), 400)  # as much cached input as that buys


@given(st.integers(1, 900), st.integers(1, 2000), st.integers(0, 100), st.one_of(st.none(), st.integers(1, 10**6)))
def test_whatever_is_at_most_can_be_bought(requests: int, limit: int, cents: int, tokens: int | None) -> None:
    one, usd = model(), Decimal(cents) / 100
    line = Line(role="agent", model=one, expected=Amounts(), at_most=most_amounts(one, requests, output_limit=limit))
    estimate = Estimate(method="run", subject="t", lines=(line,), assumptions=(), budget_usd=usd, budget_tokens=tokens)
    most, row = estimate.at_most.usage, estimate.most_of(line).usage
    assert most.usd is not None
    assert most.usd <= usd
    assert (row.input_tokens, row.output_tokens) == (most.input_tokens, most.output_tokens)
    assert max(most.input_tokens, most.output_tokens) <= estimate.most_tokens
    assert PRICE.cached_input is not None
    assert estimate.most_tokens * PRICE.cached_input / 10**6 <= usd
    assert most.output_tokens * PRICE.output / 10**6 <= usd
    assert tokens is None or estimate.most_tokens <= tokens


def test_no_figure_is_over_what_is_at_most(call: Call) -> None:
    document = documented(
        call, "estimate", "run", "online_bin_packing", "--model", "openai/qwen", "--base-url", "http://127.0.0.1:1"
    )
    (line,) = document["lines"]
    # 32,768 tokens hold no whole reply of 32,000 beside a conversation of some length, and the other way round
    for name in ("input_tokens", "output_tokens"):
        assert line["expected"]["usage"][name] <= line["at_most"]["usage"][name]


def test_members_of_an_ensemble_share_what_is_expected_and_each_may_have_to_do_it_all() -> None:
    def entry(name: str) -> ModelEntry:
        url = "http://127.0.0.1:1/v1"  # of which no table says how long a context it has
        return ModelEntry(provider=Provider.OPENAI, model=name, base_url=url, price=PRICE, options={})

    access = ModelAccess(
        models={"big": entry("big"), "small": entry("small")},
        ensembles={"crew": (Member(model="big", weight=1), Member(model="small", weight=3))},
    )
    big, small = estimated_models("crew", ModelRole.AGENT, access, price_table({}), context_tokens=50_000)
    assert (big.share, small.share) == (Fraction(1, 4), Fraction(3, 4))
    assert big.context_tokens == 50_000
    wide = access.models["big"].model_copy(update={"context_tokens": 90_000})
    mixed = access.model_copy(update={"models": {**access.models, "big": wide}})
    both = estimated_models("crew", ModelRole.AGENT, mixed, price_table({}), context_tokens=50_000)
    assert [one.context_tokens for one in both] == [50_000, 50_000]  # a conversation must fit into each of them
    lines = [
        Line(
            role="agent",
            model=one,
            expected=expected_amounts(one, [Size(8, 1000, 0)], output_tokens=0, cached_share=0),
            at_most=most_amounts(one, 8, output_limit=100),
        )
        for one in (big, small)
    ]
    assert [line.expected.requests for line in lines] == [2, 6]
    expected, most = total_of(lines)
    assert (expected.requests, most.requests) == (8, 8)
    assert most == lines[0].at_most
    with pytest.raises(InputError, match="is an ensemble"):
        estimated_models("crew", ModelRole.CRITIC, access, price_table({}), context_tokens=50_000)


def test_a_search_is_counted_from_the_tasks_own_texts(tmp_path: Path) -> None:
    places = find_places(tmp_path / "home", None, {})
    access = ModelAccess(models={"mine": ModelEntry(
        provider=Provider.OPENAI, model="mine", base_url="http://127.0.0.1:1/v1", context_tokens=1_000_000,
        price=Price(input=Decimal(1), output=Decimal(10)), options={},
    )})  # fmt: skip
    choices = Choices(task=str(TASK), model="mine", access=access)
    chosen = {"islands": 2, "commits_per_island": 3}
    estimate = estimate_search(
        places, choices, chosen, ["requests_per_commit=2", "reply_tokens=100", "result_tokens=400"]
    )
    task = load_task(TASK)
    first = first_request_tokens(method_settings(task.spec, **chosen), task.view)
    (line,) = estimate.lines
    # each island: 6 requests, the n-th with n-1 exchanges of 500 tokens before it
    one_island = 6 * first + 500 * (0 + 1 + 2 + 3 + 4 + 5)
    assert line.expected.requests == 12
    assert line.expected.usage.input_tokens == 2 * one_island
    assert line.expected.usage.output_tokens == 1200
    assert line.expected.usage.usd == Decimal(2 * one_island + 12_000) / 1_000_000
    assert line.at_most.requests == 2 * task.spec.budgets.requests
    assert 1000 < first < 20_000


def test_an_offline_run_that_is_like_itself_takes_what_it_took(call: Call, tmp_path: Path) -> None:
    run_id = Recording.of(tmp_path / "home", load_task(TASK)).made()
    shown = documented(call, "show", run_id)
    document = documented(
        call, "estimate", "run", "online_bin_packing", "--islands", "2", "--commits", "3", "--no-analysis",
        "--like", run_id,
    )  # fmt: skip
    (line,) = document["lines"]
    assert line["expected"] == {"requests": shown["requests"], "usage": shown["usage"]}
    assert document["total"]["expected"] == line["expected"]
    assert (document["like"], document["assumptions"]) == (run_id, [])
    doubled = documented(
        call, "estimate", "run", "online_bin_packing", "--islands", "4", "--commits", "3", "--like", run_id,
        "--model", "openai/any", "--price", "1/2",
    )  # fmt: skip
    (line,) = doubled["lines"]
    tokens = shown["usage"]["input_tokens"], shown["usage"]["output_tokens"]
    assert line["expected"]["requests"] == 2 * shown["requests"]
    assert line["expected"]["usage"]["usd"] == pytest.approx(2 * (tokens[0] + 2 * tokens[1]) / 1e6)


def test_a_run_of_another_kind_or_without_commits_is_no_measure(call: Call, tmp_path: Path) -> None:
    run_id = Recording.of(tmp_path / "home", load_task(TASK)).made()
    data = ROOT / "tests"
    code, _, err = call("estimate", "bench", "--dataset", "jsonl", "--root", str(data), "--like", run_id)
    assert code == 2
    assert "is a search, not a Text-to-SQL bench" in err
    code, _, err = call("estimate", "run", "online_bin_packing", "--like", run_id, "--assume", "reply_tokens=5")
    assert code == 2
    assert "give one of them" in err


def test_an_unknown_price_is_said_with_the_way_out_and_no_key_is_needed(call: Call) -> None:
    arguments = ("estimate", "run", "online_bin_packing", "--model", "openai/qwen", "--base-url", "http://127.0.0.1:1")
    document = documented(call, *arguments)
    assert document["unpriced"] == ["openai/qwen"]
    assert document["total"]["at_most_usd"] is None
    assert document["total"]["expected"]["usage"]["usd"] is None
    assert document["total"]["expected"]["usage"]["input_tokens"] > 0
    _, out, _ = call(*arguments)
    assert "unknown" in out
    assert "--price IN/CACHED/OUT" in out
    priced = documented(call, *arguments, "--price", "0.2/0.02/0.6")
    assert priced["unpriced"] == []
    assert priced["lines"][0]["price_source"] == "as you give it"
    assert priced["total"]["expected"]["usage"]["cached_input_tokens"] > 0


def test_the_context_is_what_a_run_would_take(call: Call, tmp_path: Path) -> None:
    server = ("--base-url", "http://127.0.0.1:1")
    assert RunAssumptions().context_tokens == DEFAULT_CONTEXT_TOKENS
    cases: list[tuple[tuple[str, ...], int, str]] = [
        (("--model", "openai/qwen", *server), DEFAULT_CONTEXT_TOKENS, "assumed"),
        (("--model", "openai/qwen", *server, "--assume", "context_tokens=65536"), 65_536, "assumed"),
        (("--model", "anthropic/claude-sonnet-4-5"), 200_000, "table"),
        (("--model", "offline"), OFFLINE_CONTEXT_TOKENS, "engine"),
        (("--model", "mine", "--models", str(tmp_path / "models.yaml")), 50_000, "entry"),
    ]
    (tmp_path / "models.yaml").write_text(
        "models:\n  mine: {provider: anthropic, model: claude-sonnet-4-5, context_tokens: 50000}\n", encoding="utf-8"
    )
    for arguments, tokens, source in cases:
        document = documented(call, "estimate", "run", "online_bin_packing", *arguments)
        (line,) = document["lines"]
        assert (line["context_tokens"], line["context_source"]) == (tokens, source)
        assert any(f"{tokens:,} tokens at most" in fact for fact in document["facts"])
        assumed_names = [one["name"] for one in document["assumptions"]]
        assert ("context_tokens" in assumed_names) == (source == "assumed")


def test_a_known_context_is_not_assumed(call: Call) -> None:
    code, _, err = call(
        "estimate", "run", "online_bin_packing", "--model", "anthropic/claude-sonnet-4-5", "--assume",
        "context_tokens=9000",
    )  # fmt: skip
    assert code == 2
    assert "anthropic/claude-sonnet-4-5 has 200,000 tokens" in err
    assert "`context_tokens` in a --models file" in err


def test_the_readmes_estimate_and_run_are_one_pair(call: Call) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (estimate,) = [line.partition("#")[0].split() for line in page.splitlines() if "evolvarium estimate run" in line]
    run = next(line for line in page.splitlines() if line.startswith("evolvarium run") and "--budget-usd" in line)
    assert run.partition("#")[0].split() == [estimate[0], *estimate[2:]]
    document = documented(call, *estimate[1:])
    assert 0 < document["total"]["expected"]["usage"]["usd"] < document["budget_usd"] == 5


def test_a_price_of_the_table_is_shown_with_its_date(call: Call) -> None:
    document = documented(call, "estimate", "run", "online_bin_packing", "--model", "anthropic/claude-opus-5-5")
    (line,) = document["lines"]
    assert line["price_source"].startswith("2026-")
    assert line["expected"]["usage"]["cache_write_input_tokens"] > 0
    assert document["total"]["at_most_usd"] > document["total"]["expected"]["usage"]["usd"] > 0
    _, out, _ = call(
        "estimate", "run", "online_bin_packing", "--model", "anthropic/claude-opus-5-5", "--budget-usd", "0.5"
    )
    assert "At most: 0.50 US dollars" in out
    assert "less than what is expected" in out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("reply_token=5", "did you mean 'reply_tokens'"),
        ("reply_tokens", "is not NAME=VALUE"),
        ("reply_tokens=many", "`reply_tokens`"),
        ("cached_share=1.5", "`cached_share` is '1.5': must be at most 1"),
        ("requests_per_commit=0", "`requests_per_commit` is '0': must be greater than 0"),
        ("requests_per_commit=nan", "`requests_per_commit`"),
    ],
)
def test_a_wrong_assumption_is_told_by_its_name(given: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        assumed(RunAssumptions, [given])
    assert told in str(caught.value)


def test_every_assumption_is_stated_and_can_be_changed() -> None:
    stated = RunAssumptions().stated([model(context_source=ContextSource.ASSUMED)])
    assert all(meaning for _, _, meaning in stated)
    for name, value, _ in stated:
        changed = assumed(RunAssumptions, [f"{name}={value / 2 if value <= 1 else int(value) * 2}"])
        assert getattr(changed, name) != value
    with pytest.raises(InputError, match="given twice"):
        assumed(RunAssumptions, ["reply_tokens=1", "reply_tokens=2"])
