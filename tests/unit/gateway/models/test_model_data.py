"""Bills, worked out by hand and by fractions of a dollar, and the bound that reservations use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.gateway.models.call_cost import MAX_CALL_DURATION, Cost, cost_of, cost_of_call, max_cost
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.models.prices import price_at
from peripety.gateway.types.response import Usage

if TYPE_CHECKING:
    from peripety.gateway.models.model_data import ModelData

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday, outside of peak hours
DOLLAR = 10**12
CATALOGUE = ModelCatalog.load()


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """The tokens of a call, around the borders of all tiers."""
    size = draw(st.integers(0, 300_000) | st.sampled_from([100_000, 100_001, 200_001, 272_000, 272_001]))
    read = draw(st.integers(0, size))
    written = draw(st.integers(0, size - read))
    output = draw(st.integers(0, 400_000))
    return Usage(size, output, read, written, draw(st.integers(0, output)), draw(st.integers(0, written)))


moments = st.timedeltas(timedelta(0), timedelta(days=400)).map(datetime(2026, 1, 1, tzinfo=UTC).__add__)


def test_a_bill_of_a_provider_with_two_lifetimes() -> None:
    usage = Usage(
        input_tokens=10_000,
        output_tokens=1_000,
        cache_read_tokens=6_000,
        cache_write_tokens=3_000,
        reasoning_tokens=900,
        long_cache_write_tokens=1_000,
    )
    # A million: fresh 1,000 at $4; read 6,000 at $0.2; written 2,000 at $5, 1,000 at $8; output 1,000 at $20.
    cost = cost_of(usage, CATALOGUE.find("anthropic", "claude-opus-5-5"), NOW)
    assert cost == Cost(
        total=(4_000 + 1_200 + 10_000 + 8_000 + 20_000) * 10**6,
        cache_savings=(40_000 - 23_200) * 10**6,
    )


def test_a_bill_of_a_provider_that_writes_for_nothing() -> None:
    usage = Usage(input_tokens=3_000, output_tokens=200, cache_read_tokens=1_024, cache_write_tokens=1_920)
    # Cache writes cost as much as uncached input: 1,976 at $2.50; read 1,024 at $1.25; output 200 at $10.
    cost = cost_of(usage, CATALOGUE.find("openai", "gpt-4o"), NOW)
    assert cost == Cost(total=(4_940 + 1_280 + 2_000) * 10**6, cache_savings=1_280 * 10**6)


def test_a_bill_at_peak_and_off_peak() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000, cache_read_tokens=500_000)
    model = CATALOGUE.find("deepseek", "deepseek-v4-pro")
    peak = NOW.replace(hour=9)
    assert cost_of(usage, model, NOW) == Cost(DOLLAR * 2_321 // 1_000, DOLLAR * 319 // 1_000)
    assert cost_of(usage, model, peak) == Cost(DOLLAR * 4_642 // 1_000, DOLLAR * 638 // 1_000)


def test_the_whole_prompt_decides_on_the_tier_and_all_of_the_call_pays_it() -> None:
    model = CATALOGUE.find("openai", "gpt-6.1-sol")
    small = Usage(input_tokens=272_000, output_tokens=10, cache_read_tokens=272_000)
    large = Usage(input_tokens=272_001, output_tokens=10, cache_read_tokens=272_000)
    assert cost_of(small, model, NOW) == Cost(27_300 * 10**6, 516_800 * 10**6)
    assert cost_of(large, model, NOW) == Cost((54_400 + 4 + 150) * 10**6, 1_033_600 * 10**6)


def test_writing_without_reading_is_a_loss() -> None:
    usage = Usage(input_tokens=1_000, cache_write_tokens=1_000, long_cache_write_tokens=1_000)
    cost = cost_of(usage, CATALOGUE.find("anthropic", "claude-haiku-4-5"), NOW)
    assert cost == Cost(total=2_000 * 10**6, cache_savings=-1_000 * 10**6)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("generic", "m"), ("ollama", "m"), ("azure", "m"), ("openai", "gpt-9"), ("x", None)],
)
def test_what_is_not_known_costs_not_nothing_but_an_unknown_amount(provider: str, model: str | None) -> None:
    found = CATALOGUE.find(provider, model)
    assert cost_of(Usage(10, 10), found, NOW) is None
    assert max_cost(10, 10, found, NOW) is None


@pytest.mark.parametrize("provider", ["offline", "scripted"])
def test_no_model_costs_nothing(provider: str) -> None:
    assert cost_of(Usage(10, 10), CATALOGUE.find(provider, None), NOW) == Cost()
    assert max_cost(10, 10, CATALOGUE.find(provider, None), NOW) == 0


def test_a_call_whose_usage_is_missing_costs_something_unless_everything_is_free() -> None:
    assert cost_of_call(Usage(), CATALOGUE.find("openai", "gpt-4o"), NOW) is None
    assert cost_of_call(Usage(), CATALOGUE.find("offline", None), NOW) == Cost()


def test_costs_add_up() -> None:
    assert Cost(3, -1) + Cost(4, 5) == Cost(7, 4)


@given(model=st.sampled_from(CATALOGUE.models()), usage=usages(), when=moments)
def test_a_bill_is_that_of_exact_fractions(model: ModelData, usage: Usage, when: datetime) -> None:
    cost = cost_of(usage, model, when)
    price = price_at(model.prices, usage.input_tokens, when)
    assert (cost is None) == (price is None)
    if cost is None or price is None:
        return
    ttls = list(model.cache.ttls)
    written = dict.fromkeys(ttls, 0)
    if ttls:
        written[ttls[0]] += usage.cache_write_tokens - usage.long_cache_write_tokens
        written[ttls[-1]] += usage.long_cache_write_tokens
    dollars = {ttl: Fraction(each, DOLLAR) for ttl, each in price.cache_write.items()}
    full = Fraction(price.input, DOLLAR)
    prompt = (usage.input_tokens - usage.cache_read_tokens - sum(written.values())) * full
    prompt += usage.cache_read_tokens * Fraction(price.cache_read, DOLLAR)
    prompt += sum(count * dollars.get(ttl, full) for ttl, count in written.items())
    assert Fraction(cost.total, DOLLAR) == prompt + usage.output_tokens * Fraction(price.output, DOLLAR)
    assert Fraction(cost.cache_savings, DOLLAR) == usage.input_tokens * full - prompt


@given(
    model=st.sampled_from(CATALOGUE.models()),
    usage=usages(),
    more=st.tuples(st.integers(0, 100_000), st.integers(0, 100_000)),
    when=moments,
    later=st.timedeltas(timedelta(0), MAX_CALL_DURATION),
)
def test_no_call_costs_more_than_it_can(
    model: ModelData,
    usage: Usage,
    more: tuple[int, int],
    when: datetime,
    later: timedelta,
) -> None:
    bound = max_cost(usage.input_tokens + more[0], usage.output_tokens + more[1], model, when)
    cost = cost_of(usage, model, when + later)
    if bound is not None:
        assert cost is not None
        assert cost.total <= bound


def test_the_bound_is_that_of_writing_the_whole_prompt_for_the_longest_time() -> None:
    model = CATALOGUE.find("anthropic", "claude-opus-5-5")
    assert max_cost(1_000, 100, model, NOW) == (8_000 + 2_000) * 10**6


def test_the_bound_is_at_the_peak_that_a_call_may_still_run_into() -> None:
    model = CATALOGUE.find("deepseek", "deepseek-flash")
    assert max_cost(1_000, 0, model, NOW.replace(hour=4)) == 150 * 10**6
    assert max_cost(1_000, 0, model, NOW.replace(hour=5)) == 300 * 10**6


def test_only_a_model_that_reasons_gets_room_for_thoughts() -> None:
    catalog = ModelCatalog.load()
    assert catalog.find("openai", "gpt-5-mini").thought_tokens == 8_192
    assert catalog.find("generic", "any").thought_tokens == 0


def test_the_room_of_an_answer_adds_the_thoughts_up_to_what_the_model_can_write() -> None:
    catalog = ModelCatalog.load()
    assert catalog.find("openai", "gpt-5-mini").tokens_for_answer(1_024) == 9_216
    assert catalog.find("generic", "any").tokens_for_answer(1_024) == 1_024
    assert catalog.find("openai", "gpt-5-mini").tokens_for_answer(1_000_000) == 128_000


def test_only_chat_completions_stop_reasoning_for_tools() -> None:
    catalog = ModelCatalog.load()
    limited = {
        name: catalog.find(name, "gpt-5.5").stops_reasoning_for_tools
        for name in ("openai", "openai-responses")
    }
    assert limited == {"openai": True, "openai-responses": False}
    assert not catalog.find("openai", "gpt-5.2").stops_reasoning_for_tools
    assert not catalog.find("generic", "any").stops_reasoning_for_tools
