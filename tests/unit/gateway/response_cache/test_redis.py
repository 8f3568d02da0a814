"""Stored answers on a Redis server: for every replica, for their time, and never in the way of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.core.redis_server import RedisServer
from peripety.gateway.response_cache.tiers import MemoryTier, RedisTier, ResponseCache, StoredAnswer
from support.gateway.fake_gateway import answer
from support.servers.databases import RedisProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


MIB = 1024 * 1024
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
