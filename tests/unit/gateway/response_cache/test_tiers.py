"""Serialization and replay of answers.

Storage of answers: bounds of bytes and of age, restarts, and disks that fail.

Answers stored on a Redis server: shared by all replicas, with an expiry, and optional for every answer.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from sqlalchemy.exc import StatementError

from peripety.core.redis_server import RedisServer
from peripety.core.storage.database import Database
from peripety.errors import Finding, Severity, UnavailableError
from peripety.gateway.response_cache.tiers import (
    ENTRY_OVERHEAD_BYTES,
    ROW_OVERHEAD_BYTES,
    DatabaseTier,
    MemoryTier,
    RedisTier,
    ResponseCache,
    StoredAnswer,
    decode_answer,
    encode_answer,
    is_storable,
    replay_answer,
    without_usage,
)
from peripety.gateway.types.message import ChatMessage, ChatRole, ProviderState, Reasoning, Text, ToolCall
from peripety.gateway.types.response import (
    Completed,
    Completion,
    ReasoningDelta,
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from support.gateway.fake_gateway import answer
from support.servers.databases import RedisProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


FINDINGS = (Finding("CODE", "/a", "why"), Finding("OTHER", "", "why not", Severity.WARNING))
PARTS = (
    ProviderState("p", b"\x00\xff"),
    Text("é😀\ud800" * 700),
    Reasoning("why"),
    ToolCall("c", "t:1", '{"a": 1}'),
)
ANSWER = Completion(
    ChatMessage(ChatRole.ASSISTANT, PARTS),
    {"a": [1, 1.0, None]},
    Usage(1, 2, 3, 4),
    StopReason.END,
    "m",
    "p",
    True,
    FINDINGS,
    2,
    schema_report=SchemaReport(SchemaMethod.NATIVE, FINDINGS),
)


def test_an_answer_comes_back_as_it_was_without_its_cost() -> None:
    assert decode_answer(encode_answer(ANSWER)) == replace(
        ANSWER,
        usage=Usage(),
        cost=0,
        cache_savings=0,
        calls=0,
        from_response_cache=True,
    )
    assert decode_answer(encode_answer(ANSWER)) == without_usage(ANSWER)
    without = replace(ANSWER, schema_report=None)
    assert decode_answer(encode_answer(without)) == without_usage(without)
    assert isinstance(decode_answer(encode_answer(ANSWER)).value["a"][1], float)  # type: ignore[index]


def test_a_stored_answer_is_a_stream_of_pieces_and_its_completion() -> None:
    *pieces, last = replay_answer(StoredAnswer(encode_answer(ANSWER), 0))
    texts = [piece.text for piece in pieces if isinstance(piece, TextDelta)]
    assert len(texts) == 5
    assert pieces[5:] == [ReasoningDelta("why"), ToolCallDelta("c", '{"a": 1}', "t:1")]
    assert "".join(texts) == ANSWER.text
    assert last == Completed(without_usage(ANSWER))


def test_an_empty_answer_has_no_pieces() -> None:
    assert (
        len(
            list(
                replay_answer(
                    StoredAnswer(encode_answer(replace(ANSWER, message=ChatMessage.assistant(""))), 0),
                ),
            ),
        )
        == 1
    )


@pytest.mark.parametrize("reason", StopReason)
def test_only_an_answer_that_came_to_its_own_end_may_be_stored(reason: StopReason) -> None:
    assert is_storable(replace(ANSWER, stop_reason=reason)) == (
        reason in {StopReason.END, StopReason.TOOL_USE}
    )


def test_an_answer_with_findings_may_be_stored_only_when_its_repair_mended_them() -> None:
    assert is_storable(ANSWER)
    assert not is_storable(replace(ANSWER, repaired=False))
    assert is_storable(replace(ANSWER, repaired=False, findings=()))


MIB = 1024 * 1024


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def of(size: int, stored: float = 0) -> StoredAnswer:
    return StoredAnswer(b"x" * size, stored)


@pytest.mark.postgresql
def test_memory_keeps_what_was_used_last() -> None:
    memory = MemoryTier(3 * (10 + ENTRY_OVERHEAD_BYTES))
    for key in "abc":
        memory.put(key, of(10))
    assert memory.get("a") is not None
    memory.put("d", of(10))
    assert [key for key in "abcd" if memory.get(key)] == ["a", "c", "d"]


@pytest.mark.postgresql
def test_what_is_larger_than_all_memory_moves_nothing_out() -> None:
    memory = MemoryTier(1000)
    memory.put("a", of(10))
    memory.put("b", of(1000))
    assert memory.get("a") == of(10)
    assert memory.get("b") is None
    memory.put("a", of(1000))
    assert memory.get("a") is None
    assert memory.size == 0


@pytest.mark.postgresql
@pytest.mark.parametrize("seed", range(20))
def test_memory_is_never_over_its_bound(seed: int) -> None:
    chance = random.Random(seed)
    memory = MemoryTier(20_000)
    kept: dict[str, StoredAnswer] = {}
    for _ in range(2000):
        key = str(chance.randrange(60))
        match chance.randrange(3):
            case 0:
                kept[key] = of(chance.choice((1, 500, 5000, 25_000)), chance.random())
                memory.put(key, kept[key])
            case 1:
                memory.remove(key)
                kept.pop(key, None)
            case _:
                found = memory.get(key)
                assert found is None or found == kept.get(key)
        there = [found for key in kept if (found := memory.get(key)) is not None]
        assert memory.size == sum(len(found.data) + ENTRY_OVERHEAD_BYTES for found in there) <= 20_000


@pytest.mark.postgresql
async def test_the_disk_is_never_over_its_bound_and_keeps_the_newest(database: Database) -> None:
    disk = DatabaseTier(database, 20 * (100 + ROW_OVERHEAD_BYTES))
    for number in range(60):
        await disk.put(str(number), of(100, number), expired=-1)
        assert await disk.size() <= 20 * (100 + ROW_OVERHEAD_BYTES)
        assert await disk.get(str(number)) == of(100, number)
    assert [number for number in range(60) if await disk.get(str(number))] == list(range(40, 60))


@pytest.mark.postgresql
@pytest.mark.slow(reason="writes until a disk bound is reached, in many orders")
@pytest.mark.parametrize("seed", range(5))
async def test_the_disk_is_never_over_its_bound_whatever_is_written(database: Database, seed: int) -> None:
    chance = random.Random(seed)
    disk = DatabaseTier(database, 40_000)
    for moment in range(150):
        key, answer_ = str(chance.randrange(90)), of(chance.choice((1, 50, 500, 20_000, 40_000)), moment)
        await disk.put(key, answer_, expired=moment - 100)
        assert await disk.size() <= 40_000
        assert await disk.get(key) == (answer_ if len(answer_.data) < 40_000 else None)
        if chance.random() < 0.1:
            disk = DatabaseTier(database, 40_000)


@pytest.mark.postgresql
async def test_a_write_that_fails_leaves_the_bound_known(database: Database) -> None:
    disk = DatabaseTier(database, 2 * (100 + ROW_OVERHEAD_BYTES))
    await disk.put("a", of(100, 1), expired=0)
    with pytest.raises(StatementError):
        await disk.put("b", StoredAnswer("no bytes" * 10, 2), expired=0)  # type: ignore[arg-type]
    for number in (3, 4):
        await disk.put(str(number), of(100, number), expired=0)
    assert [key for key in ("a", "b", "3", "4") if await disk.get(key)] == ["3", "4"]


@pytest.mark.postgresql
async def test_processes_that_share_a_database_share_the_bound(database_url: str) -> None:
    databases = [await Database.open(database_url) for _ in range(2)]
    disks = [DatabaseTier(database, 20 * (100 + ROW_OVERHEAD_BYTES)) for database in databases]
    for moment in range(30):
        await asyncio.gather(
            *(disk.put(f"{i} {moment}", of(100, moment), expired=-1) for i, disk in enumerate(disks)),
        )
        assert await disks[0].size() <= 20 * (100 + ROW_OVERHEAD_BYTES)
    assert await disks[0].size() == await disks[1].size() == 20 * (100 + ROW_OVERHEAD_BYTES)
    for database in databases:
        await database.close()


@pytest.mark.postgresql
async def test_answers_that_somebody_deletes_by_hand_make_room(database: Database) -> None:
    disk = DatabaseTier(database, 2 * (100 + ROW_OVERHEAD_BYTES))
    for number in range(2):
        await disk.put(str(number), of(100, number), expired=-1)
    async with database.write() as connection:
        await connection.execute(text("DELETE FROM gateway_answers"))
    for number in range(2, 5):
        await disk.put(str(number), of(100, number), expired=-1)
    assert [number for number in range(5) if await disk.get(str(number))] == [3, 4]


@pytest.mark.postgresql
async def test_a_new_answer_takes_the_place_of_the_old_one(database: Database) -> None:
    disk = DatabaseTier(database, MIB)
    await disk.put("a", of(100, 1), expired=0)
    await disk.put("a", of(50, 2), expired=0)
    assert await disk.get("a") == of(50, 2)
    assert await disk.size() == 50 + ROW_OVERHEAD_BYTES


@pytest.mark.postgresql
async def test_what_is_larger_than_the_whole_disk_is_not_kept_and_moves_nothing_out(
    database: Database,
) -> None:
    disk = DatabaseTier(database, 1000)
    await disk.put("a", of(100, 1), expired=0)
    await disk.put("b", of(1000, 2), expired=0)
    assert await disk.get("a")
    assert await disk.get("b") is None


@pytest.mark.postgresql
async def test_expired_answers_leave_the_disk_when_something_is_written(database: Database) -> None:
    disk = DatabaseTier(database, MIB)
    await disk.put("a", of(100, 1), expired=0)
    await disk.put("b", of(100, 2), expired=1)
    assert await disk.get("a") is None
    assert await disk.size() == 100 + ROW_OVERHEAD_BYTES


@pytest.mark.postgresql
async def test_an_answer_holds_for_its_time_in_both_places(database: Database) -> None:
    clock = Clock()
    disk = DatabaseTier(database, MIB)
    cache = ResponseCache(MemoryTier(MIB), [disk], ttl=60, clock=clock)
    stored = cache.put("k", answer("text"))
    await cache.persist("k", stored)
    other = ResponseCache(MemoryTier(MIB), [disk], ttl=60, clock=clock)
    clock.now += 59
    assert cache.get_local("k") == stored
    assert other.get_local("k") is None
    assert await other.get("k") == stored
    assert other.get_local("k") == stored
    clock.now += 1
    for one in (cache, other):
        assert one.get_local("k") is None
        assert await one.get("k") is None


@pytest.mark.postgresql
async def test_an_answer_from_the_future_does_not_count(database: Database) -> None:
    clock = Clock()
    cache = ResponseCache(MemoryTier(MIB), [DatabaseTier(database, MIB)], ttl=60, clock=clock)
    stored = cache.put("k", answer("text"))
    await cache.persist("k", stored)
    clock.now -= 1
    assert cache.get_local("k") is None
    assert await cache.get("k") is None


@pytest.mark.postgresql
async def test_a_restart_keeps_answers(database_url: str) -> None:
    clock = Clock()
    for turn in range(2):
        database = await Database.open(database_url)
        cache = ResponseCache(MemoryTier(MIB), [DatabaseTier(database, MIB)], ttl=60, clock=clock)
        found = await cache.get("k")
        assert (found is not None) == (turn == 1)
        stored = cache.put("k", answer("text"))
        await cache.persist("k", stored)
        await database.close()


class Broken(DatabaseTier):
    """A disk that fails."""

    def __init__(self) -> None:
        """Have nothing to fail on."""

    async def get(self, key: str) -> StoredAnswer | None:
        raise UnavailableError(f"cannot read {key}")

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        raise UnavailableError(f"cannot write {key}: {answer.data!r}, {expired}")


@pytest.mark.postgresql
async def test_a_disk_that_fails_costs_nothing_else_and_tells_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = ResponseCache(MemoryTier(MIB), [Broken()], ttl=60, clock=Clock())
    stored = cache.put("k", answer("canary"))
    assert await cache.get("k") is None
    await cache.persist("k", stored)
    assert cache.get_local("k") == stored
    assert caplog.messages == ["stored answers cannot be read", "an answer cannot be stored"]
    assert "canary" not in repr([vars(record) for record in caplog.records])


NOW = 1_000_000.0


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[RedisServer]:
    opened = RedisServer(redis_url)
    yield opened
    await opened.close()


def cache(server: RedisServer) -> ResponseCache:
    return ResponseCache(MemoryTier(MIB), [RedisTier(server)], ttl=60, clock=lambda: NOW)


async def test_an_answer_is_read_as_it_was_stored_until_another_takes_its_place(server: RedisServer) -> None:
    answers = RedisTier(server)
    assert await answers.get("a") is None
    for stored in (StoredAnswer(b"", NOW + 0.25), StoredAnswer(bytes(range(256)), NOW + 0.5)):
        await answers.put("a", stored, expired=NOW)
        assert await answers.get("a") == stored
    assert await answers.get("b") is None


async def test_redis_deletes_an_answer_when_it_holds_no_more(server: RedisServer) -> None:
    answers = RedisTier(server)
    await answers.put("a", StoredAnswer(b"x", NOW), expired=NOW - 60)
    await answers.put("b", StoredAnswer(b"x", NOW), expired=NOW)
    async with server.use() as client:
        (key,) = await client.keys()
        assert 59_000 < await client.pttl(key) <= 60_000
    assert await answers.get("b") is None


async def test_a_replica_finds_what_another_has_stored_and_has_it_at_hand(server: RedisServer) -> None:
    one, other = cache(server), cache(server)
    stored = one.put("k", answer("text"))
    await one.persist("k", stored)
    assert other.get_local("k") is None
    assert await other.get("k") == stored
    assert other.get_local("k") == stored


async def test_the_places_are_asked_in_their_order(server: RedisServer) -> None:
    asked: list[str] = []

    class Empty(RedisTier):
        async def get(self, key: str) -> StoredAnswer | None:
            asked.append(key)
            return None

    answers = RedisTier(server)
    await answers.put("k", StoredAnswer(b"x", NOW), expired=NOW - 60)
    both = ResponseCache(MemoryTier(MIB), [Empty(server), answers], ttl=60, clock=lambda: NOW)
    assert await both.get("k") == StoredAnswer(b"x", NOW)
    assert asked == ["k"]


async def test_a_server_that_is_down_costs_what_it_would_have_saved_and_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with RedisProcess() as process:
        server = RedisServer(process.url)
        one = cache(server)
        stored = one.put("a-key", answer("canary"))
        process.kill()
        assert await one.get("a-key") is None
        await one.persist("a-key", stored)
        assert one.get_local("a-key") == stored
        await server.close()
        process.start()
    assert caplog.messages == ["stored answers cannot be read", "an answer cannot be stored"]
    written = repr([vars(record) for record in caplog.records])
    assert not [secret for secret in ("canary", "a-key", "w%40rd", "w@rd") if secret in written]
