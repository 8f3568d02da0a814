"""Servers for tests: real listeners on a free port, with services made of plain functions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf.wrappers_pb2 import StringValue

from peripety.core.config import Config
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from peripety.rpc.container import ServiceContainer
    from peripety.server.app import RegisterService, ServerApp


SERVICE = "peripety.test.v1.TestService"

_CODEC = {
    "request_deserializer": StringValue.FromString,
    "response_serializer": StringValue.SerializeToString,
}


def config_for(tmp_path: Path, **settings: Any) -> Config:
    """A configuration that touches nothing outside `tmp_path`."""
    return Config(
        **{"database_url": f"sqlite:///{tmp_path / 'test.db'}", "listen": "127.0.0.1:0", **settings},
    )


def unary(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from one `StringValue` to one."""
    return grpc.unary_unary_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def stream(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from one `StringValue` to many."""
    return grpc.unary_stream_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def upload(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from many `StringValue`s to one."""
    return grpc.stream_unary_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def both(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from many `StringValue`s to many."""
    return grpc.stream_stream_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def service(**methods: grpc.RpcMethodHandler[Any, Any]) -> RegisterService:
    """The bind function of a service with these methods."""

    async def bind(wiring: ServiceContainer) -> None:
        wiring.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        wiring.add_service_name(SERVICE)

    return bind


class Caller:
    """Calls methods of a test service by name, with text for messages."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel: Any = channel

    def unary(self, method: str, text: str = "", **options: Any) -> Any:
        return self._start(self.channel.unary_unary, method)(StringValue(value=text), **options)

    def stream(self, method: str, text: str = "", **options: Any) -> Any:
        return self._start(self.channel.unary_stream, method)(StringValue(value=text), **options)

    def upload(self, method: str, texts: AsyncIterator[StringValue], **options: Any) -> Any:
        return self._start(self.channel.stream_unary, method)(texts, **options)

    def both(self, method: str, texts: AsyncIterator[StringValue] | None = None, **options: Any) -> Any:
        return self._start(self.channel.stream_stream, method)(texts, **options)

    def raw(self, method: str, data: bytes, **options: Any) -> Any:
        """Send bytes that are no message."""
        return self.channel.unary_unary(f"/{SERVICE}/{method}")(data, **options)

    def _start(self, kind: Callable[..., Any], method: str) -> Any:
        return kind(
            f"/{SERVICE}/{method}",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=StringValue.FromString,
        )


async def texts(*values: str) -> AsyncIterator[StringValue]:
    """A stream of requests."""
    for value in values:
        yield StringValue(value=value)


@asynccontextmanager
async def serving(config: Config, bind: RegisterService) -> AsyncIterator[tuple[ServerApp, Caller]]:
    """Serve one test service and open a client channel to it."""
    async with serve_registered(config, [bind]) as app, open_channel(app.address) as channel:
        yield app, Caller(channel)


@asynccontextmanager
async def plain_channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel as any other gRPC client would open it."""
    async with grpc.aio.insecure_channel(address) as channel:
        yield channel
