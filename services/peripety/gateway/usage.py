"""Usage statistics: tokens and cost per hour, provider, model and conversation.

Sums are collected in memory and written to the database in batches, off the path of calls. Single calls are
not stored.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Column, Index, Table, Text, func, insert, select, update

from peripety.core import logging_setup
from peripety.core.concurrency import wait_for_event
from peripety.core.storage.database import METADATA
from peripety.core.validation import Page, PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.errors import UnavailableError
from peripety.gateway.budgets.types import BudgetAmount, BudgetKind
from peripety.gateway.provider_selection import canonical_provider, family_of
from peripety.gateway.types.response import Usage, UsageTotal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.gateway.budgets.types import BudgetScope
    from peripety.gateway.calls.executor import CallRecord
    from peripety.gateway.types.response import Completion


_HOUR_SECONDS = 3600
_MAX_NAME_LENGTH = 256


class UsageDimension(Enum):
    """Dimension by which usage can be grouped."""

    PROVIDER = "provider"
    MODEL = "model"
    CONVERSATION = "conversation"
    DAY = "day"


class UsageKey(NamedTuple):
    """Key of one sum.

    Attributes:
        hour: hours since 1970.
        provider: the provider.
        model: the model family.
        conversation_id: the conversation; empty for none.
    """

    hour: int
    provider: str
    model: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class UsageSums:
    """Usage of one key.

    Attributes:
        spent: calls, tokens and cost.
        counted: what counts towards budgets; more than was spent where the actual usage is unknown.
        hits: answers from the response cache, without a call.
    """

    spent: UsageTotal = field(default_factory=UsageTotal)
    counted: BudgetAmount = field(default_factory=BudgetAmount)
    hits: int = 0

    def __add__(self, other: UsageSums) -> UsageSums:
        """Return the sum of both."""
        return UsageSums(self.spent + other.spent, self.counted + other.counted, self.hits + other.hits)


def to_hour(moment: datetime, rounding: Callable[[float], int] = floor) -> int:
    """Return the hour of a moment, or the next whole one, in hours since 1970."""
    return rounding(moment.timestamp() / _HOUR_SECONDS)


def usage_key(moment: datetime, provider: str, model: str, conversation_id: str | None) -> UsageKey:
    """Return the key of a moment, a model in its provider's spelling, and an optional conversation."""
    # A server may choose any name, and databases do not accept any text as a key.
    return UsageKey(to_hour(moment), provider, family_of(model)[:_MAX_NAME_LENGTH], conversation_id or "")


def to_sums(record: CallRecord) -> tuple[UsageKey, UsageSums]:
    """Return the usage of a call, with its key."""
    key = usage_key(record.started_at, record.provider, record.model, record.conversation_id)
    cost = record.cost
    spent = UsageTotal(
        1,
        record.usage,
        None if cost is None else cost.total,
        None if cost is None else cost.cache_savings,
    )
    counted = record.counted_usage
    return key, UsageSums(
        spent,
        BudgetAmount(1, counted.input_tokens + counted.output_tokens, counted.cost or 0),
    )


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Query of usage sums.

    Attributes:
        start: start of the period; None for the beginning. Times are widened to whole hours.
        end: end of the period, exclusive; None for now.
        group_by: one row per combination of these dimensions.
        provider: only this one; empty for all.
        model: only this one; empty for all.
        conversation_id: only this one; empty for all.
    """

    start: datetime | None = None
    end: datetime | None = None
    group_by: tuple[UsageDimension, ...] = ()
    provider: str = ""
    model: str = ""
    conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """Group of a row; only the requested dimensions are set.

    Attributes:
        provider: the provider.
        model: the model family.
        conversation_id: the conversation; empty for requests outside of one.
        day: the start of the day, in UTC.
    """

    provider: str = ""
    model: str = ""
    conversation_id: str = ""
    day: datetime | None = None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One sum.

    Attributes:
        group: its group.
        spent: calls, tokens and cost.
        hits: answers from the response cache, without a call.
    """

    group: UsageGroup
    spent: UsageTotal
    hits: int


_log = logging.getLogger(__name__)
_BATCH_SECONDS = 1.0
_MAX_PENDING = 10_000
_UNCERTAIN_CODE = "STORAGE_UNCERTAIN"


