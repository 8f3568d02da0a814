"""Registration of scenarios in a database of its own."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import WorkerPool, closing
from peripety.core.storage.database import Database
from peripety.scenario.registration import ScenarioRegistrar
from peripety.scenario.registry import ProgramCache, ScenarioRegistry
from peripety.scenario.types import DryRunOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenario.types import RegistrationEvent


WORKERS = WorkerPool()


@asynccontextmanager
async def opened_registry(database_url: str) -> AsyncIterator[ScenarioRegistry]:
    """A registry in a database."""
    database = await Database.open(database_url)
    try:
        yield ScenarioRegistry(database)
    finally:
        await database.close()


async def compiling(
    registry: ScenarioRegistry,
    data: bytes,
    options: DryRunOptions | None = None,
    **more: Any,
) -> list[RegistrationEvent]:
    """Everything that happens while a document is compiled."""
    compiler = ScenarioRegistrar(registry, ProgramCache(), WORKERS)
    async with closing(compiler.register(data, options or DryRunOptions(), **more)) as events:
        return [event async for event in events]


def compiled_alone(data: bytes, options: DryRunOptions | None = None, **more: Any) -> list[RegistrationEvent]:
    """The same in a loop and a registry of its own."""

    async def run() -> list[RegistrationEvent]:
        with tempfile.TemporaryDirectory() as directory:
            async with opened_registry(f"sqlite:///{directory}/test.db") as registry:
                return await compiling(registry, data, options, **more)

    return asyncio.run(run())
