"""Usage: what is counted, when it is written, and how it is summed; on both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.storage.database import Database
from peripety.errors import InvalidArgumentError, UnavailableError
from peripety.gateway.budgets.types import BudgetAmount, BudgetKind, BudgetScope
from peripety.gateway.calls.executor import CallRecord
from peripety.gateway.calls.rate_limiter import CallUsage
from peripety.gateway.models.call_cost import Cost
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Completion, StopReason, Usage, UsageTotal
from peripety.gateway.usage import UsageAggregator, UsageDimension, UsageGroup, UsageQuery, UsageStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.usage import UsageKey, UsageRow, UsageSums


NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
CALL = CallRecord(
    provider="openai",
    model="m-2026-01-31",
    conversation_id=None,
    outcome="OK",
    started_at=NOON,
    seconds=1.0,
    counted_usage=CallUsage(10, 5, 70),
    usage=Usage(10, 5, 4, 3, 2, 1),
    cost=Cost(70, 7),
)
ONCE = UsageTotal(1, CALL.usage, 70, 7)
FAILED = replace(
    CALL,
    outcome="PROVIDER_TIMEOUT",
    usage=Usage(),
    cost=None,
    counted_usage=CallUsage(20, 50, 900),
)
REFUSED = replace(CALL, outcome="PROVIDER_BUSY", usage=Usage(), cost=Cost(), counted_usage=CallUsage(0, 0))
HIT = Completion(
    ChatMessage.assistant("a"),
    None,
    Usage(),
    StopReason.END,
    "m",
    "openai",
    from_response_cache=True,
)


def book_of(store: UsageStore, pause: float = 3600) -> UsageAggregator:
    """Return an aggregator that writes on request or when it is closed."""
    return UsageAggregator(store, lambda: NOON, pause)


async def rows(book: UsageAggregator, *group_by: UsageDimension, **filters: Any) -> list[UsageRow]:
    return list((await book.page(UsageQuery(group_by=group_by, **filters), 0, "")).items)


async def test_calls_add_up(database: Database) -> None:
    book = book_of(UsageStore(database))
    for report in (CALL, CALL, REFUSED):
        book.add_call(report)
    await rows(book)
    book.add_call(CALL)
    (row,) = await rows(book)
    assert row.spent == replace(ONCE + ONCE + ONCE, calls=4)
    assert (row.group, row.hits) == (UsageGroup(), 0)
    await book.aclose()


async def test_a_server_that_gives_itself_an_endless_name_is_counted_like_any_other(
    database: Database,
) -> None:
    book = book_of(UsageStore(database))
    endless = "".join(sha256(bytes([number])).hexdigest() for number in range(200))
    book.add_call(replace(CALL, model=endless))
    book.add_hit(replace(HIT, model=endless), None)
    book.add_call(CALL)
    found = {row.group.model: (row.spent.calls, row.hits) for row in await rows(book, UsageDimension.MODEL)}
    assert found == {"m": (1, 0), endless[:256]: (1, 1)}
    await book.aclose()


async def test_without_any_call_there_is_one_sum_of_nothing(database: Database) -> None:
    book = book_of(UsageStore(database))
    (row,) = await rows(book)
    assert (row.spent, row.hits) == (UsageTotal(), 0)
    assert await rows(book, UsageDimension.MODEL) == []


async def test_one_call_of_unknown_cost_makes_the_cost_of_its_sums_unknown(database: Database) -> None:
    book = book_of(UsageStore(database))
    book.add_call(CALL)
    book.add_call(replace(FAILED, model="n"))
    by_model = {row.group.model: row.spent for row in await rows(book, UsageDimension.MODEL)}
    assert by_model == {"m": ONCE, "n": UsageTotal(1, Usage(), None, None)}
    (together,) = await rows(book)
    assert (together.spent.cost, together.spent.cache_savings) == (None, None)
    await book.aclose()


async def test_sums_are_grouped_and_ordered_as_asked(database: Database) -> None:
    book = book_of(UsageStore(database))
    for day, provider, conversation in ((1, "openai", "c"), (0, "openai", None), (0, "gemini", "c")):
        begun = NOON + timedelta(days=day)
        book.add_call(replace(CALL, started_at=begun, provider=provider, conversation_id=conversation))
    midnight = NOON.replace(hour=0)
    found = await rows(book, UsageDimension.DAY, UsageDimension.PROVIDER)
    assert [row.group for row in found] == [
        UsageGroup(provider="gemini", day=midnight),
        UsageGroup(provider="openai", day=midnight),
        UsageGroup(provider="openai", day=midnight + timedelta(days=1)),
    ]
    by_conversation = await rows(book, UsageDimension.CONVERSATION)
    assert [(row.group.conversation_id, row.spent.calls) for row in by_conversation] == [("", 1), ("c", 2)]
    await book.aclose()


@pytest.mark.parametrize(
    ("filters", "calls"),
    [
        ({}, 4),
        ({"provider": "openai"}, 3),
        ({"provider": "google"}, 1),
        ({"model": "m"}, 3),
        ({"model": "m-latest"}, 3),
        ({"conversation_id": "c"}, 1),
        ({"start": NOON}, 4),
        ({"start": NOON + timedelta(minutes=59)}, 4),
        ({"start": NOON + timedelta(hours=1)}, 1),
        ({"end": NOON}, 0),
        ({"end": NOON + timedelta(microseconds=1)}, 3),
        ({"end": NOON + timedelta(hours=1)}, 3),
        ({"start": datetime.min.replace(tzinfo=UTC), "end": datetime.max.replace(tzinfo=UTC)}, 4),
    ],
)
async def test_sums_are_of_what_was_asked_for(
    database: Database,
    filters: dict[str, Any],
    calls: int,
) -> None:
    book = book_of(UsageStore(database))
    book.add_call(CALL)
    book.add_call(replace(CALL, provider="gemini"))
    book.add_call(replace(CALL, model="n", conversation_id="c"))
    book.add_call(replace(CALL, started_at=NOON + timedelta(hours=1)))
    (row,) = await rows(book, **filters)
    assert row.spent.calls == calls
    await book.aclose()


async def test_many_rows_come_in_pages(database: Database) -> None:
    book = book_of(UsageStore(database))
    for number in range(5):
        book.add_call(replace(CALL, model=f"m{number}"))
    query, token, found = UsageQuery(group_by=(UsageDimension.MODEL,)), "", []
    for _ in range(3):
        page = await book.page(query, 2, token)
        found.append([row.group.model for row in page.items])
        token = page.next_page_token
    assert (found, token) == ([["m0", "m1"], ["m2", "m3"], ["m4"]], "")
    with pytest.raises(InvalidArgumentError, match="page_token"):
        await book.page(query, 2, "x")
    await book.aclose()


async def test_answers_from_the_response_cache_are_counted_and_are_no_calls(database: Database) -> None:
    book = book_of(UsageStore(database))
    book.add_call(replace(CALL, conversation_id="c"))
    book.add_hit(HIT, "c")
    book.add_hit(HIT, None)
    found = await rows(book, UsageDimension.CONVERSATION)
    assert [(row.group.conversation_id, row.spent.calls, row.hits) for row in found] == [
        ("", 0, 1),
        ("c", 1, 1),
    ]
    await book.aclose()


async def test_budgets_go_by_what_calls_may_have_used(database: Database) -> None:
    book = book_of(UsageStore(database))
    book.add_call(replace(CALL, conversation_id="c"))
    book.add_call(FAILED)
    book.add_call(replace(CALL, started_at=NOON + timedelta(hours=12)))
    conversation = BudgetScope(BudgetKind.CONVERSATION, "c", Budget())
    day = BudgetScope(BudgetKind.DAY, "2026-11-18", Budget())
    assert await book.get_usage(conversation) == BudgetAmount(1, 15, 70)
    assert await book.get_usage(day) == BudgetAmount(2, 85, 970)
    await book.aclose()


async def test_what_was_closed_is_found_after_a_restart(database_url: str) -> None:
    for calls in (1, 2):
        database = await Database.open(database_url)
        book = book_of(UsageStore(database))
        book.add_call(CALL)
        await book.aclose()
        (row,) = await rows(book)
        assert row.spent.calls == calls
        await database.close()


class Flaky(UsageStore):
    """Usage store that fails as scripted and records what was added."""

    def __init__(self, *failures: UnavailableError) -> None:
        self.failures = list(failures)
        self.written: dict[UsageKey, UsageSums] = {}
        self.batches = 0
        self.wrote = asyncio.Event()

    async def add(self, batch: Mapping[UsageKey, UsageSums]) -> None:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.batches += 1
        for key, sums in batch.items():
            self.written[key] = self.written[key] + sums if key in self.written else sums
        self.wrote.set()

    @property
    def calls(self) -> int:
        return sum(sums.spent.calls for sums in self.written.values())


DOWN = UnavailableError("x", code="STORAGE_UNAVAILABLE")


async def test_calls_are_written_together_a_while_after_they_ended() -> None:
    store = Flaky(DOWN)
    book = book_of(store, 0.001)
    for _ in range(1000):
        book.add_call(CALL)
    assert store.batches == 0
    async with asyncio.timeout(5):
        await store.wrote.wait()
    assert (store.calls, store.batches) == (1000, 1)
    book.add_call(CALL)
    await book.aclose()
    assert store.calls == 1001


async def test_while_the_database_fails_what_is_kept_has_bounds_and_loses_no_call() -> None:
    store = Flaky(DOWN)
    book = book_of(store)
    for number in range(10_500):
        book.add_call(replace(CALL, conversation_id=str(number)))
    with pytest.raises(UnavailableError):
        await book.get_usage(BudgetScope(BudgetKind.CONVERSATION, "c", Budget()))
    await book.aclose()
    assert store.calls == 10_500
    assert len(store.written) == 10_001


async def test_what_may_have_been_written_is_not_written_again() -> None:
    store = Flaky(UnavailableError("x", code="STORAGE_UNCERTAIN"))
    book = book_of(store)
    book.add_call(CALL)
    with pytest.raises(UnavailableError):
        await rows(book)
    await book.aclose()
    assert store.calls == 0


async def test_who_leaves_while_it_is_written_loses_nothing_and_doubles_nothing() -> None:
    store = Flaky()
    book = book_of(store)
    book.add_call(CALL)
    reading = asyncio.create_task(book.get_usage(BudgetScope(BudgetKind.CONVERSATION, "c", Budget())))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    await book.aclose()
    assert store.calls == 1