class UsageAggregator:
    """Aggregator of usage that is partly not written yet.

    Usage is written a second after it occurs, and on close; a crash loses the unwritten part. While the
    database fails, up to 10,000 sums are buffered and retried; beyond that, only the conversation of a call
    is dropped.

    Args:
        store: the table of sums.
        today: date and time, in UTC.
        pause: seconds between two batches.
    """

    def __init__(
        self,
        store: UsageStore,
        today: Callable[[], datetime],
        pause: float = _BATCH_SECONDS,
    ) -> None:
        self._store = store
        self._today = today
        self._pause = pause
        self._pending: dict[UsageKey, UsageSums] = {}
        self._closing = asyncio.Event()
        self._writing = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def add_call(self, record: CallRecord) -> None:
        """Add a call."""
        self._add(*to_sums(record))

    def add_hit(self, completion: Completion, conversation_id: str | None) -> None:
        """Add an answer without a model call."""
        key = usage_key(self._today(), completion.provider, completion.model, conversation_id)
        self._add(key, UsageSums(hits=1))

    async def get_usage(self, scope: BudgetScope) -> BudgetAmount:
        """Return the usage of a budget; see `UsageHistory.get_usage`."""
        await self._write()
        return await self._store.get_budget_usage(scope)

    async def page(self, query: UsageQuery, asked_size: int, token: str) -> Page[UsageRow]:
        """Return a page of sums, including all calls that have ended in this process.

        Raises:
            InvalidArgumentError: the size or the token is wrong.
            UnavailableError: the database cannot be used now.
        """
        size = resolve_page_size(asked_size)
        position = decode_page_token(token)
        offset = position.number if position else 0
        await self._write()
        found = await self._store.rows(query, offset, size + 1)
        return make_page(found, size, lambda _: PagePosition(offset + size))

    async def aclose(self) -> None:
        """Write all pending usage."""
        self._closing.set()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        try:
            await self._write()
        except UnavailableError as error:
            _log.error(
                "usage is lost",
                extra={"sums": len(self._pending), **logging_setup.describe_error(error)},
            )

    def _add(self, key: UsageKey, sums: UsageSums) -> None:
        if len(self._pending) >= _MAX_PENDING and key not in self._pending:
            key = key._replace(conversation_id="")
        self._pending[key] = self._pending.get(key, UsageSums()) + sums
        if self._writer is None and not self._closing.is_set():
            self._writer = asyncio.create_task(self._write_periodically())

    async def _write_periodically(self) -> None:
        try:
            while self._pending and not self._closing.is_set():
                await wait_for_event(self._closing, self._pause)
                try:
                    await self._write()
                except UnavailableError as error:
                    _log.warning("usage cannot be written", extra=logging_setup.describe_error(error))
        finally:
            self._writer = None

    async def _write(self) -> None:
        """Write the pending sums, even if the waiting caller is cancelled."""
        await asyncio.shield(asyncio.ensure_future(self._write_pending()))

    async def _write_pending(self) -> None:
        async with self._writing:
            batch, self._pending = self._pending, {}
            if not batch:
                return
            try:
                await self._store.add(batch)
            except UnavailableError as error:
                # A batch that may have been written is not retried, because sums would count it twice.
                if error.code != _UNCERTAIN_CODE:
                    for key, sums in batch.items():
                        self._pending[key] = self._pending.get(key, UsageSums()) + sums
                raise


