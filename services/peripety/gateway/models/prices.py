"""Token prices of a model: by date, by prompt size and at peak hours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field

# One dollar per million tokens is a million pico-dollars (10^-12 dollars) per token.
_PICO_DOLLARS_PER_TOKEN = 1_000_000


def _pico_dollars(dollars_per_million: Any) -> int:
    if isinstance(dollars_per_million, bool) or not isinstance(dollars_per_million, int | Decimal):
        raise ValueError("must be a number of dollars for a million tokens")  # noqa: TRY004 - pydantic's way
    pico = dollars_per_million * _PICO_DOLLARS_PER_TOKEN
    if isinstance(pico, Decimal) and (not pico.is_finite() or pico != pico.to_integral_value()):
        raise ValueError("must have at most 6 decimals: a pico-dollar for each token is the smallest price")
    return int(pico)


PicoDollars = Annotated[int, BeforeValidator(_pico_dollars), Field(ge=0)]
"""Price per token in pico-dollars; in a file, in dollars per million tokens."""


@dataclass(frozen=True, slots=True)
class PeakHours:
    """Peak hours of a provider, in UTC.

    Attributes:
        weekdays: 1 is Monday, 7 is Sunday.
        hours: half-open ranges of hours.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    weekdays: tuple[Annotated[int, Field(ge=1, le=7)], ...]
    hours: tuple[tuple[Annotated[int, Field(ge=0, le=23)], Annotated[int, Field(ge=1, le=24)]], ...]

    def applies_at(self, when: datetime) -> bool:
        """Return True if `when`, in UTC, is in the peak hours."""
        return when.isoweekday() in self.weekdays and any(
            begin <= when.hour < end for begin, end in self.hours
        )


@dataclass(frozen=True, slots=True)
class Price:
    """Price per token in pico-dollars.

    Attributes:
        input: prompt token that is neither read from a cache nor written to one.
        output: answer token, reasoning included.
        cache_read: prompt token that is read from the cache.
        cache_write: prompt token that is written to the cache, by lifetime (`CacheRules.ttls`); empty if
            writing costs the input price.
        min_input_tokens: applies to prompts of at least this size.
        effective: first day of the price, in UTC; None if it always applied.
        peak: applies only in these hours; None for any time.
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
    def max_input_price(self) -> int:
        """Return the maximum cost of one prompt token, whatever the cache does."""
        return max(self.input, self.cache_read, *self.cache_write.values())


def prices_on(prices: Sequence[Price], day: date) -> list[Price]:
    """Return the prices of a day: only the newest price list in effect."""
    begun = [price for price in prices if _start_date(price) <= day]
    newest = max(map(_start_date, begun), default=None)
    return [price for price in begun if _start_date(price) == newest]


def price_at(prices: Sequence[Price], input_tokens: int, when: datetime) -> Price | None:
    """Return the applicable price; None if it is unknown.

    A peak price takes precedence over one for any time; the price of a larger prompt takes precedence over
    both for a smaller one.

    Args:
        prices: all prices of a model.
        input_tokens: size of the whole prompt, cached tokens included.
        when: time of the call, with time zone.
    """
    when = when.astimezone(UTC)
    holding = [
        price
        for price in prices_on(prices, when.date())
        if price.min_input_tokens <= input_tokens and (price.peak is None or price.peak.applies_at(when))
    ]
    return max(holding, key=lambda price: (price.min_input_tokens, price.peak is not None), default=None)


def prices_between(prices: Sequence[Price], input_tokens: int, begin: datetime, end: datetime) -> list[Price]:
    """Return every price that may apply to a call in a period.

    Args:
        prices: all prices of a model.
        input_tokens: maximum size of the prompt.
        begin: start of the period, with time zone.
        end: end of the period.

    Returns:
        The prices; empty if any of them is unknown.
    """
    sizes = {0, *(price.min_input_tokens for price in prices if price.min_input_tokens <= input_tokens)}
    found = [price_at(prices, size, moment) for moment in _change_times(begin, end) for size in sizes]
    return [] if None in found else [price for price in found if price is not None]


def _change_times(begin: datetime, end: datetime) -> list[datetime]:
    """Return the moments of a period at which a price may change.

    Dates and peak hours start at a full hour.
    """
    moments = [begin.astimezone(UTC)]
    hour = moments[0].replace(minute=0, second=0, microsecond=0)
    while (hour := hour + timedelta(hours=1)) <= end.astimezone(UTC):
        moments.append(hour)
    return moments


def _start_date(price: Price) -> date:
    return price.effective or date.min
