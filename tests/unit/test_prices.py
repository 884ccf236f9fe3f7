"""The price table, and exact sums in US dollars."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import ModelEntry, Price, PriceTier, Provider
from orchestrator.errors import InputError
from orchestrator.llm.prices import PRICES_VARIABLE, cost, find_price, price_table, table_date, worst_cost

ANTHROPIC = ModelEntry(provider=Provider.ANTHROPIC, model="claude-opus-5-5", options={})
OWN = """\
version: 1
prices:
  - provider: openai
    models: ["llama*"]
    base_urls: [http://127.0.0.1:8000/v1]
    as_of: 2026-11-30
    source: our own bill
    price: {input: 0.02, output: 0.08}
  - provider: anthropic
    models: [claude-opus-5-5]
    as_of: 2026-11-30
    source: our contract
    price: {input: 3.5, output: 18}
"""


def entry(model: str, base_url: str | None = None) -> ModelEntry:
    return ModelEntry(provider=Provider.OPENAI, model=model, base_url=base_url, options={})


def anthropic(model: str) -> ModelEntry:
    return ModelEntry(provider=Provider.ANTHROPIC, model=model, options={})


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "prices.yaml"
    path.write_text(OWN)
    return {PRICES_VARIABLE: str(path)}


def test_every_entry_of_the_table_is_dated_names_its_source_and_is_reached() -> None:
    table = price_table({})
    assert len(table.entries) > 10
    for priced in table.entries:
        assert date(2026, 1, 1) <= priced.as_of <= table_date()
        assert len(priced.source) > 10
        for pattern in priced.models:
            name = pattern.replace("?", "1")
            for url in priced.base_urls or (None,):
                found = table.find(ModelEntry(provider=priced.provider, model=name, base_url=url, options={}))
                assert found is priced, f"{name} is hidden by an earlier entry"


def test_names_with_a_date_cost_what_the_name_costs_and_versions_are_told_apart() -> None:
    table = price_table({})

    def price_of(model: str) -> Price | None:
        return find_price(anthropic(model), table)

    assert price_of("claude-haiku-4-5-20251001") == price_of("claude-haiku-4-5")
    five, five_and_a_half = price_of("claude-opus-5"), price_of("claude-opus-5-5")
    assert five is not None
    assert five_and_a_half is not None
    assert (five.input, five_and_a_half.input) == (Decimal(5), Decimal(4))
    assert find_price(entry("gpt-5.4-mini"), table) != find_price(entry("gpt-5.4"), table)


def test_what_is_not_in_the_table_is_unknown_and_not_free() -> None:
    assert find_price(entry("gpt-99"), price_table({})) is None
    assert find_price(anthropic("claude-opus-5-6"), price_table({})) is None


def test_a_price_holds_only_at_the_servers_it_is_stated_for() -> None:
    table = price_table({})
    assert find_price(entry("gpt-5.5"), table) is not None
    assert find_price(entry("gpt-5.5", "http://127.0.0.1:8000/v1"), table) is None
    assert find_price(entry("deepseek-flash"), table) is None
    assert find_price(entry("deepseek-flash", "https://api.deepseek.com/v1/"), table) is not None


def test_the_price_of_an_entry_counts_before_any_table() -> None:
    mine = Price(input=Decimal(1), output=Decimal(2))
    assert find_price(ANTHROPIC.model_copy(update={"price": mine}), price_table({})) is mine


def test_a_file_of_ones_own_counts_entry_by_entry(own: dict[str, str]) -> None:
    table = price_table(own)
    local = find_price(entry("llama-4", "http://127.0.0.1:8000/v1"), table)
    assert local == Price(input=Decimal("0.02"), output=Decimal("0.08"))
    agreed = find_price(ANTHROPIC, table)
    assert agreed == Price(input=Decimal("3.5"), output=Decimal(18))
    assert find_price(entry("gpt-5.5"), table) == find_price(entry("gpt-5.5"), price_table({}))


@pytest.mark.parametrize(
    ("line", "instead", "named"),
    [
        ("version: 1", "version: 2", "`version`"),
        ("input: 0.02", "input: -0.02", "`prices.0.price.input`"),
        ("input: 0.02", "input: true", "`prices.0.price.input`"),
        ("input: 0.02, ", "", "`prices.0.price.input` is missing"),
        ("input: 0.02", "inptu: 0.02", "`prices.0.price.in"),
        ("as_of: 2026-11-30\n    source: our own", "as_of: 20261130\n    source: our own", "`prices.0.as_of`"),
        ("provider: openai", "provider: acme", "`prices.0.provider`"),
        ('models: ["llama*"]', "models: []", "`prices.0.models`"),
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000", "`prices.0.base_urls.0`"),
        ("output: 0.08}", "output: 0.08, above_input_tokens: 5}", "above_input_tokens and above belong together"),
    ],
)
def test_a_mistake_in_a_file_is_told_by_its_field(own: dict[str, str], line: str, instead: str, named: str) -> None:
    path = Path(own[PRICES_VARIABLE])
    assert line in OWN
    path.write_text(OWN.replace(line, instead, 1))
    with pytest.raises(InputError) as caught:
        price_table(own)
    assert named in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"gone.yaml.*{PRICES_VARIABLE}"):
        price_table({PRICES_VARIABLE: str(tmp_path / "gone.yaml")})


def test_each_kind_of_token_has_its_own_price() -> None:
    price = Price(
        input=Decimal(4), cached_input=Decimal("0.2"), cache_write=Decimal(5), output=Decimal(20), reasoning=Decimal(10)
    )
    usage = Usage(
        input_tokens=1000, cached_input_tokens=10_000, cache_write_tokens=2000, output_tokens=500, reasoning_tokens=300
    )
    # 1000 * 4 + 10000 * 0.2 + 2000 * 5 + 200 * 20 + 300 * 10 = 23000 for a million tokens each
    assert cost(price, usage) == Decimal("0.023")


def test_what_has_no_price_of_its_own_costs_as_other_input_and_other_output() -> None:
    usage = Usage(
        input_tokens=1, cached_input_tokens=10, cache_write_tokens=100, output_tokens=1000, reasoning_tokens=999
    )
    assert cost(Price(input=Decimal(1), output=Decimal(2)), usage) == Decimal("0.002111")


def test_sums_are_exact() -> None:
    price = Price(input=Decimal("0.1"), output=Decimal("0.3"))
    assert cost(price, Usage(input_tokens=3, output_tokens=7)) == Decimal("0.0000024")


def test_a_tier_is_chosen_by_the_input_of_all_kinds() -> None:
    above = PriceTier(input=Decimal(2), output=Decimal(3))
    price = Price(input=Decimal(1), output=Decimal(1), above_input_tokens=100, above=above)
    at = Usage(input_tokens=40, cached_input_tokens=30, cache_write_tokens=30, output_tokens=10)
    over = Usage(input_tokens=41, cached_input_tokens=30, cache_write_tokens=30, output_tokens=10)
    assert cost(price, at) == Decimal("0.00011")
    assert cost(price, over) == Decimal("0.000232")


dollars = st.decimals(min_value=0, max_value=1000, places=4)
tiers = {
    "input": dollars,
    "cached_input": st.none() | dollars,
    "cache_write": st.none() | dollars,
    "output": dollars,
    "reasoning": st.none() | dollars,
}
plain = st.builds(Price, **tiers, above_input_tokens=st.none(), above=st.none())
tiered = st.builds(Price, **tiers, above_input_tokens=st.integers(1, 5000), above=st.builds(PriceTier, **tiers))
counts = st.integers(0, 4000)


@given(plain | tiered, counts, counts, counts, counts, st.integers(0, 5000), st.integers(0, 100), st.integers(0, 100))
def test_nothing_of_a_size_costs_more_than_its_worst(
    price: Price, fresh: int, cached: int, written: int, out: int, reasoning: int, more_in: int, more_out: int
) -> None:
    usage = Usage(
        input_tokens=fresh, cached_input_tokens=cached, cache_write_tokens=written, output_tokens=out,
        reasoning_tokens=reasoning,
    )  # fmt: skip
    size = fresh + cached + written
    assert cost(price, usage) <= worst_cost(price, input_tokens=size + more_in, output_tokens=out + more_out)


@given(plain | tiered, counts, counts)
def test_the_worst_is_not_worse_than_some_request_of_that_size(price: Price, size: int, out: int) -> None:
    sizes = {size, min(size, price.above_input_tokens or size)}
    requests = [
        Usage(
            input_tokens=one if kind == 0 else 0,
            cached_input_tokens=one if kind == 1 else 0,
            cache_write_tokens=one if kind == 2 else 0,
            output_tokens=out,
            reasoning_tokens=thought,
        )
        for kind in range(3)
        for one in sizes
        for thought in (0, out)
    ]
    real = max(cost(price, usage) for usage in requests)
    assert worst_cost(price, input_tokens=size, output_tokens=out) == real
