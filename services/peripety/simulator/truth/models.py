"""What is known of models, from `models.toml`: what they take, how they are cached, what they cost."""

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

from peripety.simulator.model import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CacheRules", "Family", "Model", "Models", "Peak", "Price", "Takes", "catalogue"]

# A dollar for a million tokens is a million pico-dollars for each.
PICO_PER_TOKEN = 1_000_000
NAMES_REMEMBERED = 4096


class Family(StrEnum):
    """The ways in which prompts are cached."""

    NONE = "none"
    ANTHROPIC = "anthropic"
    OPENAI_AUTOMATIC = "openai_automatic"
    OPENAI_BREAKPOINTS = "openai_breakpoints"
    DEEPSEEK = "deepseek"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How a model's prompts are cached; 0 is where a family has no such rule.

    Attributes:
        family: the way.
        ttls: how long entries live, in seconds, by the provider's name of it; the first is the default.
        writes: what writing a token costs, as a multiple of a fresh one, by TTL; empty is nothing extra.
        minimum: prefixes of fewer tokens are not cached.
        step: prefixes are compared at multiples of so many tokens.
        breakpoints: how many of them one request may write.
        positions: how many positions a breakpoint looks back over, its own included.
        candidates: how many of the latest breakpoints are looked up.
        interval: long prompts are stored at multiples of so many tokens.
        spill: so many requests of one prefix in a minute stay on one machine.
    """

    family: Family
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
        """The TTL of who asks for none."""
        return next(iter(self.ttls), "")


@dataclass(frozen=True, slots=True)
class Takes:
    """What a model takes in a request; what it does not take is an invalid request.

    Attributes:
        system_messages: the role `system` among the messages.
        forced_tools: a tool choice that leaves no choice.
        prefill: a last message of the assistant's, to be continued.
        sampling: temperature and the like, other than their defaults; with OpenAI, also the old `max_tokens`.
        reasoning: the wish that it reasons, or how much.
        no_reasoning: the wish that it does not reason.
        json_schema: a schema that the answer has to follow.
        unsigned_calls: its own calls in the history without the signatures it gave them.
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
class Peak:
    """When peak prices hold, in UTC.

    Attributes:
        weekdays: 0 is Monday.
        hours: from each first hour to before each second one.
    """

    weekdays: tuple[int, ...]
    hours: tuple[tuple[int, int], ...]

    def holds(self, at: datetime) -> bool:
        """Whether it is peak time."""
        return at.weekday() in self.weekdays and any(begin <= at.hour < end for begin, end in self.hours)


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost, in pico-dollars each.

    Attributes:
        input: a fresh input token.
        read: one read from the cache.
        written: one written to the cache, by TTL; where nothing is named, as a fresh one.
        output: an output token.
        hour: keeping a token in an explicit cache for an hour.
        effective_from: since when, in seconds since 1970.
        over: for prompts of more tokens than this.
        peak: in peak hours.
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
class Model:
    """A model's card.

    Attributes:
        name: what it is called, by who asks for it.
        apis: the APIs it is asked by.
        names: globs over the names it is found by; those that are no globs are listed.
        released: since when there is the model, where that is known.
        context: the most input tokens it reads; None is no limit.
        output: the most output tokens it may be asked for; None is no limit.
        takes: what it takes.
        cache: how its prompts are cached.
        prices: what it costs; empty is nothing.
        peak: when its peak prices hold.
    """

    name: str
    apis: tuple[Api, ...]
    names: tuple[str, ...]
    cache: CacheRules
    released: date | None = None
    context: int | None = None
    output: int | None = None
    takes: Takes = field(default_factory=Takes)
    prices: tuple[Price, ...] = ()
    peak: Peak | None = None

    def price(self, prompt_tokens: int, at: float) -> Price | None:
        """What a request costs.

        Args:
            prompt_tokens: all its input tokens, cached or not; it is these that choose the row.
            at: when it came in, in seconds since 1970. Before the first date there is, the first prices hold.
        """
        if not self.prices:
            return None
        since = max(
            (price.effective_from for price in self.prices if price.effective_from <= at),
            default=min(price.effective_from for price in self.prices),
        )
        peak = self.peak is not None and self.peak.holds(datetime.fromtimestamp(at, UTC))
        fitting = [
            price
            for price in self.prices
            if price.effective_from == since and price.over < prompt_tokens and price.peak <= peak
        ]
        return max(fitting, key=lambda price: (price.peak, price.over))


class Models:
    """All cards, in the order in which they are tried.

    Args:
        cards: the last one of each API has to fit every name.
    """

    def __init__(self, cards: tuple[Model, ...]) -> None:
        self._cards = cards
        # Names are the callers': only so many are remembered.
        self._found = lru_cache(NAMES_REMEMBERED)(self._search)

    def find(self, name: str, api: Api) -> Model:
        """The card of a model, which may have any name."""
        return self._found(name, api)

    def of(self, api: Api) -> tuple[Model, ...]:
        """The models an API lists."""
        return tuple(
            replace(card, name=name)
            for card in self._cards
            for name in card.names
            if api in card.apis and not _is_glob(name)
        )

    def _search(self, name: str, api: Api) -> Model:
        for card in self._cards:
            if api in card.apis and any(fnmatchcase(name, glob) for glob in card.names):
                return replace(card, name=name)
        raise LookupError(
            f"no model data for {api} matches {name!r}: the last entry of an API must match every name"
        )


@cache
def catalogue() -> Models:
    """The models of `models.toml`."""
    text = resources.files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text, parse_float=Decimal)
    rules = {name: _rules(name, values) for name, values in data["caches"].items()}
    peaks = {
        name: Peak(tuple(values["weekdays"]), tuple((begin, end) for begin, end in values["hours"]))
        for name, values in data["peak"].items()
    }
    return Models(tuple(_card(values, rules, peaks) for values in data["models"]))


def _rules(family: str, values: Mapping[str, Any]) -> CacheRules:
    writes = {ttl: Decimal(factor) for ttl, factor in values.get("writes", {}).items()}
    return CacheRules(Family(family), **{**values, "writes": writes})


def _card(values: dict[str, Any], rules: Mapping[str, CacheRules], peaks: Mapping[str, Peak]) -> Model:
    values = dict(values)
    own = dict(values.pop("cache"))
    cached = replace(rules[own.pop("rules")], **own)
    prices = tuple(_price(row, cached.writes) for row in values.pop("prices", ()))
    peak = values.pop("peak", None)
    names = tuple(values.pop("names"))
    return Model(
        name=names[0],
        apis=tuple(map(Api, values.pop("apis"))),
        names=names,
        cache=cached,
        takes=Takes(**values.pop("takes", {})),
        prices=prices,
        peak=peaks[peak] if peak else None,
        **values,
    )


def _price(row: dict[str, Any], writes: Mapping[str, Decimal]) -> Price:
    row = dict(row)
    since = row.pop("from", None)
    if since is not None:
        row["effective_from"] = datetime.combine(since, time(), UTC).timestamp()
    money = {name: row.pop(name) for name in ("input", "output", "read", "hour") if name in row}
    written = {ttl: _pico(money["input"] * factor) for ttl, factor in writes.items()}
    return Price(**row | {name: _pico(dollars) for name, dollars in money.items()}, written=written)


def _pico(dollars_per_million: Decimal | int) -> int:
    pico = Decimal(dollars_per_million) * PICO_PER_TOKEN
    if pico != int(pico):
        raise ValueError(
            f"${dollars_per_million} per million tokens is not a whole number of pico-dollars per token"
        )
    return int(pico)


def _is_glob(name: str) -> bool:
    return any(character in name for character in "*?[")
