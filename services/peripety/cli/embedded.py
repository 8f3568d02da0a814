"""Embedded services: the servers of this command, in process, over gRPC on a free port."""

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
    """Run the named services and yield a channel to them.

    Logs only errors unless PERIPETY_LOG_LEVEL is set: the command reports the rest itself.

    Args:
        *names: the services.
        **settings: overrides of the environment; see `Config`.
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
    """Yield a channel to a server, or to embedded services if no server is given.

    Args:
        server: its `host:port`.
        names: the services to embed.
        settings: overrides of the environment for these; see `Config`.
    """
    async with embedded_services(*names, **settings) if server is None else open_channel(server) as channel:
        yield channel
