"""What calls cost, to the pico-dollar (10^-12 dollars)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError
from peripety.gateway.catalogue.prices import price_at, prices_between
from peripety.gateway.model import Usage

if TYPE_CHECKING:
    from datetime import datetime

    from peripety.gateway.catalogue.model import ModelData
    from peripety.gateway.catalogue.prices import Price

__all__ = [
    "LONGEST_CALL",
    "Cost",
    "cost_of",
    "cost_of_call",
    "in_dollars",
    "most_it_can_cost",
    "price_unknown",
]

LONGEST_CALL = timedelta(hours=1)
"""A call that is begun now is priced at a time that is no later than this: waits, repeats and all."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What calls cost, in pico-dollars.

    Attributes:
        total: all of it.
        cache_savings: what the prompt would have cost without a cache, less what it did cost; negative when
            writing to the cache cost more than reading from it saved.
    """

    total: int = 0
    cache_savings: int = 0

    def __add__(self, other: Cost) -> Cost:
        """What two calls cost together."""
        return Cost(self.total + other.total, self.cache_savings + other.cache_savings)


def cost_of(usage: Usage, model: ModelData, when: datetime) -> Cost | None:
    """Return what one call cost; None when its price is not known.

    Args:
        usage: the tokens of the one call: the size of its prompt decides on the price.
        model: the model that answered.
        when: the time of the call, with its zone.
    """
    price = price_at(model.prices, usage.input_tokens, when)
    if price is None:
        return None
    short, long = _writes(price, model)
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
    """Return what a call cost whose usage may be missing; None when that or its price is not known.

    Args:
        usage: its tokens as its provider reported them; all zero when it did not.
        model: the model that answered.
        when: the time of the call, with its zone.
    """
    if usage == Usage() and most_it_can_cost(1, 1, model, when) != 0:
        return None
    return cost_of(usage, model, when)


def most_it_can_cost(input_tokens: int, output_tokens: int, model: ModelData, when: datetime) -> int | None:
    """Return the most that a call can cost that begins now, in pico-dollars; None when a price is not known.

    Args:
        input_tokens: the most that its prompt may have.
        output_tokens: the most that its answer may have, reasoning included.
        model: the model that is asked.
        when: now, with the zone.
    """
    prices = prices_between(model.prices, input_tokens, when, when + LONGEST_CALL)
    return max(
        (input_tokens * price.dearest_input + output_tokens * price.output for price in prices), default=None
    )


def in_dollars(pico_dollars: int) -> str:
    """Return an amount in dollars, exactly."""
    whole, fraction = divmod(pico_dollars, 10**12)
    return f"{whole}.{fraction:012}".rstrip("0").rstrip(".")


def price_unknown(model: str, cap: str) -> FailedPreconditionError:
    """The error of a call whose money is capped and whose price is not known.

    Args:
        model: `provider/model`.
        cap: what caps the money.
    """
    return FailedPreconditionError(
        f"What {model} costs is not known, and {cap} limits money: give its price in the file of"
        " PERIPETY_MODELS, or limit tokens instead",
        code="PRICE_UNKNOWN",
    )


def _writes(price: Price, model: ModelData) -> tuple[int, int]:
    """The price of writing for the shortest time and for the longest one."""
    ttls = tuple(model.cache.ttls) or ("",)
    short = price.cache_write.get(ttls[0], price.input)
    return short, price.cache_write.get(ttls[-1], short)
