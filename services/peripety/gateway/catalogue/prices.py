"""What the tokens of a model cost: by date, by the size of the prompt, and at peak hours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field

__all__ = ["PeakHours", "PicoDollars", "Price", "price_at", "prices_between", "prices_on"]

# A dollar for a million tokens is a million pico-dollars (10^-12 dollars) for each.
_PICO_DOLLARS_PER_TOKEN = 1_000_000


def _pico_dollars(dollars_per_million: Any) -> int:
    if isinstance(dollars_per_million, bool) or not isinstance(dollars_per_million, int | Decimal):
        raise ValueError("must be a number of dollars for a million tokens")  # noqa: TRY004 - pydantic's way
    pico = dollars_per_million * _PICO_DOLLARS_PER_TOKEN
    if isinstance(pico, Decimal) and (not pico.is_finite() or pico != pico.to_integral_value()):
        raise ValueError("must have at most 6 decimals: a pico-dollar for each token is the smallest price")
    return int(pico)


PicoDollars = Annotated[int, BeforeValidator(_pico_dollars), Field(ge=0)]
"""Pico-dollars for each token; in a file, dollars for a million of them."""


@dataclass(frozen=True, slots=True)
class PeakHours:
    """When a provider's peak prices hold, in UTC.

    Attributes:
        weekdays: 1 is Monday, 7 is Sunday.
        hours: from each first hour to before each second one.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    weekdays: tuple[Annotated[int, Field(ge=1, le=7)], ...]
    hours: tuple[tuple[Annotated[int, Field(ge=0, le=23)], Annotated[int, Field(ge=1, le=24)]], ...]

    def hold_at(self, when: datetime) -> bool:
        """Whether it is peak time; `when` is in UTC."""
        return when.isoweekday() in self.weekdays and any(
            begin <= when.hour < end for begin, end in self.hours
        )


@dataclass(frozen=True, slots=True)
class Price:
    """What each token costs, in pico-dollars.

    Attributes:
        input: a token of the prompt that is neither read from a cache nor written to one.
        output: a token of the answer, reasoning included.
        cache_read: a token that is read from the cache.
        cache_write: a token that is written to the cache, by the name of its lifetime (`CacheRules.ttls`);
            empty where writing costs what the input costs.
        min_input_tokens: for prompts of so many tokens or more.
        effective: from the beginning of this day on, in UTC; None is since ever.
        peak: holds only in these hours; None is at any time.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    input: PicoDollars
    output: PicoDollars
    cache_read: PicoDollars
    cache_write: Mapping[str, PicoDollars] = field(default_factory=dict)
    min_input_tokens: Annotated[int, Field(ge=0)] = 0
    effective: date | None = None
    peak: PeakHours | None = None

    @property
    def dearest_input(self) -> int:
        """The most that one token of a prompt can cost, whatever a cache does with it."""
        return max(self.input, self.cache_read, *self.cache_write.values())


def prices_on(prices: Sequence[Price], day: date) -> list[Price]:
    """Return the prices that hold on a day: of the lists of several days the newest one holds alone."""
    begun = [price for price in prices if _begin(price) <= day]
    newest = max(map(_begin, begun), default=None)
    return [price for price in begun if _begin(price) == newest]


def price_at(prices: Sequence[Price], input_tokens: int, when: datetime) -> Price | None:
    """Return the price that holds; None when it is not known.

    A peak price goes before one that holds at any time, the price of a larger prompt before both of a
    smaller one.

    Args:
        prices: all prices of a model.
        input_tokens: the size of the whole prompt, cached tokens included.
        when: the time of the call, with its zone.
    """
    when = when.astimezone(UTC)
    holding = [
        price
        for price in prices_on(prices, when.date())
        if price.min_input_tokens <= input_tokens and (price.peak is None or price.peak.hold_at(when))
    ]
    return max(holding, key=lambda price: (price.min_input_tokens, price.peak is not None), default=None)


def prices_between(prices: Sequence[Price], input_tokens: int, begin: datetime, end: datetime) -> list[Price]:
    """Return every price that can hold for a call of at most so many tokens, at some time of a period.

    Args:
        prices: all prices of a model.
        input_tokens: the most that the prompt may have.
        begin: the first moment, with its zone.
        end: the last one.

    Returns:
        The prices; none when any of them is not known.
    """
    sizes = {0, *(price.min_input_tokens for price in prices if price.min_input_tokens <= input_tokens)}
    found = [price_at(prices, size, moment) for moment in _changes(begin, end) for size in sizes]
    return [] if None in found else [price for price in found if price is not None]


def _changes(begin: datetime, end: datetime) -> list[datetime]:
    """The moments of a period at which a price may change: dates and peaks begin with an hour."""
    moments = [begin.astimezone(UTC)]
    hour = moments[0].replace(minute=0, second=0, microsecond=0)
    while (hour := hour + timedelta(hours=1)) <= end.astimezone(UTC):
        moments.append(hour)
    return moments


def _begin(price: Price) -> date:
    return price.effective or date.min
