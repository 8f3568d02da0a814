"""Deadlines, cancellation and request ids, from server to server."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from peripety.core import call_context
from peripety.errors import DeadlineError
from support.servers.apps import Caller, both, config_for, plain_channel, service, serving, stream, unary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def _context(_request: object, _call: object) -> StringValue:
    return StringValue(value=f"{call_context.request_id()} {call_context.remaining()}")


class _Chain:
    """Servers A, B and C, each of which calls the next; C records the call and then waits."""

    def __init__(self) -> None:
        self.caller: Any = None
        self.remaining: list[float | None] = []
        self.request_ids: list[str | None] = []
        self.reached = asyncio.Event()
        self.cancelled = asyncio.Event()

    def _note(self) -> None:
        self.remaining.append(call_context.remaining())
        self.request_ids.append(call_context.request_id())

    def forward_to(self, next_server: Caller) -> grpc.RpcMethodHandler[Any, Any]:
        async def forward(request: StringValue, _call: object) -> StringValue:
            self._note()
            reply: StringValue = await next_server.unary("Ask", request.value)
            return reply

        return unary(forward)

    def wait(self) -> grpc.RpcMethodHandler[Any, Any]:
        async def hang(_request: object, _call: object) -> StringValue:
            self._note()
            self.reached.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
            raise AssertionError

        return unary(hang)


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[_Chain]:
    links = _Chain()
    async with AsyncExitStack() as stack:
        method = links.wait()
        for _ in "CBA":
            _, links.caller = await stack.enter_async_context(
                serving(config_for(tmp_path), service(Ask=method)),
            )
            method = links.forward_to(links.caller)
        yield links


async def test_a_deadline_is_carried_from_server_to_server_and_shrinks(chain: _Chain) -> None:
    with pytest.raises(DeadlineError):
        await chain.caller.unary("Ask", timeout=3.0)
    a, b, c = (left or 0.0 for left in chain.remaining)
    assert 3.1 > a > b > c > 0
    await asyncio.wait_for(chain.cancelled.wait(), 30)


async def test_a_request_id_is_carried_from_server_to_server(chain: _Chain) -> None:
    call = asyncio.ensure_future(
        chain.caller.unary("Ask", metadata=(("x-request-id", "from-the-caller"),)),
    )
    await chain.reached.wait()
    call.cancel()
    assert chain.request_ids == ["from-the-caller"] * 3


async def test_a_cancelled_call_is_cancelled_in_the_last_server_at_once(chain: _Chain) -> None:
    call = asyncio.ensure_future(chain.caller.unary("Ask"))
    await chain.reached.wait()
    call.cancel()
    # Far less than the deadline of the call.
    await asyncio.wait_for(chain.cancelled.wait(), 30)


async def test_a_caller_without_a_deadline_gets_the_configured_one(tmp_path: Path) -> None:
    config = config_for(tmp_path, default_deadline_seconds=0.2)
    chain = _Chain()
    async with serving(config, service(Ask=chain.wait())) as (app, _), plain_channel(app.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Caller(channel).unary("Ask")
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(chain.cancelled.wait(), 30)


async def test_a_caller_with_a_longer_deadline_keeps_it(tmp_path: Path) -> None:
    config = config_for(tmp_path, default_deadline_seconds=1)
    async with serving(config, service(Ask=unary(_context))) as (_, caller):
        begun = time.monotonic()
        reply = await caller.unary("Ask", timeout=50)
    _assert_remaining(reply, 50, begun)


def _assert_remaining(reply: StringValue, timeout: float, begun: float) -> None:
    """Check the remaining seconds of a reply; gRPC rounds time limits up by at most a hundredth."""
    remaining = float(reply.value.split()[1])
    assert timeout - (time.monotonic() - begun) <= remaining <= timeout * 1.01


async def test_our_client_always_sends_a_deadline(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path, default_deadline_seconds=7), service(Ask=unary(_context))) as (
        _,
        caller,
    ):
        begun = time.monotonic()
        reply = await caller.unary("Ask")
    _assert_remaining(reply, 300, begun)


async def test_no_call_is_started_when_no_time_is_left(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service(Ask=unary(_context))) as (_, caller):
        call_context.begin_call(request_id=None, timeout=0.0)
        with pytest.raises(DeadlineError, match="no time is left"):
            await caller.unary("Ask")


async def test_a_request_id_comes_back_with_the_reply(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service(Ask=unary(_context))) as (_, caller):
        call = caller.unary("Ask", metadata=(("x-request-id", "abc-1.2_3"),))
        assert (await call).value.startswith("abc-1.2_3 ")
        assert dict(await call.trailing_metadata())["x-request-id"] == "abc-1.2_3"


@pytest.mark.parametrize("given", [None, "", "a b", "a" * 65, "a;b", '"', "%0a"])
async def test_a_missing_or_odd_request_id_is_replaced(tmp_path: Path, given: str | None) -> None:
    async with serving(config_for(tmp_path), service(Ask=unary(_context))) as (_, caller):
        call = caller.unary("Ask", metadata=() if given is None else (("x-request-id", given),))
        used = (await call).value.split()[0]
        assert re.fullmatch("[0-9a-f]{32}", used)
        assert dict(await call.trailing_metadata())["x-request-id"] == used


class _Endless:
    """A stream that never ends by itself and notes when its generator was closed, and by which task."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.closed: asyncio.Future[asyncio.Task[Any] | None] = asyncio.get_running_loop().create_future()

    async def replies(self, _request: object, _call: object) -> AsyncIterator[StringValue]:
        self.task = asyncio.current_task()
        try:
            while True:
                yield StringValue(value="x")
                await asyncio.sleep(0.001)
        finally:
            self.closed.set_result(asyncio.current_task())


