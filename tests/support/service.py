"""The gateway service over a real channel, in front of the scripted LLM."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from peripety.gateway.setup import register_service
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.apps import config_for
from support.providers import config_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import grpc.aio

    from support.providers import Spoken


@asynccontextmanager
async def channel_to(
    tmp_path: Path,
    spoken: Spoken,
    url: str,
    **settings: Any,
) -> AsyncIterator[grpc.aio.Channel]:
    """Serve a gateway that asks a provider at this URL, and open a channel to it."""
    own = config_for(tmp_path).model_dump(exclude_unset=True)
    config = config_of(spoken, url, **own, **settings)
    async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
        yield channel
