"""The services, run inside a command: the same code over the same gRPC as anywhere else, on a free port."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from peripety import logs
from peripety.client.channel import open_channel
from peripety.config import Config, LogLevel
from peripety.rpc.app import serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

__all__ = ["embedded_services", "services_at"]


@asynccontextmanager
async def embedded_services(*names: str, **settings: Any) -> AsyncIterator[grpc.aio.Channel]:
    """Run the named services and give the channel to them.

    Only errors are logged unless PERIPETY_LOG_LEVEL says otherwise: the command tells the rest itself.

    Args:
        *names: the services.
        **settings: what overrides the environment; see `Config`.
    """
    quiet = {} if os.environ.get("PERIPETY_LOG_LEVEL") else {"log_level": LogLevel.ERROR}
    config = Config.from_environment(**quiet, **settings)
    logs.configure(config)
    async with (
        serve(config, services=set(names), address="127.0.0.1:0") as app,
        open_channel(app.address, max_message_bytes=config.max_message_bytes) as channel,
    ):
        yield channel


@asynccontextmanager
async def services_at(server: str | None, *names: str, **settings: Any) -> AsyncIterator[grpc.aio.Channel]:
    """Give a channel to a server, or run the named services where none is given.

    Args:
        server: its `host:port`.
        names: what to run without it.
        settings: what overrides the environment for these; see `Config`.
    """
    async with embedded_services(*names, **settings) if server is None else open_channel(server) as channel:
        yield channel
