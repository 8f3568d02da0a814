"""Dated model data from `models.toml`: accepted requests, cache rules and prices; and the token count.

The simulator counts one token for four bytes of UTF-8, for any model.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


# One dollar per million tokens is a million pico-dollars per token.
PICO_PER_TOKEN = 1_000_000
MAX_CACHED_NAMES = 4096


class CacheFamily(StrEnum):
    """Families of cache rules."""

    NONE = "none"
    ANTHROPIC = "anthropic"
    OPENAI_AUTOMATIC = "openai_automatic"
    OPENAI_BREAKPOINTS = "openai_breakpoints"
    DEEPSEEK = "deepseek"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True)
class SimCacheRules:
    """Cache rules of a model; 0 if a family does not have a rule.

    Attributes:
        family: the family.
        ttls: the lifetimes of entries in seconds, by the provider's name; the first is the default.
        writes: the price of a written token as a multiple of a fresh one, by TTL; empty for no surcharge.
        minimum: shortest prefix that is cached, in tokens.
        step: prefixes are compared at multiples of this number of tokens.
        breakpoints: maximum number of breakpoints that one request writes.
        positions: number of positions that a breakpoint looks back over, including its own.
        candidates: number of the latest breakpoints that are looked up.
        interval: long prompts are stored at multiples of this number of tokens.
        spill: requests of one prefix per minute that stay on one machine.
    """

    family: CacheFamily
    ttls: Mapping[str, int] = field(default_factory=dict)
    writes: Mapping[str, Decimal] = field(default_factory=dict)
    minimum: int = 0
    step: int = 0
    breakpoints: int = 0
    positions: int = 0
    candidates: int = 0
    interval: int = 0
    spill: int = 0

    @property
    def default_ttl(self) -> str:
        """The TTL of requests that do not set one."""
        return next(iter(self.ttls), "")


@dataclass(frozen=True, slots=True)
class ModelFeatures:
    """Features that a model accepts in a request; a request with another feature is invalid.

    Attributes:
        system_messages: the role `system` among the messages.
        forced_tools: a tool choice that forces a tool.
        prefill: a final assistant message to continue.
        sampling: temperature and similar parameters with non-default values; for OpenAI also the old
            `max_tokens`.
        reasoning: a request for reasoning, or its effort.
        no_reasoning: a request for no reasoning.
        json_schema: a schema for the answer.
        unsigned_calls: earlier tool calls of the model without their signatures.
    """

    system_messages: bool = False
    forced_tools: bool = True
    prefill: bool = True
    sampling: bool = True
    reasoning: bool = True
    no_reasoning: bool = True
    json_schema: bool = True
    unsigned_calls: bool = True


@dataclass(frozen=True, slots=True)
class PeakHours:
    """Peak price hours, in UTC.

    Attributes:
        weekdays: 0 is Monday.
        hours: pairs of first hour and end hour, exclusive.
    """

    weekdays: tuple[int, ...]
    hours: tuple[tuple[int, int], ...]

    def is_peak(self, at: datetime) -> bool:
        """Return True at peak time."""
        return at.weekday() in self.weekdays and any(begin <= at.hour < end for begin, end in self.hours)


@dataclass(frozen=True, slots=True)
class SimPrice:
    """Token prices, in pico-dollars per token.

    Attributes:
        input: a fresh input token.
        read: a token read from the cache.
        written: a token written to the cache, by TTL; the price of a fresh one if absent.
        output: an output token.
        hour: storage of a token in an explicit cache for an hour.
        effective_from: start of validity, in seconds since 1970.
        over: applies to prompts of more tokens than this.
        peak: applies in peak hours.
    """

    input: int
    output: int
    read: int
    written: Mapping[str, int] = field(default_factory=dict)
    hour: int = 0
    effective_from: float = float("-inf")
    over: int = -1
    peak: bool = False


@dataclass(frozen=True, slots=True)
class SimModel:
    """Data of a model.

    Attributes:
        name: the model name in requests.
        apis: the APIs that serve it.
        names: globs over model names; names without wildcards are listed.
        released: the release date, if known.
        context: maximum number of input tokens; None for no limit.
        output: maximum number of output tokens that may be requested; None for no limit.
        takes: the accepted features.
        cache: the cache rules.
        prices: the prices; empty for a free model.
        peak: the peak hours.
    """

    name: str
    apis: tuple[Api, ...]
    names: tuple[str, ...]
    cache: SimCacheRules
    released: date | None = None
    context: int | None = None
    output: int | None = None
    takes: ModelFeatures = field(default_factory=ModelFeatures)
    prices: tuple[SimPrice, ...] = ()
    peak: PeakHours | None = None

    def price_for(self, prompt_tokens: int, at: float) -> SimPrice | None:
        """Return the price of a request.

        Args:
            prompt_tokens: all input tokens, cached or not; they select the row.
            at: the time of the request, in seconds since 1970. Before the first date, the first prices apply.
        """
        if not self.prices:
            return None
        since = max(
            (price.effective_from for price in self.prices if price.effective_from <= at),
            default=min(price.effective_from for price in self.prices),
        )
        peak = self.peak is not None and self.peak.is_peak(datetime.fromtimestamp(at, UTC))
        fitting = [
            price
            for price in self.prices
            if price.effective_from == since and price.over < prompt_tokens and price.peak <= peak
        ]
        return max(fitting, key=lambda price: (price.peak, price.over))


class SimModels:
    """Data of all models, in lookup order.

    Args:
        cards: the models; the last one of each API must match every name.
    """

    def __init__(self, cards: tuple[SimModel, ...]) -> None:
        self._models = cards
        # Callers choose the names, so the cache is bounded.
        self._cached_models = lru_cache(MAX_CACHED_NAMES)(self._search)

    def find(self, name: str, api: Api) -> SimModel:
        """Return the data of a model; any name is valid."""
        return self._cached_models(name, api)

    def models_of(self, api: Api) -> tuple[SimModel, ...]:
        """Return the models that an API lists."""
        return tuple(
            replace(card, name=name)
            for card in self._models
            for name in card.names
            if api in card.apis and not _is_glob(name)
        )

    def _search(self, name: str, api: Api) -> SimModel:
        for card in self._models:
            if api in card.apis and any(fnmatchcase(name, glob) for glob in card.names):
                return replace(card, name=name)
        raise LookupError(
            f"no model data for {api} matches {name!r}: the last entry of an API must match every name",
        )


@cache
def load_models() -> SimModels:
    """Return the models of `models.toml`."""
    text = resources.files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text, parse_float=Decimal)
    rules = {name: _parse_rules(name, values) for name, values in data["caches"].items()}
    peaks = {
        name: PeakHours(tuple(values["weekdays"]), tuple((begin, end) for begin, end in values["hours"]))
        for name, values in data["peak"].items()
    }
    return SimModels(tuple(_parse_model(values, rules, peaks) for values in data["models"]))


def _parse_rules(family: str, values: Mapping[str, Any]) -> SimCacheRules:
    writes = {ttl: Decimal(factor) for ttl, factor in values.get("writes", {}).items()}
    return SimCacheRules(CacheFamily(family), **{**values, "writes": writes})


def _parse_model(
    values: dict[str, Any],
    rules: Mapping[str, SimCacheRules],
    peaks: Mapping[str, PeakHours],
) -> SimModel:
    values = dict(values)
    own = dict(values.pop("cache"))
    cached = replace(rules[own.pop("rules")], **own)
    prices = tuple(_parse_price(row, cached.writes) for row in values.pop("prices", ()))
    peak = values.pop("peak", None)
    names = tuple(values.pop("names"))
    return SimModel(
        name=names[0],
        apis=tuple(map(Api, values.pop("apis"))),
        names=names,
        cache=cached,
        takes=ModelFeatures(**values.pop("takes", {})),
        prices=prices,
        peak=peaks[peak] if peak else None,
        **values,
    )


def _parse_price(row: dict[str, Any], writes: Mapping[str, Decimal]) -> SimPrice:
    row = dict(row)
    since = row.pop("from", None)
    if since is not None:
        row["effective_from"] = datetime.combine(since, time(), UTC).timestamp()
    money = {name: row.pop(name) for name in ("input", "output", "read", "hour") if name in row}
    written = {ttl: _to_pico_dollars(money["input"] * factor) for ttl, factor in writes.items()}
    return SimPrice(
        **row | {name: _to_pico_dollars(dollars) for name, dollars in money.items()},
        written=written,
    )


def _to_pico_dollars(dollars_per_million: Decimal | int) -> int:
    pico = Decimal(dollars_per_million) * PICO_PER_TOKEN
    if pico != int(pico):
        raise ValueError(
            f"${dollars_per_million} per million tokens is not a whole number of pico-dollars per token",
        )
    return int(pico)


def _is_glob(name: str) -> bool:
    return any(character in name for character in "*?[")


BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text; equal to `len(pieces(text))` without splitting it."""
    return -(-_byte_size(text) // BYTES_PER_TOKEN)


def split_tokens(text: str) -> tuple[str, ...]:
    """Split a text into tokens. Joined, they are the text, and no character is split.

    A token ends with the last character that ends within its four bytes; the rest of the bytes belongs to the
    next token.
    """
    if text.isascii():
        return tuple(text[at : at + BYTES_PER_TOKEN] for at in range(0, len(text), BYTES_PER_TOKEN))
    found: list[str] = []
    begin = size = 0
    for at, character in enumerate(text):
        size += _byte_size(character)
        if size > BYTES_PER_TOKEN * (len(found) + 1):
            found.append(text[begin:at])
            begin = at
    return (*found, text[begin:])


def token_shares(parts: Iterable[str]) -> Iterator[int]:
    """Yield the number of tokens that each part of a text adds.

    The sum is the count of the whole text.
    """
    size = 0
    for part in parts:
        before = size
        size += _byte_size(part)
        yield -(-size // BYTES_PER_TOKEN) + (-before // BYTES_PER_TOKEN)


def _byte_size(text: str) -> int:
    # JSON can contain lone surrogates, which must be countable.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
