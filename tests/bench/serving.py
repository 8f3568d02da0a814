"""All services in this process, before a model that the benchmark plays: one clock times both ends."""

from __future__ import annotations

import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.core import logging_setup
from peripety.core.config import LogLevel, ProviderName
from peripety.server.app import serve
from support.gateway.fake_server import upstream
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from support.gateway.fake_server import Reply, Request


@asynccontextmanager
async def serving(answer: Callable[[Request, Reply], Awaitable[None]]) -> AsyncIterator[str]:
    """Yield the address of the services, whose model is a real HTTP server with this handler.

    `PERIPETY_BENCH_DIRECTORY` sets the directory of their database, and so the disk.
    """
    with tempfile.TemporaryDirectory(dir=os.environ.get("PERIPETY_BENCH_DIRECTORY")) as directory:
        async with upstream(answer) as server:
            config = config_for(
                Path(directory),
                model_provider=ProviderName.GENERIC,
                openai_api_base=server.base_url,
                model_name="m",
                log_level=LogLevel.ERROR,
            )
            logging_setup.configure(config)
            async with serve(config) as app:
                yield app.address
