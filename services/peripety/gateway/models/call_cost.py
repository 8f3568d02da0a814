"""Cost of a call: from its tokens and the prices of its model, exact to the pico-dollar (10^-12 dollars)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError
from peripety.gateway.models.prices import price_at, prices_between
from peripety.gateway.types.response import Usage

if TYPE_CHECKING:
    from datetime import datetime

    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.models.prices import Price


MAX_CALL_DURATION = timedelta(hours=1)
"""Upper bound on the start of a call that is admitted now, waits and retries included.

It selects the prices.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of calls in pico-dollars.

    Attributes:
        total: the total cost.
        cache_savings: the cost of the prompt without a cache minus its actual cost; negative if writing to
            the cache cost more than reading saved.
    """

    total: int = 0
    cache_savings: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Return the sum of both costs."""
        return Cost(self.total + other.total, self.cache_savings + other.cache_savings)


def cost_of(usage: Usage, model: ModelData, when: datetime) -> Cost | None:
    """Return the cost of one call; None if its price is unknown.

    Args:
        usage: tokens of this one call; the prompt size selects the price.
        model: the model that answered.
        when: time of the call, with time zone.
    """
    price = price_at(model.prices, usage.input_tokens, when)
    if price is None:
        return None
    short, long = _cache_write_prices(price, model)
    long_writes = usage.long_cache_write_tokens
    short_writes = usage.cache_write_tokens - long_writes
    fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    prompt = (
        fresh * price.input
        + usage.cache_read_tokens * price.cache_read
        + short_writes * short
        + long_writes * long
    )
    return Cost(
        total=prompt + usage.output_tokens * price.output,
        cache_savings=usage.input_tokens * price.input - prompt,
    )


def cost_of_call(usage: Usage, model: ModelData, when: datetime) -> Cost | None:
    """Return the cost of a call with possibly missing usage; None if usage or price is unknown.

    Args:
        usage: tokens reported by the provider; all zero if it reported none.
        model: the model that answered.
        when: time of the call, with time zone.
    """
    if usage == Usage() and max_cost(1, 1, model, when) != 0:
        return None
    return cost_of(usage, model, when)


def max_cost(input_tokens: int, output_tokens: int, model: ModelData, when: datetime) -> int | None:
    """Return the maximum cost of a call that starts now, in pico-dollars; None if a price is unknown.

    Args:
        input_tokens: maximum size of the prompt.
        output_tokens: maximum size of the answer, reasoning included.
        model: the requested model.
        when: current time, with time zone.
    """
    prices = prices_between(model.prices, input_tokens, when, when + MAX_CALL_DURATION)
    return max(
        (input_tokens * price.max_input_price + output_tokens * price.output for price in prices),
        default=None,
    )


def format_dollars(pico_dollars: int) -> str:
    """Return an amount in dollars, exactly."""
    whole, fraction = divmod(pico_dollars, 10**12)
    return f"{whole}.{fraction:012}".rstrip("0").rstrip(".")


def unknown_price_error(model: str, cap: str) -> FailedPreconditionError:
    """Return the error of a call with a capped cost and an unknown price.

    Args:
        model: `provider/model`.
        cap: the cap, for the message.
    """
    return FailedPreconditionError(
        f"price of {model} unknown, but {cap} limits the cost; add its price to the file of PERIPETY_MODELS,"
        " or limit tokens instead",
        code="PRICE_UNKNOWN",
    )


def _cache_write_prices(price: Price, model: ModelData) -> tuple[int, int]:
    """Return the cache-write prices for the shortest and the longest lifetime."""
    ttls = tuple(model.cache.ttls) or ("",)
    short = price.cache_write.get(ttls[0], price.input)
    return short, price.cache_write.get(ttls[-1], short)
