"""Redis client of a process: a failed server is avoided for a while, and passwords are never logged."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest

from peripety.core.redis_server import RedisServer
from peripety.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from support.servers.databases import PASSWORD, RedisProcess


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def _count(server: RedisServer) -> int:
    async with server.use() as client:
        return int(await client.incr("count"))


async def _fault(server: RedisServer) -> str:
    with pytest.raises(UnavailableError) as caught:
        await _count(server)
    assert caught.value.code == "REDIS_UNAVAILABLE"
    assert PASSWORD not in str(caught.value)
    return caught.value.details["fault"]


async def test_everybody_uses_one_client_at_once(redis_url: str) -> None:
    server = RedisServer(redis_url)
    assert sorted(await asyncio.gather(*(_count(server) for _ in range(50)))) == list(range(1, 51))
    await server.close()


async def test_nothing_is_connected_before_it_is_used() -> None:
    server = RedisServer("redis://absent.invalid")
    await server.close()


async def test_a_server_that_went_away_is_left_alone_for_a_while_and_then_found_again() -> None:
    clock = Clock()
    with RedisProcess() as process:
        server = RedisServer(process.url, clock=clock)
        assert await _count(server) == 1
        process.kill()
        assert await _fault(server) == "ConnectionError"
        process.start()
        clock.now += 4.9
        assert await _fault(server) == "resting"
        clock.now += 0.2
        assert await _count(server) == 1
        await server.close()


async def test_a_server_that_came_back_while_nobody_asked_is_not_missed() -> None:
    with RedisProcess() as process:
        server = RedisServer(process.url)
        assert await _count(server) == 1
        process.kill()
        process.start()
        assert await _count(server) == 1
        await server.close()


async def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peripety.core.redis_server._TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = RedisServer(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        assert await _fault(server) == "TimeoutError"
        await server.close()


@pytest.mark.parametrize(
    ("change", "fault"),
    [(("pass", "word"), "AuthenticationError"), (("127.0.0.1", "absent.invalid"), "ConnectionError")],
)
async def test_a_server_that_refuses_is_unavailable(
    redis_url: str,
    change: tuple[str, str],
    fault: str,
) -> None:
    server = RedisServer(redis_url.replace(*change))
    assert await _fault(server) == fault
    await server.close()


async def test_a_command_that_the_server_refuses_is_unavailable(redis_url: str) -> None:
    server = RedisServer(redis_url)
    async with server.use() as client:
        await client.set("count", "no number")
    assert await _fault(server) == "ResponseError"
    await server.close()


def test_a_url_that_the_client_does_not_know_is_refused_without_its_password() -> None:
    with pytest.raises(InvalidArgumentError, match="PERIPETY_REDIS_URL") as caught:
        RedisServer("redis://:canary@127.0.0.1:port")
    assert "canary" not in str(caught.value)


def test_the_way_to_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(FailedPreconditionError, match=r"pip install 'peripety\[redis\]'"):
        RedisServer("redis://127.0.0.1")
