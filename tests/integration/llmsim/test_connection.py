"""Execution of plans as a client sees it: exact bytes, in order, not before their time, and every ending."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from peripety.llmsim.delivery.http import Delivery, ResponseHead
from peripety.llmsim.delivery.plan import DeliveryPlan, DeliveryStep, ResponseEnd
from peripety.llmsim.server.connection import ClientConnection, ProtocolFactory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
STREAM = ResponseHead(200, "text/event-stream", {"request-id": "req_1"})


def steps(*pieces: bytes, apart_ms: float = 0) -> list[DeliveryStep[bytes]]:
    return [DeliveryStep(number * apart_ms, piece) for number, piece in enumerate(pieces)]


class Delivering:
    """A server that answers every request with the same delivery, and records the results."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.started = 0
        self.ended = 0
        self.cut = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> bool:
        connection = ClientConnection(request)
        try:
            await connection.deliver(self.delivery, self._start)
        except (ConnectionError, asyncio.CancelledError):
            self.cut.set()
            raise
        self.ended += 1
        return connection.keep_alive

    def _start(self) -> None:
        self.started += 1


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, request: bytes = GET) -> None:
        self.writer.write(request)
        await self.writer.drain()

    async def head(self) -> list[bytes]:
        return (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[:-2]

    async def leave(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@asynccontextmanager
async def delivering(delivery: Delivery) -> AsyncIterator[tuple[Delivering, Client]]:
    server = Delivering(delivery)
    protocols = ProtocolFactory(server.handle)
    listener = await asyncio.get_running_loop().create_server(protocols, "127.0.0.1", 0)
    client = Client(*await asyncio.open_connection(*listener.sockets[0].getsockname()))
    try:
        yield server, client
    finally:
        await client.leave()
        listener.close()
        await protocols.shut_down(0)


async def test_each_step_is_a_chunk_of_its_own() -> None:
    plan = DeliveryPlan(steps(b"one", b"", b"two words"))
    async with delivering(Delivery(STREAM, plan)) as (server, client):
        await client.ask()
        assert await client.head() == [
            b"HTTP/1.1 200 OK",
            b"content-type: text/event-stream",
            b"request-id: req_1",
            b"transfer-encoding: chunked",
        ]
        assert await client.reader.readuntil(b"0\r\n\r\n") == b"3\r\none\r\n9\r\ntwo words\r\n0\r\n\r\n"
        assert (server.started, server.ended) == (1, 1)


async def test_a_known_length_is_told_and_the_connection_serves_the_next_request() -> None:
    delivery = Delivery(ResponseHead(529, "application/json", {}, 4), DeliveryPlan(steps(b"null")))
    async with delivering(delivery) as (server, client):
        for _ in range(3):
            await client.ask()
            assert await client.head() == [
                b"HTTP/1.1 529 Overloaded",
                b"content-type: application/json",
                b"content-length: 4",
            ]
            assert await client.reader.readexactly(4) == b"null"
        assert server.ended == 3


async def test_requests_that_are_sent_ahead_are_answered_in_order() -> None:
    async with delivering(Delivery(STREAM, DeliveryPlan(steps(b"a", b"b", apart_ms=5), ends_ms=5))) as (
        _,
        client,
    ):
        await client.ask(GET * 3)
        for _ in range(3):
            await client.head()
            assert await client.reader.readuntil(b"0\r\n\r\n") == b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n"


async def test_an_older_client_gets_a_stream_without_chunks_that_ends_with_the_connection() -> None:
    async with delivering(Delivery(STREAM, DeliveryPlan(steps(b"one", b"two")))) as (_, client):
        await client.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert b"connection: close" in await client.head()
        assert await client.reader.read() == b"onetwo"


async def test_an_older_client_may_keep_its_connection_where_the_length_is_known() -> None:
    delivery = Delivery(ResponseHead(200, "text/plain", {}, 3), DeliveryPlan(steps(b"one")))
    async with delivering(delivery) as (_, client):
        for _ in range(2):
            await client.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert b"connection: keep-alive" in await client.head()
            assert await client.reader.readexactly(3) == b"one"


async def test_the_head_alone_answers_a_question_for_it() -> None:
    delivery = Delivery(ResponseHead(200, "text/plain", {}, 3), DeliveryPlan(steps(b"one")))
    async with delivering(delivery) as (_, client):
        await client.ask(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"content-length: 3" in await client.head()
        assert await client.reader.read() == b""


async def test_nothing_leaves_before_its_time() -> None:
    plan = DeliveryPlan(steps(b"a", b"b", b"c", apart_ms=60), ends_ms=180)
    async with delivering(Delivery(STREAM, plan)) as (_, client):
        time = asyncio.get_running_loop().time
        begun = time()
        await client.ask()
        for number in range(3):
            await client.reader.readuntil(b"abc"[number : number + 1] + b"\r\n")
            assert time() - begun >= number * 0.06
        await client.reader.readuntil(b"0\r\n\r\n")
        assert time() - begun >= 0.18


async def test_a_body_may_be_empty() -> None:
    async with delivering(Delivery(STREAM, DeliveryPlan())) as (_, client):
        await client.ask()
        assert b"transfer-encoding: chunked" in await client.head()
        assert await client.reader.readuntil(b"\r\n\r\n") == b"0\r\n\r\n"


async def test_a_connection_can_be_closed_before_any_byte() -> None:
    async with delivering(Delivery(None, DeliveryPlan(end=ResponseEnd.CLOSED))) as (server, client):
        await client.ask()
        assert await client.reader.read() == b""
        assert server.started == 0


async def test_a_stream_can_be_closed_before_its_end() -> None:
    async with delivering(Delivery(STREAM, DeliveryPlan(steps(b"one"), ResponseEnd.CLOSED))) as (_, client):
        await client.ask()
        await client.head()
        assert await client.reader.read() == b"3\r\none\r\n"


async def test_a_document_can_be_closed_before_its_end() -> None:
    delivery = Delivery(
        ResponseHead(200, "text/plain", {}, 10),
        DeliveryPlan(steps(b"one"), ResponseEnd.CLOSED),
    )
    async with delivering(delivery) as (_, client):
        await client.ask()
        await client.head()
        assert await client.reader.read() == b"one"


async def test_a_reset_comes_after_what_was_sent() -> None:
    plan = DeliveryPlan(steps(b"one"), ResponseEnd.RESET, ends_ms=30)
    async with delivering(Delivery(STREAM, plan)) as (_, client):
        await client.ask()
        await client.head()
        assert await client.reader.readexactly(8) == b"3\r\none\r\n"
        with pytest.raises(ConnectionResetError):
            await client.reader.read()


async def test_a_connection_can_be_reset_before_any_byte() -> None:
    async with delivering(Delivery(None, DeliveryPlan(end=ResponseEnd.RESET))) as (_, client):
        await client.ask()
        with pytest.raises(ConnectionResetError):
            await client.reader.read()


async def test_silence_lasts_until_the_client_leaves() -> None:
    async with delivering(Delivery(None, DeliveryPlan(end=ResponseEnd.HANG))) as (server, client):
        await client.ask()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.1)
        assert not server.cut.is_set()
        await client.leave()
        await asyncio.wait_for(server.cut.wait(), 30)
        assert (server.started, server.ended) == (0, 0)


async def test_a_stream_can_fall_silent() -> None:
    async with delivering(Delivery(STREAM, DeliveryPlan(steps(b"one"), ResponseEnd.HANG))) as (
        server,
        client,
    ):
        await client.ask()
        await client.reader.readuntil(b"one\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.1)
        await client.leave()
        await asyncio.wait_for(server.cut.wait(), 30)
        assert (server.started, server.ended) == (1, 0)


async def test_a_client_that_leaves_stops_the_stream() -> None:
    plan = DeliveryPlan(steps(*[b"x"] * 1000, apart_ms=20), ends_ms=20_000)
    async with delivering(Delivery(STREAM, plan)) as (server, client):
        await client.ask()
        await client.reader.readuntil(b"x\r\n")
        await client.leave()
        await asyncio.wait_for(server.cut.wait(), 30)
        assert server.ended == 0


async def test_a_client_that_reads_slowly_misses_nothing() -> None:
    piece = b"y" * 100_000
    async with delivering(Delivery(STREAM, DeliveryPlan(steps(*[piece] * 200)))) as (_, client):
        await client.ask()
        await client.head()
        total = 0
        while not (received := await client.reader.read(1_000_000)).endswith(b"0\r\n\r\n"):
            total += received.count(b"y")
            await asyncio.sleep(0.001)
        assert total + received.count(b"y") == 20_000_000
