"""Policies compiled with the scripted LLM: over its real protocol, in front of its real books."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.gateway.streams import following
from peripety.policies.compiling.artifacts import MemoryArtifacts
from peripety.policies.compiling.compiler import PolicyCompiler
from peripety.policies.model import Compiled, Failed
from peripety.simulator.server import serve_in_thread
from support.answering import Answering
from support.providers import PROVIDERS, gateway_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.policies.model import CompileEvent, CompileOrder
    from peripety.simulator.model import Request
    from peripety.simulator.scenario.model import Response

__all__ = ["Workshop", "workshop"]


@dataclass(frozen=True)
class Workshop:
    """A compiler, and the model that it asks."""

    compiler: PolicyCompiler
    model: Answering

    async def compiled(self, order: CompileOrder) -> list[CompileEvent]:
        """Everything that happens."""
        async with following(self.compiler.compile(order)) as events:
            return [event async for event in events]

    async def outcome(self, order: CompileOrder) -> Compiled | Failed:
        """What comes of it."""
        last = (await self.compiled(order))[-1]
        assert isinstance(last, Compiled | Failed), last
        return last


@asynccontextmanager
async def workshop(answer: Callable[[Request], Response]) -> AsyncIterator[Workshop]:
    """A compiler that asks a scripted model, until the block ends."""
    model = Answering(answer)
    with serve_in_thread(model) as upstream:
        async with gateway_of(PROVIDERS[0], upstream.url) as gateway:
            yield Workshop(PolicyCompiler(gateway, MemoryArtifacts()), model)
    model.close()
