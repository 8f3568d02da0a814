"""Calls to the gRPC services: the methods of the contract by path, and one channel for all of them.

The edge holds no service of its own. It is a client like any other, so whatever it can do, a gRPC client can
do.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from google.protobuf.message_factory import GetMessageClass

from peripety.rpc.channel import SERVICES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

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


def rpc_methods() -> dict[str, RpcMethod]:
    """Return every method of the contract by its path."""
    return {method.path: method for method in _iterate_methods()}


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


class RpcCaller:
    """Calls of methods over one channel.

    Every call raises `PeripetyError`, carries the request id of the HTTP request, and ends when its task is
    cancelled.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
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
            upload = self._channel.stream_unary(method.path, *_codecs(method, is_raw=is_raw))
            return await upload(_iterate(requests), timeout=seconds)
        start = self._channel.unary_unary(method.path, *_codecs(method, is_raw=is_raw))
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
        if method.takes_stream:
            call = self._channel.stream_stream(method.path, *codecs)(_iterate(requests), timeout=seconds)
        else:
            call = self._channel.unary_stream(method.path, *codecs)(request, timeout=seconds)
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
