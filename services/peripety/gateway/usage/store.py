"""Usage in the database of the process: a row for each hour, provider, model and conversation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Index, Table, Text, func, insert, select, update

from peripety.gateway.calling.budgets import Amount, BudgetKind
from peripety.gateway.catalogue.names import class_of, provider_named
from peripety.gateway.model import Spent, Usage
from peripety.gateway.usage.model import Dimension, Group, UsageRow, hour_of
from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.gateway.calling.budgets import Scope
    from peripety.gateway.usage.model import Sums, UsageKey, UsageQuery
    from peripety.storage import Database

__all__ = ["UsageStore"]

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
_usage = Table(
    "gateway_usage",
    METADATA,
    Column("hour", BigInteger, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("conversation_id", Text, primary_key=True),
    *(Column(name, BigInteger, nullable=False) for name in _AMOUNTS),
    Index("gateway_usage_of_conversation", "conversation_id"),
)
_HOURS = 24
_DIMENSIONS: dict[Dimension, ColumnElement[Any]] = {
    Dimension.PROVIDER: _usage.c.provider,
    Dimension.MODEL: _usage.c.model,
    Dimension.CONVERSATION: _usage.c.conversation_id,
    Dimension.DAY: _usage.c.hour // _HOURS,
}


class UsageStore:
    """Table of sums. It grows with the hours in which a conversation or a model was used, not with calls.

    Args:
        database: the database of the process.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, batch: Mapping[UsageKey, Sums]) -> None:
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
        sums = [func.coalesce(func.sum(_usage.c[name]), 0).label(name) for name in _AMOUNTS]
        asked = select(*groups, *sums).where(*_conditions(query)).offset(offset).limit(limit)
        if groups:
            asked = asked.group_by(*groups).order_by(*groups)
        async with self._database.read() as connection:
            found = await connection.execute(asked)
            return [_row(row, query.group_by) for row in found.mappings()]

    async def counted(self, scope: Scope) -> Amount:
        """Return the usage that counts towards a budget.

        Raises:
            UnavailableError: the database cannot be read now.
        """
        names = ("calls", "counted_tokens", "counted_cost")
        asked = select(*(func.coalesce(func.sum(_usage.c[name]), 0) for name in names)).where(_within(scope))
        async with self._database.read() as connection:
            row = (await connection.execute(asked)).one()
        return Amount(*map(int, row))


async def _add(connection: AsyncConnection, key: UsageKey, sums: Sums) -> None:
    where = [_usage.c[name] == value for name, value in key._asdict().items()]
    amounts = _amounts(sums)
    added = await connection.execute(
        update(_usage)
        .where(*where)
        .values({name: _usage.c[name] + amount for name, amount in amounts.items()})
    )
    if not added.rowcount:
        await connection.execute(insert(_usage).values(key._asdict() | amounts))


def _amounts(sums: Sums) -> dict[str, int]:
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


def _row(row: RowMapping, group_by: tuple[Dimension, ...]) -> UsageRow:
    # A sum is a Decimal in one database and an int in the other.
    amounts = {name: int(row[name]) for name in _AMOUNTS}
    known = not amounts["calls_of_unknown_cost"]
    usage = Usage(**{name: amount for name, amount in amounts.items() if name in Usage.__slots__})
    spent = Spent(
        amounts["calls"],
        usage,
        amounts["cost"] if known else None,
        amounts["cache_savings"] if known else None,
    )
    found = {each: row[f"by_{each.value}"] for each in group_by}
    day = found.get(Dimension.DAY)
    group = Group(
        provider=found.get(Dimension.PROVIDER, ""),
        model=found.get(Dimension.MODEL, ""),
        conversation_id=found.get(Dimension.CONVERSATION, ""),
        day=None if day is None else datetime.fromtimestamp(0, UTC) + timedelta(days=int(day)),
    )
    return UsageRow(group, spent, amounts["hits"])


def _conditions(query: UsageQuery) -> list[ColumnElement[bool]]:
    conditions = []
    if query.start is not None:
        conditions.append(_usage.c.hour >= hour_of(query.start))
    if query.end is not None:
        conditions.append(_usage.c.hour < hour_of(query.end, ceil))
    if query.provider:
        conditions.append(_usage.c.provider == provider_named(query.provider))
    if query.model:
        conditions.append(_usage.c.model == class_of(query.model))
    if query.conversation_id:
        conditions.append(_usage.c.conversation_id == query.conversation_id)
    return conditions


def _within(scope: Scope) -> ColumnElement[bool]:
    """Return the condition for the sums of a budget."""
    if scope.kind is BudgetKind.CONVERSATION:
        return _usage.c.conversation_id == scope.name
    first = hour_of(datetime.fromisoformat(scope.name).replace(tzinfo=UTC))
    return _usage.c.hour.between(first, first + _HOURS - 1)