_AMOUNTS = (
    "calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "long_cache_write_tokens",
    "cost",
    "cache_savings",
    "calls_of_unknown_cost",
    "counted_tokens",
    "counted_cost",
    "hits",
)
_usage_table = Table(
    "gateway_usage",
    METADATA,
    Column("hour", BigInteger, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("conversation_id", Text, primary_key=True),
    *(Column(name, BigInteger, nullable=False) for name in _AMOUNTS),
    Index("gateway_usage_of_conversation", "conversation_id"),
)
_HOURS_PER_DAY = 24
_DIMENSIONS: dict[UsageDimension, ColumnElement[Any]] = {
    UsageDimension.PROVIDER: _usage_table.c.provider,
    UsageDimension.MODEL: _usage_table.c.model,
    UsageDimension.CONVERSATION: _usage_table.c.conversation_id,
    UsageDimension.DAY: _usage_table.c.hour // _HOURS_PER_DAY,
}


class UsageStore:
    """Table of sums. It grows with the hours in which a conversation or a model was used, not with calls.

    Args:
        database: the database of the process.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, batch: Mapping[UsageKey, UsageSums]) -> None:
        """Add to sums, atomically.

        Raises:
            UnavailableError: the database cannot be written now.
        """
        async with self._database.write("usage") as connection:
            for key, sums in batch.items():
                await _add(connection, key, sums)

    async def rows(self, query: UsageQuery, offset: int, limit: int) -> list[UsageRow]:
        """Return sums, ordered by the requested dimensions.

        Raises:
            UnavailableError: the database cannot be read now.
        """
        groups = [_DIMENSIONS[each].label(f"by_{each.value}") for each in query.group_by]
        sums = [func.coalesce(func.sum(_usage_table.c[name]), 0).label(name) for name in _AMOUNTS]
        asked = select(*groups, *sums).where(*_conditions(query)).offset(offset).limit(limit)
        if groups:
            asked = asked.group_by(*groups).order_by(*groups)
        async with self._database.read() as connection:
            found = await connection.execute(asked)
            return [_to_usage_row(row, query.group_by) for row in found.mappings()]

    async def get_budget_usage(self, scope: BudgetScope) -> BudgetAmount:
        """Return the usage that counts towards a budget.

        Raises:
            UnavailableError: the database cannot be read now.
        """
        names = ("calls", "counted_tokens", "counted_cost")
        asked = select(*(func.coalesce(func.sum(_usage_table.c[name]), 0) for name in names)).where(
            _scope_condition(scope),
        )
        async with self._database.read() as connection:
            row = (await connection.execute(asked)).one()
        return BudgetAmount(*map(int, row))


async def _add(connection: AsyncConnection, key: UsageKey, sums: UsageSums) -> None:
    where = [_usage_table.c[name] == value for name, value in key._asdict().items()]
    amounts = _to_columns(sums)
    added = await connection.execute(
        update(_usage_table)
        .where(*where)
        .values({name: _usage_table.c[name] + amount for name, amount in amounts.items()}),
    )
    if not added.rowcount:
        await connection.execute(insert(_usage_table).values(key._asdict() | amounts))


def _to_columns(sums: UsageSums) -> dict[str, int]:
    spent, usage = sums.spent, sums.spent.usage
    amounts = (
        spent.calls,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        usage.long_cache_write_tokens,
        spent.cost or 0,
        spent.cache_savings or 0,
        spent.calls if spent.cost is None else 0,
        sums.counted.tokens,
        sums.counted.cost,
        sums.hits,
    )
    return dict(zip(_AMOUNTS, amounts, strict=True))


def _to_usage_row(row: RowMapping, group_by: tuple[UsageDimension, ...]) -> UsageRow:
    # A sum is a Decimal in one database and an int in the other.
    amounts = {name: int(row[name]) for name in _AMOUNTS}
    known = not amounts["calls_of_unknown_cost"]
    usage = Usage(**{name: amount for name, amount in amounts.items() if name in Usage.__slots__})
    spent = UsageTotal(
        amounts["calls"],
        usage,
        amounts["cost"] if known else None,
        amounts["cache_savings"] if known else None,
    )
    found = {each: row[f"by_{each.value}"] for each in group_by}
    day = found.get(UsageDimension.DAY)
    group = UsageGroup(
        provider=found.get(UsageDimension.PROVIDER, ""),
        model=found.get(UsageDimension.MODEL, ""),
        conversation_id=found.get(UsageDimension.CONVERSATION, ""),
        day=None if day is None else datetime.fromtimestamp(0, UTC) + timedelta(days=int(day)),
    )
    return UsageRow(group, spent, amounts["hits"])


def _conditions(query: UsageQuery) -> list[ColumnElement[bool]]:
    conditions = []
    if query.start is not None:
        conditions.append(_usage_table.c.hour >= to_hour(query.start))
    if query.end is not None:
        conditions.append(_usage_table.c.hour < to_hour(query.end, ceil))
    if query.provider:
        conditions.append(_usage_table.c.provider == canonical_provider(query.provider))
    if query.model:
        conditions.append(_usage_table.c.model == family_of(query.model))
    if query.conversation_id:
        conditions.append(_usage_table.c.conversation_id == query.conversation_id)
    return conditions


def _scope_condition(scope: BudgetScope) -> ColumnElement[bool]:
    """Return the condition for the sums of a budget."""
    if scope.kind is BudgetKind.CONVERSATION:
        return _usage_table.c.conversation_id == scope.name
    first = to_hour(datetime.fromisoformat(scope.name).replace(tzinfo=UTC))
    return _usage_table.c.hour.between(first, first + _HOURS_PER_DAY - 1)
