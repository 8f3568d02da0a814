"""The bills of the gateway are those of the scripted LLM, which knows its prices from elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import pytest

from peripety.gateway.models.call_cost import cost_of
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.types.response import Usage
from peripety.llmsim.provider_rules.billing import bill_request
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.types import Api
from peripety.llmsim.types import BilledUsage as Charged

if TYPE_CHECKING:
    from peripety.gateway.models.model_data import ModelData

APIS = {
    "anthropic": Api.ANTHROPIC,
    "openai": Api.OPENAI_CHAT,
    "deepseek": Api.DEEPSEEK,
    "gemini": Api.GEMINI,
}
# The scripted LLM has no price of them yet.
ONLY_HERE = {
    "gemini-3.1-flash-lite",
    "gemini-3.5-flash-lite",
    "gpt-5.4-nano",
    "gpt-6.2-astra",
    "gpt-6.2-sol",
}
WEEK = [datetime(2026, 11, 16, tzinfo=UTC) + timedelta(hours=hour) for hour in range(7 * 24)]
INSTANT = timedelta(seconds=1)


def moments(model: ModelData) -> list[datetime]:
    """All hours of a week, and both sides of the days on which a price changes, while there is the model."""
    days = [datetime.combine(price.effective, time(), UTC) for price in model.prices if price.effective]
    borders = [*WEEK, *days, *(moment - INSTANT for moment in (*WEEK, *days))]
    return [moment for moment in borders if model.released is None or moment.date() >= model.released]


@pytest.mark.parametrize("model", ModelCatalog.load().models(), ids=lambda model: model.name)
def test_both_bill_the_same(model: ModelData) -> None:
    theirs = load_models().find(model.name, APIS[model.provider])
    if model.name in ONLY_HERE:
        assert not theirs.prices
        return
    sizes = {1_000, *(price.min_input_tokens - less for price in model.prices for less in (0, 1))} - {-1}
    short, long = (*model.cache.ttls, None, None)[:2]
    for size in sizes:
        written = {ttl: size // share for ttl, share in ((short, 4), (long, 8)) if ttl}
        ours = Usage(
            size,
            777,
            size // 3,
            sum(written.values()),
            700,
            0 if long is None else written.get(long, 0),
        )
        charged = Charged(size - size // 3 - sum(written.values()), size // 3, written, 777, 700)
        for moment in moments(model):
            cost = cost_of(ours, model, moment)
            assert cost is not None
            assert cost.total == bill_request(theirs, charged, moment.timestamp()).total, (size, moment)
