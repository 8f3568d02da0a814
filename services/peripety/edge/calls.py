"""Calls to the gRPC services: the methods of the contract by path, and the channels for them.

The edge holds no service of its own. It is a client like any other, so whatever it can do, a gRPC client can
do.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from google.protobuf.message_factory import GetMessageClass

from peripety.rpc.channel import SERVICES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    import grpc.aio
    from google.protobuf.descriptor import MethodDescriptor
    from google.protobuf.message import Message

STREAM_SECONDS = 86_400.0
"""Deadline of a stream: a day. The reader of a stream decides when it ends."""


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """One method of the contract.

    Attributes:
        service: full name of the service, `peripety.api.session.v1.SessionService`.
        name: name of the method, `GetSession`.
        request: type of its requests.
        response: type of its responses.
        takes_stream: True if the client sends several messages.
        returns_stream: True if the server sends several messages.
    """

    service: str
    name: str
    request: type[Message]
    response: type[Message]
    takes_stream: bool
    returns_stream: bool

    @property
    def path(self) -> str:
        """Path of the method in gRPC and in Connect."""
        return f"/{self.service}/{self.name}"

    @property
    def short_service(self) -> str:
        """Name of the service without its package."""
        return self.service.rpartition(".")[2]


_ELSEWHERE = frozenset({"ApprovalService"})
"""Services that an enforcement point serves, with a token of its own; the services behind the edge do not."""


def rpc_methods() -> dict[str, RpcMethod]:
    """Return the methods of the services behind the edge by their paths."""
    return {method.path: method for method in _iterate_methods() if method.short_service not in _ELSEWHERE}


def approval_methods() -> dict[str, RpcMethod]:
    """Return the methods of an enforcement point by their names, without those that return a stream."""
    return {
        method.name: method
        for method in _iterate_methods()
        if method.short_service == "ApprovalService" and not method.returns_stream
    }


def _iterate_methods() -> Iterator[RpcMethod]:
    for modules in SERVICES.values():
        for module in modules:
            for service in import_module(module).DESCRIPTOR.services_by_name.values():
                for descriptor in service.methods:
                    yield _to_method(service.full_name, descriptor)


def _to_method(service: str, descriptor: MethodDescriptor) -> RpcMethod:
    return RpcMethod(
        service,
        descriptor.name,
        GetMessageClass(descriptor.input_type),
        GetMessageClass(descriptor.output_type),
        descriptor.client_streaming,
        descriptor.server_streaming,
    )


_STREAMS_PER_CHANNEL = 96
"""Streams of one connection; the services accept 128, and other calls need some."""


class ChannelPool:
    """Channels to the same services, as many as the streams in progress need.

    A connection carries a limited number of calls, and a call beyond it would wait for the end of a stream,
    which may take a day.

    Args:
        open_channel: opens a channel.
    """

    def __init__(self, open_channel: Callable[[], grpc.aio.Channel]) -> None:
        self._open = open_channel
        self._streams: dict[grpc.aio.Channel, int] = {open_channel(): 0}

    @property
    def first(self) -> grpc.aio.Channel:
        """The channel for calls that end soon."""
        return next(iter(self._streams))

    @asynccontextmanager
    async def for_stream(self) -> AsyncIterator[grpc.aio.Channel]:
        """Lend a channel with room for a stream, until the block ends."""
        free = (channel for channel, streams in self._streams.items() if streams < _STREAMS_PER_CHANNEL)
        channel = next(free, None) or self._open()
        self._streams[channel] = self._streams.get(channel, 0) + 1
        try:
            yield channel
        finally:
            self._streams[channel] -= 1
            if not self._streams[channel] and channel is not self.first:
                del self._streams[channel]
                await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(channel.close() for channel in self._streams))


class RpcCaller:
    """Calls of methods.

    Every call raises `PeripetyError`, carries the request id of the HTTP request, and ends when its task is
    cancelled.

    Args:
        channels: channels to the services.
    """

    def __init__(self, channels: ChannelPool) -> None:
        self._channels = channels
        self.methods = rpc_methods()

    async def call(self, method: RpcMethod, request: Any, *, seconds: float | None = None) -> Any:
        """Call a method that returns one message.

        Args:
            method: the method.
            request: the request, as a message or in bytes; for a method that takes a stream, a list of them.
            seconds: the deadline; by default that of the channel.

        Returns:
            The response, in the form of the request.
        """
        is_raw, requests = _unpack(method, request)
        if method.takes_stream:
            upload = self._channels.first.stream_unary(method.path, *_codecs(method, is_raw=is_raw))
            return await upload(_iterate(requests), timeout=seconds)
        start = self._channels.first.unary_unary(method.path, *_codecs(method, is_raw=is_raw))
        return await start(request, timeout=seconds)

    async def stream(
        self, method: RpcMethod, request: Any, *, seconds: float = STREAM_SECONDS
    ) -> AsyncGenerator[Any]:
        """Call a method that returns a stream.

        Args:
            method: the method.
            request: as in `call`.
            seconds: the deadline.

        Yields:
            The responses, in the form of the request.
        """
        is_raw, requests = _unpack(method, request)
        codecs = _codecs(method, is_raw=is_raw)
        call: Any
        async with self._channels.for_stream() as channel:
            if method.takes_stream:
                call = channel.stream_stream(method.path, *codecs)(_iterate(requests), timeout=seconds)
            else:
                call = channel.unary_stream(method.path, *codecs)(request, timeout=seconds)
            try:
                async for message in call:
                    yield message
            finally:
                call.cancel()


def _unpack(method: RpcMethod, request: Any) -> tuple[bool, list[Any]]:
    requests = request if method.takes_stream else [request]
    return bool(requests) and isinstance(requests[0], bytes), requests


def _codecs(method: RpcMethod, *, is_raw: bool) -> tuple[Any, Any]:
    return (None, None) if is_raw else (method.request.SerializeToString, method.response.FromString)


async def _iterate(requests: list[Any]) -> AsyncIterator[Any]:
    for request in requests:
        yield request
        await asyncio.sleep(0)
