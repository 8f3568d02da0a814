"""Selection of the price: by date, by the size of the prompt, and at peak hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.models.prices import PeakHours, Price, price_at, prices_between

WEEKDAYS = PeakHours(weekdays=(1, 2, 3, 4, 5), hours=((1, 4), (6, 10)))
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)


def price(cost: int, **more: object) -> Price:
    return Price(cost, cost, cost, **more)  # type: ignore[arg-type]


def cost_at(prices: list[Price], tokens: int, when: datetime) -> int | None:
    found = price_at(prices, tokens, when)
    return None if found is None else found.input


def test_a_price_holds_from_midnight_in_utc() -> None:
    prices = [price(1), price(2, effective=date(2026, 8, 21))]
    midnight = datetime(2026, 8, 21, tzinfo=UTC)
    assert cost_at(prices, 0, midnight - INSTANT) == 1
    assert cost_at(prices, 0, midnight) == 2
    assert cost_at(prices, 0, midnight.astimezone(timezone(timedelta(hours=-8)))) == 2


def test_before_the_first_date_no_price_is_known() -> None:
    prices = [price(1, effective=date(2026, 8, 21))]
    assert cost_at(prices, 0, datetime(2026, 8, 20, tzinfo=UTC)) is None
    assert cost_at([], 0, MONDAY) is None


def test_a_larger_prompt_has_its_own_price_from_the_border_on() -> None:
    prices = [price(1), price(2, min_input_tokens=100), price(3, min_input_tokens=200)]
    assert [cost_at(prices, tokens, MONDAY) for tokens in (0, 99, 100, 199, 200)] == [1, 1, 2, 2, 3]


def test_a_new_list_of_prices_replaces_the_old_tiers_too() -> None:
    prices = [price(1), price(2, min_input_tokens=100), price(3, effective=date(2026, 3, 13))]
    assert cost_at(prices, 500, datetime(2026, 3, 12, tzinfo=UTC)) == 2
    assert cost_at(prices, 500, datetime(2026, 3, 13, tzinfo=UTC)) == 3


@pytest.mark.parametrize(
    ("after_midnight", "expected"),
    [
        (timedelta(hours=1) - INSTANT, 1),
        (timedelta(hours=1), 2),
        (timedelta(hours=4) - INSTANT, 2),
        (timedelta(hours=4), 1),
        (timedelta(hours=6), 2),
        (timedelta(hours=10) - INSTANT, 2),
        (timedelta(hours=10), 1),
        (timedelta(days=4, hours=9), 2),
        (timedelta(days=5, hours=9), 1),
        (timedelta(days=6, hours=2), 1),
    ],
)
def test_peak_prices_hold_in_their_hours_of_weekdays(after_midnight: timedelta, expected: int) -> None:
    assert cost_at([price(1), price(2, peak=WEEKDAYS)], 0, MONDAY + after_midnight) == expected


@pytest.mark.parametrize(
    ("begin", "minutes", "expected"),
    [
        (MONDAY + timedelta(minutes=59), 0, {1}),
        (MONDAY + timedelta(minutes=59), 1, {1, 2}),
        (MONDAY + timedelta(hours=3, minutes=59), 60, {1, 2}),
        (MONDAY + timedelta(hours=5), 59, {1}),
        (MONDAY + timedelta(hours=4), 7 * 60, {1, 2}),
    ],
)
def test_a_call_can_run_into_a_peak(begin: datetime, minutes: int, expected: set[int]) -> None:
    prices = [price(1), price(2, peak=WEEKDAYS)]
    found = prices_between(prices, 10, begin, begin + timedelta(minutes=minutes))
    assert {each.input for each in found} == expected


def test_a_call_can_run_into_a_new_price_and_be_smaller_than_its_bound() -> None:
    prices = [price(1), price(2, min_input_tokens=100), price(3, effective=date(2026, 11, 17))]
    begin = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
    found = prices_between(prices, 100, begin, begin + timedelta(hours=1))
    assert {each.input for each in found} == {1, 2, 3}


def test_of_a_period_that_begins_before_the_first_date_no_price_is_known() -> None:
    prices = [price(1, effective=date(2026, 11, 17))]
    begin = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
    assert prices_between(prices, 100, begin, begin + timedelta(hours=1)) == []


def test_every_price_that_is_known_is_a_whole_number_of_pico_dollars() -> None:
    models = ModelCatalog.load().models()
    assert len(models) > 50
    for model in models:
        assert model.prices, f"{model.provider}/{model.name} has no price"
        for each in model.prices:
            costs = [each.input, each.output, each.cache_read, *each.cache_write.values()]
            assert all(type(cost) is int for cost in costs)
            assert each.output > each.input > each.cache_read > 0
            assert each.max_input_price == max(costs[0], *costs[3:], 0)


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("anthropic", "claude-opus-5-5", ("4", "20", "0.20", ["5", "8"])),
        ("anthropic", "claude-fable-5-2", ("8", "40", "0.20", ["10", "16"])),
        ("anthropic", "claude-haiku-4-5-20251001", ("1", "5", "0.10", ["1.25", "2"])),
        ("openai", "gpt-6.1-sol", ("2", "10", "0.10", ["2.50"])),
        ("openai", "gpt-5.6-terra", ("2", "12", "0.20", ["2.50"])),
        ("openai", "gpt-4o-mini", ("0.15", "0.60", "0.075", [])),
        ("deepseek", "deepseek-flash", ("0.15", "0.60", "0.003", [])),
        ("gemini", "gemini-4-argon", ("2", "10", "0.10", [])),
    ],
)
def test_prices_are_those_that_the_providers_publish(
    provider: str,
    model: str,
    expected: tuple[str, str, str, list[str]],
) -> None:
    found = price_at(
        ModelCatalog.load().find(provider, model).prices,
        1000,
        datetime(2026, 11, 22, tzinfo=UTC),
    )
    assert found is not None
    dollars = [Decimal(cost) / 10**6 for cost in (found.input, found.output, found.cache_read)]
    writes = [Decimal(cost) / 10**6 for cost in found.cache_write.values()]
    assert (dollars, writes) == ([Decimal(each) for each in expected[:3]], [Decimal(e) for e in expected[3]])