async def test_a_reader_that_stops_early_cancels_the_stream_in_the_server(tmp_path: Path) -> None:
    endless = _Endless()
    async with serving(config_for(tmp_path), service(Watch=stream(endless.replies))) as (_, caller):
        async for _ in caller.stream("Watch"):
            break
        assert await asyncio.wait_for(endless.closed, 30) is endless.task


@pytest.mark.slow(reason="waits for a reader that stalls")
async def test_a_reader_that_stalls_does_not_keep_its_cancelled_stream_alive(tmp_path: Path) -> None:
    endless = _Endless()
    async with serving(config_for(tmp_path), service(Watch=stream(endless.replies))) as (_, caller):
        call = caller.stream("Watch", timeout=2.0)
        await call.read()
        assert await asyncio.wait_for(endless.closed, 30) is endless.task


@pytest.mark.parametrize("kind", ["stream", "both"])
async def test_a_stream_without_messages_opens_at_once(tmp_path: Path, kind: str) -> None:
    async def wait(_requests: object, _call: object) -> AsyncIterator[StringValue]:
        await asyncio.Event().wait()
        yield StringValue()

    methods = service(stream=stream(wait), both=both(wait))
    async with serving(config_for(tmp_path), methods) as (_, caller):
        call = getattr(caller, kind)(kind)
        await asyncio.wait_for(call.initial_metadata(), 30)
        call.cancel()


async def test_a_client_that_only_pushes_is_held_back(tmp_path: Path) -> None:
    async def never_read(_requests: object, _call: object) -> AsyncIterator[StringValue]:
        await asyncio.Event().wait()
        yield StringValue()

    async with serving(config_for(tmp_path), service(Push=both(never_read))) as (_, caller):
        call, taken = caller.both("Push"), 0
        with suppress(TimeoutError):
            while taken < 500:
                await asyncio.wait_for(call.write(StringValue(value="x" * 4096)), 2.0)
                taken += 1
        call.cancel()
    assert 0 < taken < 100


async def test_a_stream_can_be_written_and_read_message_by_message(tmp_path: Path) -> None:
    async def echo(requests: AsyncIterator[StringValue], _call: object) -> AsyncIterator[StringValue]:
        async for request in requests:
            yield request

    async with serving(config_for(tmp_path), service(Echo=both(echo))) as (_, caller):
        call = caller.both("Echo")
        for text in ("a", "b"):
            await call.write(StringValue(value=text))
            assert (await call.read()).value == text
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF


async def test_a_channel_can_be_waited_for(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service()) as (_, caller):
        assert caller.channel.get_state() is grpc.ChannelConnectivity.IDLE
        await asyncio.wait_for(caller.channel.channel_ready(), 30)
        assert caller.channel.get_state() is grpc.ChannelConnectivity.READY
        changed = asyncio.ensure_future(caller.channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        await caller.channel.close()
        await asyncio.wait([changed], timeout=30)
        assert changed.done()
