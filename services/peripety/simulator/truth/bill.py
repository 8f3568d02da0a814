"""Cost of requests in pico-dollars, and accounts per key and model."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.state import Table
    from peripety.simulator.truth.models import Model

__all__ = ["Account", "Bill", "Ledger", "Line", "bill", "storage"]

SECONDS_PER_HOUR = 3600

_COUNTS = tuple(each.name for each in fields(Usage))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill.

    Attributes:
        what: `input`, `cache_read`, `cache_write_5m` (and other TTLs), `output` or `cache_storage`.
        tokens: the number of tokens.
        price: pico-dollars per token; for storage, per token and hour.
        amount: the total in pico-dollars.
    """

    what: str
    tokens: int
    price: int
    amount: int


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a request; without lines if the model has no price.

    Attributes:
        lines: the items with at least one token.
    """

    lines: tuple[Line, ...] = ()

    @property
    def total(self) -> int:
        """The total in pico-dollars."""
        return sum(line.amount for line in self.lines)


def bill(model: Model, usage: Usage, at: float) -> Bill:
    """Return the bill of a request that arrived at `at`, in seconds since 1970."""
    price = model.price(usage.input, at)
    if price is None:
        return Bill()
    items = [
        ("input", usage.fresh, price.input),
        ("cache_read", usage.read, price.read),
        *(
            (f"cache_write_{ttl}", count, price.written.get(ttl, price.input))
            for ttl, count in usage.written.items()
        ),
        ("output", usage.output, price.output),
    ]
    return Bill(tuple(Line(what, count, each, count * each) for what, count, each in items if count))


def storage(model: Model, tokens: int, seconds: float, at: float) -> Bill:
    """Return the storage cost of an explicit cache, rounded up; a negative time is a refund."""
    price = model.price(tokens, at)
    if price is None:
        return Bill()
    microseconds = round(seconds * 1_000_000)
    amount = -(-tokens * price.hour * microseconds // (SECONDS_PER_HOUR * 1_000_000))
    return Bill((Line("cache_storage", tokens, price.hour, amount),))


@dataclass(frozen=True, slots=True)
class Account:
    """The usage of one model by one key.

    Attributes:
        key: the fingerprint of the key.
        model: the model name, as requested.
        requests: number of answered requests.
        usage: their tokens.
        amount: their cost in pico-dollars.
    """

    key: str
    model: str
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    amount: int = 0


class Ledger:
    """Accounts of all keys.

    Args:
        table: the storage.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __iter__(self) -> Iterator[Account]:
        """Iterate over all accounts, by key and model."""
        for name in sorted(self._table):
            key, _, model = name.partition(" ")
            yield self.account(key, model)

    def account(self, key: str, model: str) -> Account:
        """Return the usage of a model by a key.

        Args:
            key: the fingerprint of the key.
            model: the model name.
        """
        row: dict[str, Any] = self._table.get(f"{key} {model}") or {}
        usage = Usage(**row.get("usage", {}))
        return Account(key, model, row.get("requests", 0), usage, row.get("amount", 0))

    def add(self, key: str, model: str, usage: Usage, charged: Bill) -> None:
        """Add an answered request."""
        known = self.account(key, model)
        self._put(replace(known, requests=known.requests + 1, usage=_sum(known.usage, usage)), charged)

    def charge(self, key: str, model: str, charged: Bill) -> None:
        """Add a cost without an answer."""
        self._put(self.account(key, model), charged)

    def _put(self, account: Account, charged: Bill) -> None:
        row = {
            "requests": account.requests,
            "usage": {name: getattr(account.usage, name) for name in _COUNTS},
            "amount": account.amount + charged.total,
        }
        self._table.put(f"{account.key} {account.model}", row)


def _sum(one: Usage, other: Usage) -> Usage:
    written = dict(one.written)
    for ttl, tokens in other.written.items():
        written[ttl] = written.get(ttl, 0) + tokens
    return Usage(
        fresh=one.fresh + other.fresh,
        read=one.read + other.read,
        written=written,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
    )
