"""What a request costs, to the pico-dollar, and who owes how much."""

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
        tokens: how many.
        price: pico-dollars for each; for storage, for each and hour.
        amount: pico-dollars in all.
    """

    what: str
    tokens: int
    price: int
    amount: int


@dataclass(frozen=True, slots=True)
class Bill:
    """What something costs; no lines where the model has no price.

    Attributes:
        lines: what is counted, without what there is none of.
    """

    lines: tuple[Line, ...] = ()

    @property
    def total(self) -> int:
        """The sum, in pico-dollars."""
        return sum(line.amount for line in self.lines)


def bill(model: Model, usage: Usage, at: float) -> Bill:
    """What a request costs that came in at `at`, in seconds since 1970."""
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
    """What keeping an explicit cache costs, begun pico-dollars in full; less than no time is paid back."""
    price = model.price(tokens, at)
    if price is None:
        return Bill()
    microseconds = round(seconds * 1_000_000)
    amount = -(-tokens * price.hour * microseconds // (SECONDS_PER_HOUR * 1_000_000))
    return Bill((Line("cache_storage", tokens, price.hour, amount),))


@dataclass(frozen=True, slots=True)
class Account:
    """What one key has used of one model.

    Attributes:
        key: the key's fingerprint.
        model: the model's name, as asked for.
        requests: how many were answered.
        usage: their tokens.
        amount: what they cost, in pico-dollars.
    """

    key: str
    model: str
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    amount: int = 0


class Ledger:
    """What every key has used.

    Args:
        table: keeps the accounts.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __iter__(self) -> Iterator[Account]:
        """Iterate over all accounts, by key and model."""
        for name in sorted(self._table):
            key, _, model = name.partition(" ")
            yield self.account(key, model)

    def account(self, key: str, model: str) -> Account:
        """What a key has used of a model.

        Args:
            key: the key's fingerprint.
            model: its name.
        """
        row: dict[str, Any] = self._table.get(f"{key} {model}") or {}
        usage = Usage(**row.get("usage", {}))
        return Account(key, model, row.get("requests", 0), usage, row.get("amount", 0))

    def add(self, key: str, model: str, usage: Usage, charged: Bill) -> None:
        """Enter a request that was answered."""
        known = self.account(key, model)
        self._put(replace(known, requests=known.requests + 1, usage=_sum(known.usage, usage)), charged)

    def charge(self, key: str, model: str, charged: Bill) -> None:
        """Enter what costs something though it is no answer."""
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
